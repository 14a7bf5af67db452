"""Resource claims of pods and pod groups: made from templates, reserved for pods that others bound, freed in the end.

A claim that was made for a pod goes with it; what was allocated to a claim that nobody uses is given back. Where a pod
and its group say the same of a claim, it is the group's: made for it, reserved for it, and kept until the group goes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, Literal, NamedTuple

from pilothouse.controllers.manager.context import ControllerContext
from pilothouse.controllers.runtime import pod_groups
from pilothouse.controllers.runtime.client import ResourceClient
from pilothouse.controllers.runtime.controller import Controller
from pilothouse.controllers.runtime.indexer import BY_CONTROLLER_UID, controller_uids, copy_of, key_of
from pilothouse.controllers.runtime.owners import controller_of, owner_reference
from pilothouse.controllers.runtime.pods import is_terminal
from pilothouse.machinery import errors
from pilothouse.machinery.objects import Object

_ACCOUNT: Final = "resource-claim-controller"
_NAME: Final = "resourceclaim-controller"
_MANAGER: Final = "ResourceClaimController"
_POD_CLAIM: Final = "resource.kubernetes.io/pod-claim-name"
_FINALIZER: Final = "resource.kubernetes.io/delete-protection"
_BY_TEMPLATE: Final = "by-resource-claim-template"
_BY_CLAIM: Final = "by-resource-claim"
_BY_ENTRY: Final = "by-entry"
_PODS_BY_GROUP: Final = "pods-by-scheduling-group"
_MOST_CONSUMERS: Final = 256
_MOST_BASE: Final = 57


class Item(NamedTuple):
    """A pod, a pod group or a claim."""

    kind: Literal["pod", "group", "claim"]
    namespace: str
    name: str


class ClaimFailed(Exception):
    """A claim that a pod needs cannot be had."""


class Holder(NamedTuple):
    """What claims are made for."""

    obj: Object
    kind: str
    api_version: str
    client: ResourceClient

    def failed(self, name: str, error: ClaimFailed) -> str:
        """What an event says of a claim that cannot be had."""
        return f"{self.kind}ResourceClaim {name}: {error}"


def start(context: ControllerContext) -> None:
    """Start the controller."""
    ResourceClaims(context).controller.start(context.supervisor)


class ResourceClaims:
    """See the module's docstring."""

    def __init__(self, context: ControllerContext) -> None:
        informers, client = context.informers, context.client(_ACCOUNT)
        self._pods = informers.of("", "v1", "pods")
        self._pods.add_index(_BY_TEMPLATE, lambda pod: _named(pod, "resourceClaimTemplateName"))
        self._pods.add_index(_BY_CLAIM, _claims_used)
        self._claims = informers.of("resource.k8s.io", "v1", "resourceclaims")
        self._claims.add_index(BY_CONTROLLER_UID)
        self._claims.add_index(_BY_ENTRY, _entries)
        self._templates = informers.of("resource.k8s.io", "v1", "resourceclaimtemplates")
        self._groups = informers.of(pod_groups.GROUP, pod_groups.VERSION, pod_groups.RESOURCE)
        self._groups.add_index(_BY_TEMPLATE, lambda group: _named(group, "resourceClaimTemplateName"))
        self._groups.add_index(_BY_CLAIM, _claims_used)
        self._pods.add_index(_PODS_BY_GROUP, _group_keys)
        self._pod_client = client.of("", "v1", "pods")
        self._group_client = client.of(pod_groups.GROUP, pod_groups.VERSION, pod_groups.RESOURCE)
        self._client = client.of("resource.k8s.io", "v1", "resourceclaims")
        self._events = context.recorder("resource_claim", _ACCOUNT)
        self._created: dict[tuple[str, str], Object] = {}
        """Claims that were made and that the informer may not know yet, by uid of their holder and name in it."""
        waits = [self._pods, self._claims, self._templates]
        self.controller: Controller[Item] = Controller(
            _NAME, self._reconcile, workers=10, wait_for=waits, clock=context.clock
        )
        self._pods.add_handler(self._pod_seen, lambda old, new: self._pod_seen(new), self._pod_gone, name=_NAME)
        self._claims.add_handler(self._claim_seen, lambda old, new: self._claim_seen(new), self._claim_gone, name=_NAME)
        self._templates.add_handler(self._template_seen, name=_NAME)
        self._groups.add_handler(self._group_seen, lambda old, new: self._group_seen(new), self._group_gone, name=_NAME)

    # Following

    def _pod_seen(self, pod: Object) -> None:
        claims = pod["spec"].get("resourceClaims")
        if is_done(pod):
            if claims or (pod.get("status") or {}).get("extendedResourceClaimStatus"):
                self._look_at_claims(pod)
        elif claims:
            self.controller.queue.add(Item("pod", *key_of(pod)))

    def _pod_gone(self, pod: Object) -> None:
        self._forget_created(pod)
        self._look_at_claims(pod)

    def _group_seen(self, group: Object) -> None:
        if group["spec"].get("resourceClaims"):
            self.controller.queue.add(Item("group", *key_of(group)))
            for pod in self._pods.lister.by_index(_PODS_BY_GROUP, "/".join(key_of(group))):
                self._pod_seen(pod)

    def _group_gone(self, group: Object) -> None:
        self._forget_created(group)
        self._look_at_claims(group)

    def _forget_created(self, holder: Object) -> None:
        for known in [each for each in self._created if each[0] == holder["metadata"]["uid"]]:
            del self._created[known]

    def _look_at_claims(self, holder: Object) -> None:
        namespace = holder["metadata"]["namespace"]
        name_of = claim_names(holder)
        for each in holder["spec"].get("resourceClaims") or ():
            name = name_of(each)
            if name:
                self.controller.queue.add(Item("claim", namespace, name))
        for claim in self._claims.lister.by_index(BY_CONTROLLER_UID, holder["metadata"]["uid"]):
            self._claim_seen(claim)

    def _claim_seen(self, claim: Object) -> None:
        self.controller.queue.add(Item("claim", *key_of(claim)))
        self._claim_gone(claim)

    def _claim_gone(self, claim: Object) -> None:
        """What it was made for needs another."""
        self._wake(_BY_CLAIM, claim)

    def _template_seen(self, template: Object) -> None:
        self._wake(_BY_TEMPLATE, template)

    def _wake(self, index: str, used: Object) -> None:
        key = "/".join(key_of(used))
        for pod in self._pods.lister.by_index(index, key):
            self._pod_seen(pod)
        for group in self._groups.lister.by_index(index, key):
            self._group_seen(group)

    async def _reconcile(self, item: Item) -> None:
        try:
            if item.kind == "pod":
                await self._sync_pod(item)
            elif item.kind == "group":
                await self._sync_group(item)
            else:
                await self._sync_claim(item)
        except errors.NotFound:
            return

    # Pods

    async def _sync_pod(self, item: Item) -> None:
        pod = self._pods.lister.get(item.namespace, item.name)
        if pod is None or pod["metadata"].get("deletionTimestamp"):
            return
        group = pod_groups.group_of(pod, self._groups.lister.get)
        await self._ensure_all(Holder(pod, "Pod", "v1", self._pod_client), group)
        if pod["spec"].get("nodeName"):
            await self._reserve_all(pod, group)

    async def _sync_group(self, item: Item) -> None:
        group = self._groups.lister.get(item.namespace, item.name)
        if group is not None and not group["metadata"].get("deletionTimestamp"):
            await self._ensure_all(Holder(group, "PodGroup", pod_groups.API_VERSION, self._group_client))

    async def _ensure_all(self, holder: Holder, group: Object | None = None) -> None:
        """Make the claims of a pod or a group that are not there, and write their names into its status."""
        made: dict[str, str] = {}
        name_of = claim_names(holder.obj)
        for entry in holder.obj["spec"].get("resourceClaims") or ():
            try:
                name = await self._ensure(holder, entry, name_of(entry), group)
            except ClaimFailed as error:
                text = holder.failed(entry["name"], error)
                self._events.event(
                    holder.obj,
                    "Warning",
                    "FailedResourceClaimCreation",
                    text,
                    kind=holder.kind,
                    api_version=holder.api_version,
                )
                raise
            if name:
                made[entry["name"]] = name
        if made:
            await self._write_names(holder, made)

    async def _ensure(self, holder: Holder, entry: Object, known: str | None, group: Object | None) -> str:
        """The name of a claim that is new to the holder's status; empty if there is nothing to add."""
        template_name = entry.get("resourceClaimTemplateName")
        if not template_name:
            return ""
        if known is not None:
            claim = self._claims.lister.get(holder.obj["metadata"]["namespace"], known) if known else None
            if not known or (claim is not None and pod_groups.is_made_for(claim, holder.obj)):
                return ""
        if group is not None and pod_groups.is_shared(entry, group):
            shared = self._existing(group, entry["name"])
            return "" if shared is None else str(shared["metadata"]["name"])
        existing = self._existing(holder.obj, entry["name"])
        if existing is None:
            existing = await self._create(holder, entry["name"], template_name)
        return str(existing["metadata"]["name"])

    def _existing(self, holder: Object, name: str) -> Object | None:
        uid = holder["metadata"]["uid"]
        for claim in self._claims.lister.by_index(_BY_ENTRY, f"{uid}/{name}"):
            self._created.pop((uid, name), None)
            return None if claim["metadata"].get("deletionTimestamp") else claim
        return self._created.get((uid, name))

    async def _create(self, holder: Holder, name: str, template_name: str) -> Object:
        namespace, holder_name = key_of(holder.obj)
        template = self._templates.lister.get(namespace, template_name)
        if template is None:
            missing = f'resourceclaimtemplate.resource.k8s.io "{template_name}" not found'
            raise ClaimFailed(f'resource claim template "{template_name}": {missing}')
        given = template["spec"].get("metadata") or {}
        metadata: dict[str, Any] = {
            "generateName": generate_name(holder_name, name),
            "namespace": namespace,
            "annotations": {**(given.get("annotations") or {}), _POD_CLAIM: name},
            "ownerReferences": [
                {**owner_reference(holder.obj, holder.kind, holder.api_version), "controller": True},
            ],
        }
        if given.get("labels"):
            metadata["labels"] = given["labels"]
        try:
            claim = await self._client.create({"metadata": metadata, "spec": template["spec"]["spec"]})
        except errors.StatusError as error:
            raise ClaimFailed(f"create ResourceClaim : {error.message}") from error
        self._created[(holder.obj["metadata"]["uid"], name)] = claim
        return claim

    async def _write_names(self, holder: Holder, made: dict[str, str]) -> None:
        known = (holder.obj.get("status") or {}).get("resourceClaimStatuses") or ()
        names = {each["name"]: each["resourceClaimName"] for each in known if each.get("resourceClaimName")} | made
        applied = {
            "apiVersion": holder.api_version,
            "kind": holder.kind,
            "metadata": {name: holder.obj["metadata"][name] for name in ("name", "namespace")},
            "status": {
                "resourceClaimStatuses": [{"name": name, "resourceClaimName": names[name]} for name in sorted(names)]
            },
        }
        await holder.client.apply(applied, _MANAGER, force=True, subresource="status")

    async def _reserve_all(self, pod: Object, group: Object | None) -> None:
        """A pod that was bound past the scheduler has nobody else to reserve its claims."""
        namespace = pod["metadata"]["namespace"]
        name_of = claim_names(pod)
        for pod_claim in pod["spec"].get("resourceClaims") or ():
            claim = self._claims.lister.get(namespace, name_of(pod_claim) or "")
            if claim is None or not (claim.get("status") or {}).get("allocation"):
                continue
            if pod_claim.get("resourceClaimTemplateName") and not pod_groups.is_made_for(claim, pod):
                continue
            consumers = claim["status"].get("reservedFor") or []
            if pod_groups.is_reserved_for(claim, pod) or len(consumers) >= _MOST_CONSUMERS:
                continue
            changed = copy_of(claim)
            changed["status"]["reservedFor"] = [*consumers, pod_groups.consumer_of(pod, pod_claim, group)]
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
        if pod_groups.is_group(consumer):
            return await self._is_there(namespace, consumer)
        if (consumer.get("apiGroup") or "", consumer["resource"]) != ("", "pods"):
            return True
        pod = self._pods.lister.get(namespace, consumer["name"])
        if pod is None:
            try:
                pod = await self._pod_client.get(namespace, consumer["name"])
            except errors.NotFound:
                return False
        return bool(pod["metadata"]["uid"] == consumer["uid"]) and not is_done(pod)

    async def _is_there(self, namespace: str, consumer: dict[str, Any]) -> bool:
        """Whether a group is there: a claim is kept for it until it goes."""
        group = self._groups.lister.get(namespace, consumer["name"])
        if group is None:
            try:
                group = await self._group_client.get(namespace, consumer["name"])
            except errors.NotFound:
                return False
        return bool(group["metadata"]["uid"] == consumer["uid"])

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


def claim_names(holder: Object) -> Callable[[Object], str | None]:
    """A function that names the claim which an entry of a pod or a group stands for.

    It gives None if none was made yet, and nothing if none is needed. There may be thousands of entries.
    """
    known: dict[str, str] = {}
    for each in (holder.get("status") or {}).get("resourceClaimStatuses") or ():
        known.setdefault(each["name"], each.get("resourceClaimName") or "")

    def name_of(entry: Object) -> str | None:
        named = entry.get("resourceClaimName")
        return str(named) if named else known.get(entry["name"])

    return name_of


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


def _group_keys(pod: Object) -> list[str]:
    name = pod_groups.group_name(pod)
    return [f"{pod['metadata']['namespace']}/{name}"] if name else []


def _claims_used(pod: Object) -> list[str]:
    namespace = pod["metadata"]["namespace"]
    names = map(claim_names(pod), pod["spec"].get("resourceClaims") or ())
    return [f"{namespace}/{name}" for name in names if name]


def _entries(claim: Object) -> list[str]:
    """The entry of a pod or a group that a claim was made for."""
    entry = (claim["metadata"].get("annotations") or {}).get(_POD_CLAIM)
    return [] if entry is None else [f"{uid}/{entry}" for uid in controller_uids(claim)]
