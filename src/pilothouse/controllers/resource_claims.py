"""Resource claims of pods: made from templates, reserved for pods that others bound, and freed when pods are done.

A claim that was made for a pod goes with it; what was allocated to a claim that nobody uses is given back.
"""

from __future__ import annotations

from typing import Any, Final, Literal, NamedTuple

from pilothouse.controllers.manager.context import ControllerContext
from pilothouse.controllers.runtime.controller import Controller
from pilothouse.controllers.runtime.indexer import BY_CONTROLLER_UID, copy_of, key_of
from pilothouse.controllers.runtime.owners import controller_of, is_controlled_by, owner_reference
from pilothouse.controllers.runtime.pods import is_terminal
from pilothouse.machinery import errors
from pilothouse.machinery.objects import Object

_ACCOUNT: Final = "resource-claim-controller"
_NAME: Final = "resourceclaim-controller"
_MANAGER: Final = "ResourceClaimController"
_POD_CLAIM: Final = "resource.kubernetes.io/pod-claim-name"
_FINALIZER: Final = "resource.kubernetes.io/delete-protection"
_PODS_BY_TEMPLATE: Final = "pods-by-resource-claim-template"
_PODS_BY_CLAIM: Final = "pods-by-resource-claim"
_MOST_CONSUMERS: Final = 256
_MOST_BASE: Final = 57


class Item(NamedTuple):
    """A pod or a claim."""

    kind: Literal["pod", "claim"]
    namespace: str
    name: str


class ClaimFailed(Exception):
    """A claim that a pod needs cannot be had."""


def start(context: ControllerContext) -> None:
    """Start the controller."""
    ResourceClaims(context).controller.start(context.supervisor)


