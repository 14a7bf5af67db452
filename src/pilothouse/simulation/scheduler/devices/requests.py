"""What a claim asks for: requests, and alternatives of which the first that can be had is taken."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final, NamedTuple

from pilothouse.cel.devices import is_selected
from pilothouse.cel.issues import CompileError
from pilothouse.cel.values import EvaluationError
from pilothouse.controllers.runtime.tolerations import tolerates
from pilothouse.machinery.objects import Object
from pilothouse.simulation.scheduler.devices.pools import Device

ClassOf = Callable[[str], Object | None]
_HINT: Final = (
    ". consider using CEL optional chaining (.? followed by orValue()) or guarding the check with has() for optional "
    "fields"
)


class AllocationFailed(Exception):
    """Something is wrong with a claim, a class or a pool; the pod cannot be scheduled anywhere before it is mended."""


class Request(NamedTuple):
    """One request, or one alternative of a request; what both can say."""

    claim: str
    """Namespace and name of the claim."""
    name: str
    parent: str
    device_class: Object
    spec: Object

    @property
    def full_name(self) -> str:
        """As results and configurations name it."""
        return f"{self.parent}/{self.name}" if self.parent else self.name

    @property
    def base_name(self) -> str:
        """The request's own name, where this is an alternative of it."""
        return self.parent or self.name

    @property
    def wants_all(self) -> bool:
        """Whether all devices that match are wanted."""
        return bool(self.spec.get("allocationMode") == "All")

    @property
    def number(self) -> int:
        """How many devices are wanted, if not all."""
        return int(self.spec.get("count") or 1)

    @property
    def is_admin(self) -> bool:
        """Whether devices are wanted for their administration, also those that others use."""
        return bool(self.spec.get("adminAccess"))

    @property
    def capacity(self) -> Mapping[str, str]:
        """How much of shared devices is wanted."""
        wanted: Mapping[str, str] = (self.spec.get("capacity") or {}).get("requests") or {}
        return wanted

    def selects(self, device: Device, value: Object, spend: Callable[[int], object]) -> bool:
        """Whether the selectors of the class and of the request mean a device; ``spend`` hears what each costs."""
        by_class = f"class {self.device_class['metadata']['name']}"
        for origin, selectors in (
            (by_class, self.device_class["spec"].get("selectors")),
            (f"claim {self.claim}", self.spec.get("selectors")),
        ):
            for index, selector in enumerate(selectors or ()):
                text, where = selector["cel"]["expression"], f"{origin}: selector #{index}"
                if not _is_selected(text, where, device, value, spend):
                    return False
        return True

    def tolerates(self, device: Device) -> bool:
        """Whether no taint of the device keeps the request from it."""
        taints = [each for each in device.spec.get("taints") or () if each["effect"] in ("NoSchedule", "NoExecute")]
        tolerations: Sequence[Object] = self.spec.get("tolerations") or ()
        return all(any(tolerates(each, taint) for each in tolerations) for taint in taints)


def _is_selected(text: str, origin: str, device: Device, value: Object, spend: Callable[[int], object]) -> bool:
    try:
        return is_selected(text, value, spend)
    except CompileError as error:
        raise AllocationFailed(f"{origin}: CEL compile error: {error}") from None
    except EvaluationError as error:
        message = f"{error}{_HINT}" if "no such key:" in str(error) else str(error)
        raise AllocationFailed(f"{origin} on device {device.id}: CEL runtime error: {message}") from None


def alternatives_of(claim: Object, class_of: ClassOf) -> list[list[Request]]:
    """For each request of the claim its alternatives, often one, in the order of preference."""
    name = f"{claim['metadata']['namespace']}/{claim['metadata']['name']}"
    found = []
    for stated in (claim["spec"].get("devices") or {}).get("requests") or ():
        if "exactly" in stated:
            found.append([_request(name, stated["name"], "", stated["exactly"], class_of)])
        else:
            parts = stated.get("firstAvailable") or ()
            found.append([_request(name, each["name"], stated["name"], each, class_of) for each in parts])
    return found


def _request(claim: str, name: str, parent: str, spec: Object, class_of: ClassOf) -> Request:
    device_class = class_of(spec["deviceClassName"])
    if device_class is None:
        missing = f'deviceclass.resource.k8s.io "{spec["deviceClassName"]}" not found'
        stated = f"could not retrieve device class {spec['deviceClassName']}: {missing}"
        raise AllocationFailed(f"claim {claim}, request {name}: {stated}")
    return Request(claim, name, parent, device_class, spec)
