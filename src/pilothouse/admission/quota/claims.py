"""What claims use: volume claims their storage, by class, and resource claims their devices, by class."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final, Protocol, TypeVar

from pilothouse.admission.quota.amounts import ONE, count
from pilothouse.admission.quota.evaluators import Evaluator, Scope
from pilothouse.admission.quota.pods import PodEvaluator, is_extended_in_quota
from pilothouse.admission.quota.scopes import claim_in_scope
from pilothouse.apis.core.pod_spec.amounts import Amounts, read_amounts
from pilothouse.endpoints.admission import CREATE, UPDATE
from pilothouse.machinery.objects import Object
from pilothouse.machinery.quantity import ZERO

T = TypeVar("T")
_CLAIMS: Final = "persistentvolumeclaims"
_STORAGE: Final = "requests.storage"
_BY_CLASS: Final = ".storageclass.storage.k8s.io/"
_CLASS_ANNOTATION: Final = "volume.beta.kubernetes.io/storage-class"
_DEVICES: Final = ".deviceclass.resource.k8s.io/devices"
_IMPLICIT: Final = "requests.deviceclass.resource.kubernetes.io/"
_COUNT: Final = "count/resourceclaims.resource.k8s.io"
_EXTENDED: Final = "resource.kubernetes.io/extended-resource-claim"
_ALL_DEVICES: Final = 32


class OtherObjects(Protocol):
    """Objects of another kind, which decide with; admission and controllers read them in their own ways."""

    def get(self, namespace: str, name: str) -> Object | None: ...

    def list(self, namespace: str = "") -> list[Object]: ...

    def remembered(self, name: object, make: Callable[[], T]) -> T: ...


class VolumeClaimEvaluator(Evaluator):
    """Volume claims."""

    def __init__(self) -> None:
        self._names = {f"count/{_CLAIMS}", _CLAIMS, _STORAGE}

    def concerns(self, operation: str, subresource: str) -> bool:
        return operation in (CREATE, UPDATE) and subresource in ("", "status")

    def matching(self, names: Iterable[str]) -> list[str]:
        suffixes = (_BY_CLASS + _CLAIMS, _BY_CLASS + _STORAGE)
        return [name for name in names if name in self._names or name.endswith(suffixes)]

    def in_scope(self, scope: Scope, obj: Object) -> bool:
        return claim_in_scope(scope, obj)

    def has_scopes(self) -> bool:
        return True

    def usage(self, obj: Object, namespace: str) -> Amounts:
        used: Amounts = {_CLAIMS: ONE, f"count/{_CLAIMS}": ONE}
        by_class = storage_class(obj)
        if by_class:
            used[f"{by_class}{_BY_CLASS}{_CLAIMS}"] = ONE
        requests = read_amounts(((obj.get("spec") or {}).get("resources") or {}).get("requests"))
        if "storage" in requests:
            storage = requests["storage"].round_up(0)
            given = read_amounts((obj.get("status") or {}).get("allocatedResources")).get("storage")
            if given is not None and given > storage:
                storage = given.round_up(0)
            used[_STORAGE] = storage
            if by_class:
                used[f"{by_class}{_BY_CLASS}{_STORAGE}"] = storage
        return used


def storage_class(claim: Object) -> str:
    """The storage class a claim names; the old annotation wins."""
    annotations = (claim.get("metadata") or {}).get("annotations") or {}
    if _CLASS_ANNOTATION in annotations:
        return str(annotations[_CLASS_ANNOTATION])
    return (claim.get("spec") or {}).get("storageClassName") or ""


class ResourceClaimEvaluator(Evaluator):
    """Resource claims. Devices that a pod got through an extended resource are charged to the pod, not twice."""

    def __init__(self, classes: OtherObjects, pods: OtherObjects, claims: OtherObjects) -> None:
        self._classes, self._pods, self._claims = classes, pods, claims
        self._pod_usage = PodEvaluator().usage

    def concerns(self, operation: str, subresource: str) -> bool:
        return operation in (CREATE, UPDATE) and not subresource

    def matching(self, names: Iterable[str]) -> list[str]:
        extended = self._extended_resources()
        return [name for name in names if self._matches(name, extended)]

    def _matches(self, name: str, extended: dict[str, str]) -> bool:
        if name == _COUNT or name.endswith(_DEVICES):
            return True
        if name.startswith(_IMPLICIT):
            return bool(extended.get(name[len(_IMPLICIT) :]))
        return is_extended_in_quota(name) and name[len("requests.") :] in extended.values()

    def _extended_resources(self) -> dict[str, str]:
        """Device class → the extended resource it stands for."""
        return self._classes.remembered("extended", self._read_classes)

    def _read_classes(self) -> dict[str, str]:
        found = ((each["metadata"]["name"], each.get("spec") or {}) for each in self._classes.list())
        return {name: spec["extendedResourceName"] for name, spec in found if spec.get("extendedResourceName")}

    def usage(self, obj: Object, namespace: str) -> Amounts:
        used: Amounts = {_COUNT: ONE}
        for request in ((obj.get("spec") or {}).get("devices") or {}).get("requests") or ():
            for name, number in _devices(request).items():
                used[name] = used[name] + count(number) if name in used else count(number)
        self._add_extended(used, self._pod_amounts(obj, namespace))
        return used

    def _add_extended(self, used: Amounts, by_pod: Amounts) -> None:
        extended = self._extended_resources()
        more: Amounts = {}
        for name, quantity in used.items():
            if not name.endswith(_DEVICES) or name == _DEVICES:
                continue
            device_class = name[: -len(_DEVICES)]
            more[_IMPLICIT + device_class] = quantity
            if device_class in extended:
                more[f"requests.{extended[device_class]}"] = quantity
        for name, quantity in more.items():
            rest = quantity - by_pod[name] if name in by_pod else quantity
            if rest > ZERO:
                used[name] = rest

    def _pod_amounts(self, claim: Object, namespace: str) -> Amounts:
        """What the pod behind an extended resource claim is charged for already."""
        metadata = claim.get("metadata") or {}
        if (metadata.get("annotations") or {}).get(_EXTENDED) != "true":
            return {}
        owner = next((each for each in metadata.get("ownerReferences") or () if each.get("controller")), None)
        if owner is None or owner.get("kind") != "Pod" or owner.get("apiVersion") != "v1":
            return {}
        pod = self._pods.get(namespace, owner.get("name", ""))
        if pod is None or pod["metadata"].get("uid") != owner.get("uid") or not self._is_claim_of(pod, claim, owner):
            return {}
        return self._pod_usage(pod, namespace)

    def _is_claim_of(self, pod: Object, claim: Object, owner: Object) -> bool:
        status = (pod.get("status") or {}).get("extendedResourceClaimStatus")
        own = claim["metadata"]
        if status is not None:
            return bool(status.get("resourceClaimName") == own.get("name"))
        mine = (own.get("creationTimestamp", ""), own.get("name", ""))
        for other in self._claims.list(own.get("namespace", "")):
            metadata = other["metadata"]
            if (metadata.get("annotations") or {}).get(_EXTENDED) != "true":
                continue
            owners = metadata.get("ownerReferences") or ()
            same = any(each.get("controller") and each.get("uid") == owner.get("uid") for each in owners)
            if same and (metadata.get("creationTimestamp", ""), metadata["name"]) < mine:
                return False
        return True


def _devices(request: dict[str, Any]) -> dict[str, int]:
    """Devices by quota name; of alternatives, the most that one of them may take of each class."""
    if request.get("firstAvailable"):
        most: dict[str, int] = {}
        for each in request["firstAvailable"]:
            name = each.get("deviceClassName", "") + _DEVICES
            most[name] = max(most.get(name, 0), _number(each))
        return {name: number for name, number in most.items() if number}
    exactly = request.get("exactly")
    return {} if exactly is None else {exactly.get("deviceClassName", "") + _DEVICES: _number(exactly)}


def _number(request: dict[str, Any]) -> int:
    mode = request.get("allocationMode")
    if mode == "ExactCount":
        return int(request.get("count", 0))
    return _ALL_DEVICES if mode == "All" else 0