class ResourceClaims:
    """See the module's docstring."""

    def __init__(self, context: ControllerContext) -> None:
        informers, client = context.informers, context.client(_ACCOUNT)
        self._pods = informers.of("", "v1", "pods")
        self._pods.add_index(_PODS_BY_TEMPLATE, lambda pod: _named(pod, "resourceClaimTemplateName"))
        self._pods.add_index(_PODS_BY_CLAIM, _claims_used)
        self._claims = informers.of("resource.k8s.io", "v1", "resourceclaims")
        self._claims.add_index(BY_CONTROLLER_UID)
        self._templates = informers.of("resource.k8s.io", "v1", "resourceclaimtemplates")
        self._pod_client = client.of("", "v1", "pods")
        self._client = client.of("resource.k8s.io", "v1", "resourceclaims")
        self._events = context.recorder("resource_claim", _ACCOUNT)
        self._created: dict[tuple[str, str], Object] = {}
        """Claims that were made and that the informer may not know yet, by uid of their pod and name in it."""
        waits = [self._pods, self._claims, self._templates]
        self.controller: Controller[Item] = Controller(
            _NAME, self._reconcile, workers=10, wait_for=waits, clock=context.clock
        )
        self._pods.add_handler(self._pod_seen, lambda old, new: self._pod_seen(new), self._pod_gone, name=_NAME)
        self._claims.add_handler(self._claim_seen, lambda old, new: self._claim_seen(new), self._claim_gone, name=_NAME)
        self._templates.add_handler(self._template_seen, name=_NAME)

    # Following

    def _pod_seen(self, pod: Object) -> None:
        claims = pod["spec"].get("resourceClaims")
        if is_done(pod):
            if claims or (pod.get("status") or {}).get("extendedResourceClaimStatus"):
                self._look_at_claims(pod)
        elif claims:
            self.controller.queue.add(Item("pod", *key_of(pod)))

    def _pod_gone(self, pod: Object) -> None:
        for known in [each for each in self._created if each[0] == pod["metadata"]["uid"]]:
            del self._created[known]
        self._look_at_claims(pod)

    def _look_at_claims(self, pod: Object) -> None:
        namespace = pod["metadata"]["namespace"]
        for each in pod["spec"].get("resourceClaims") or ():
            name = claim_name(pod, each)
            if name:
                self.controller.queue.add(Item("claim", namespace, name))
        for claim in self._claims.lister.by_index(BY_CONTROLLER_UID, pod["metadata"]["uid"]):
            self._claim_seen(claim)

    def _claim_seen(self, claim: Object) -> None:
        self.controller.queue.add(Item("claim", *key_of(claim)))
        for pod in self._pods.lister.by_index(_PODS_BY_CLAIM, "/".join(key_of(claim))):
            self._pod_seen(pod)

    def _claim_gone(self, claim: Object) -> None:
        """The pod that it was made for needs another."""
        for pod in self._pods.lister.by_index(_PODS_BY_CLAIM, "/".join(key_of(claim))):
            self._pod_seen(pod)

    def _template_seen(self, template: Object) -> None:
        for pod in self._pods.lister.by_index(_PODS_BY_TEMPLATE, "/".join(key_of(template))):
            self._pod_seen(pod)

    async def _reconcile(self, item: Item) -> None:
        try:
            if item.kind == "pod":
                await self._sync_pod(item)
            else:
                await self._sync_claim(item)
        except errors.NotFound:
            return

    # Pods

    async def _sync_pod(self, item: Item) -> None:
        pod = self._pods.lister.get(item.namespace, item.name)
        if pod is None or pod["metadata"].get("deletionTimestamp"):
            return
        made: dict[str, str] = {}
        for pod_claim in pod["spec"].get("resourceClaims") or ():
            try:
                name = await self._ensure(pod, pod_claim)
            except ClaimFailed as error:
                text = f"PodResourceClaim {pod_claim['name']}: {error}"
                self._events.event(pod, "Warning", "FailedResourceClaimCreation", text)
                raise
            if name:
                made[pod_claim["name"]] = name
        if made:
            await self._write_names(pod, made)
        if pod["spec"].get("nodeName"):
            await self._reserve_all(pod)

    async def _ensure(self, pod: Object, pod_claim: Object) -> str:
        """The name of a claim that is new to the pod's status; empty if there is nothing to add."""
        template_name = pod_claim.get("resourceClaimTemplateName")
        if not template_name:
            return ""
        known = claim_name(pod, pod_claim)
        if known is not None:
            claim = self._claims.lister.get(pod["metadata"]["namespace"], known) if known else None
            if not known or (claim is not None and is_controlled_by(claim, pod)):
                return ""
        existing = self._existing(pod, pod_claim["name"])
        if existing is None:
            existing = await self._create(pod, pod_claim["name"], template_name)
        return str(existing["metadata"]["name"])

    def _existing(self, pod: Object, name: str) -> Object | None:
        uid = pod["metadata"]["uid"]
        for claim in self._claims.lister.by_index(BY_CONTROLLER_UID, uid):
            if (claim["metadata"].get("annotations") or {}).get(_POD_CLAIM) == name:
                self._created.pop((uid, name), None)
                return None if claim["metadata"].get("deletionTimestamp") else claim
        return self._created.get((uid, name))

    async def _create(self, pod: Object, name: str, template_name: str) -> Object:
        namespace, pod_name = key_of(pod)
        template = self._templates.lister.get(namespace, template_name)
        if template is None:
            missing = f'resourceclaimtemplate.resource.k8s.io "{template_name}" not found'
            raise ClaimFailed(f'resource claim template "{template_name}": {missing}')
        given = template["spec"].get("metadata") or {}
        metadata: dict[str, Any] = {
            "generateName": generate_name(pod_name, name),
            "namespace": namespace,
            "annotations": {**(given.get("annotations") or {}), _POD_CLAIM: name},
            "ownerReferences": [{**owner_reference(pod, "Pod", "v1"), "controller": True}],
        }
        if given.get("labels"):
            metadata["labels"] = given["labels"]
        try:
            claim = await self._client.create({"metadata": metadata, "spec": template["spec"]["spec"]})
        except errors.StatusError as error:
            raise ClaimFailed(f"create ResourceClaim : {error.message}") from error
        self._created[(pod["metadata"]["uid"], name)] = claim
        return claim

    async def _write_names(self, pod: Object, made: dict[str, str]) -> None:
        known = (pod.get("status") or {}).get("resourceClaimStatuses") or ()
        names = {each["name"]: each["resourceClaimName"] for each in known if each.get("resourceClaimName")} | made
        applied = {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": pod["metadata"]["name"], "namespace": pod["metadata"]["namespace"]},
            "status": {
                "resourceClaimStatuses": [{"name": name, "resourceClaimName": names[name]} for name in sorted(names)]
            },
        }
        await self._pod_client.apply(applied, _MANAGER, force=True, subresource="status")

    async def _reserve_all(self, pod: Object) -> None:
        """A pod that was bound past the scheduler has nobody else to reserve its claims."""
        namespace, name = key_of(pod)
        for pod_claim in pod["spec"].get("resourceClaims") or ():
            claim = self._claims.lister.get(namespace, claim_name(pod, pod_claim) or "")
            if claim is None or not (claim.get("status") or {}).get("allocation"):
                continue
            if pod_claim.get("resourceClaimTemplateName") and not is_controlled_by(claim, pod):
                continue
            consumers = claim["status"].get("reservedFor") or []
            uid = pod["metadata"]["uid"]
            if any(each["uid"] == uid for each in consumers) or len(consumers) >= _MOST_CONSUMERS:
                continue
            changed = copy_of(claim)
            changed["status"]["reservedFor"] = [*consumers, {"resource": "pods", "name": name, "uid": uid}]
            await self._client.update_status(changed)

    # Claims

    async def _sync_claim(self, item: Item) -> None:
        claim = self._claims.lister.get(item.namespace, item.name)
        if claim is None:
            return
        consumers = (claim.get("status") or {}).get("reservedFor") or []
        left = [each for each in consumers if await self._still_uses(item.namespace, each)]
        ours = _FINALIZER in (claim["metadata"].get("finalizers") or ())
        is_going = bool(claim["metadata"].get("deletionTimestamp"))
        if len(left) < len(consumers) or (ours and is_going and not left):
            await self._free(claim, left, ours)
        if not left:
            await self._delete_unused(claim)

    async def _still_uses(self, namespace: str, consumer: dict[str, Any]) -> bool:
        if (consumer.get("apiGroup") or "", consumer["resource"]) != ("", "pods"):
            return True
        pod = self._pods.lister.get(namespace, consumer["name"])
        if pod is None:
            try:
                pod = await self._pod_client.get(namespace, consumer["name"])
            except errors.NotFound:
                return False
        return bool(pod["metadata"]["uid"] == consumer["uid"]) and not is_done(pod)

    async def _free(self, claim: Object, left: list[dict[str, Any]], ours: bool) -> None:
        """Write who is left; with nobody left, give back what was allocated, and then the finalizer."""
        changed = copy_of(claim)
        status = changed.setdefault("status", {})
        status.pop("reservedFor", None)
        if left:
            status["reservedFor"] = left
        elif ours:
            status.pop("allocation", None)
        if status != (claim.get("status") or {}):
            changed = await self._client.update_status(changed)
        if ours and not left:
            changed["metadata"]["finalizers"].remove(_FINALIZER)
            await self._client.update(changed)

    async def _delete_unused(self, claim: Object) -> None:
        owner = controller_of(claim)
        if owner is None or (owner["apiVersion"], owner["kind"]) != ("v1", "Pod"):
            return
        namespace, name = key_of(claim)
        pod = self._pods.lister.get(namespace, owner["name"])
        if pod is not None and (pod["metadata"]["uid"] != owner["uid"] or is_done(pod)):
            await self._client.delete(namespace, name)


def is_done(pod: Object) -> bool:
    """Whether a pod needs its claims no more: it has ended, or goes without ever having had a node."""
    return is_terminal(pod) or bool(pod["metadata"].get("deletionTimestamp") and not pod["spec"].get("nodeName"))


def claim_name(pod: Object, pod_claim: Object) -> str | None:
    """The claim that an entry of a pod stands for; None if none was made yet, empty if none is needed."""
    named = pod_claim.get("resourceClaimName")
    if named:
        return str(named)
    for each in (pod.get("status") or {}).get("resourceClaimStatuses") or ():
        if each["name"] == pod_claim["name"]:
            return each.get("resourceClaimName") or ""
    return None


def generate_name(pod: str, claim: str) -> str:
    """The beginning of a claim's name: of both names as much as there is room for."""
    whole = f"{pod}-{claim}-"
    if len(whole) <= _MOST_BASE:
        return whole
    size = len(whole)
    pod_part = pod[: len(pod) * _MOST_BASE // size]
    return f"{pod_part}-{claim[: len(claim) * _MOST_BASE // size]}"


def _named(pod: Object, field: str) -> list[str]:
    namespace = pod["metadata"]["namespace"]
    claims = pod["spec"].get("resourceClaims") or ()
    return [f"{namespace}/{each[field]}" for each in claims if each.get(field)]


def _claims_used(pod: Object) -> list[str]:
    namespace = pod["metadata"]["namespace"]
    names = [claim_name(pod, each) for each in pod["spec"].get("resourceClaims") or ()]
    return [f"{namespace}/{name}" for name in names if name]
