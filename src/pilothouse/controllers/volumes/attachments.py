"""Volumes of drivers are attached to the nodes of the pods that use them, as far as objects go.

For every node: a ``VolumeAttachment`` for each CSI volume that a pod there uses, none for others; and what the driver
says is attached stands in the node's status, where the kubelet looks. A volume that the kubelet still has mounted
(``status.volumesInUse``) stays attached while the node is there; one that only a single node may have is not attached
to a second. Nodes whose kubelet attaches by itself (which lack an annotation) are left to it.
"""

from __future__ import annotations

import contextlib
import hashlib
import re
from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

from pilothouse.controllers.manager.context import ControllerContext
from pilothouse.controllers.runtime.controller import Controller
from pilothouse.controllers.runtime.indexer import PODS_BY_NODE, Key, key_of
from pilothouse.controllers.runtime.pods import is_terminal
from pilothouse.controllers.volumes.facts import PODS_BY_CLAIM, claim_key, claims_of_pod, pods_by_claim
from pilothouse.machinery import errors
from pilothouse.machinery.objects import Object

_ACCOUNT: Final = "attachdetach-controller"
_NAME: Final = "persistentvolume-attach-detach-controller"
_OWN_NAME: Final = re.compile(r"csi-[0-9a-f]{64}")
"""What attachments are called that are made here; those of others are left alone."""
_BY_NODE: Final = "attachments-by-node"
_BY_VOLUME: Final = "attachments-by-volume"
MANAGED: Final = "volumes.kubernetes.io/controller-managed-attach-detach"
_RETRY_SECONDS: Final = 5.0
_SINGLE_NODE: Final = frozenset(("ReadWriteOnce", "ReadWriteOncePod"))


class Attachable(NamedTuple):
    """A volume that a pod on a node wants."""

    volume: Object
    pod: Object

    @property
    def unique_name(self) -> str:
        """What nodes call it in their status."""
        csi = self.volume["spec"]["csi"]
        return unique_name(csi["driver"], csi["volumeHandle"])

    def attachment_name(self, node: str) -> str:
        """The name of its VolumeAttachment on a node."""
        csi = self.volume["spec"]["csi"]
        text = f"{csi['volumeHandle']}{csi['driver']}{node}"
        return f"csi-{hashlib.sha256(text.encode()).hexdigest()}"


def unique_name(driver: str, handle: str) -> str:
    """What nodes call a volume of a driver."""
    return f"kubernetes.io/csi/{driver}^{handle}"


def start(context: ControllerContext) -> None:
    """Start the controller."""
    Attachments(context).controller.start(context.supervisor)


class Attachments:
    """Keeps the attachments of nodes. Keys are node names."""

    def __init__(self, context: ControllerContext) -> None:
        informers, client = context.informers, context.client(_ACCOUNT)
        self._pods, self._nodes = informers.of("", "v1", "pods"), informers.of("", "v1", "nodes")
        self._claims = informers.of("", "v1", "persistentvolumeclaims")
        self._volumes = informers.of("", "v1", "persistentvolumes")
        self._drivers = informers.of("storage.k8s.io", "v1", "csidrivers")
        self._attachments = informers.of("storage.k8s.io", "v1", "volumeattachments")
        self._pods.add_index(PODS_BY_NODE)
        self._pods.add_index(PODS_BY_CLAIM, pods_by_claim)
        self._attachments.add_index(_BY_NODE, lambda each: [each["spec"]["nodeName"]])
        self._attachments.add_index(_BY_VOLUME, _volume_names)
        self._client = client.of("storage.k8s.io", "v1", "volumeattachments")
        self._node_client = client.of("", "v1", "nodes")
        self._events = context.recorder("attachdetach-controller", _ACCOUNT)
        self._asked: dict[str, tuple[str, str]] = {}
        """For volumes of a single node: which node's attachment was asked for last, and its name.

        The informer is behind, and the answer to a creation may be lost: what it does not show may be there.
        """
        self._asking: set[str] = set()
        """Volumes whose attachment is being created."""
        waits = [self._pods, self._nodes, self._claims, self._volumes, self._drivers, self._attachments]
        self.controller: Controller[str] = Controller(
            _NAME, self._reconcile, workers=2, wait_for=waits, clock=context.clock
        )
        self._pods.add_handler(self._pod_seen, lambda old, new: self._pod_seen(new), self._pod_seen, name=_NAME)
        # Informers are not equally far: whichever of pod, claim, volume and node is seen last must be heard of.
        self._claims.add_handler(
            lambda claim: self._claim_changed(key_of(claim)),
            lambda old, new: self._claim_changed(key_of(new)),
            name=_NAME,
        )
        self._volumes.add_handler(self._volume_seen, self._volume_changed, self._volume_gone, name=_NAME)
        add = self.controller.queue.add
        self._attachments.add_handler(
            lambda obj: add(obj["spec"]["nodeName"]),
            lambda old, new: add(new["spec"]["nodeName"]),
            self._attachment_gone,
            name=_NAME,
        )
        self._nodes.add_handler(
            lambda node: add(node["metadata"]["name"]),
            self._node_changed,
            lambda node: add(node["metadata"]["name"]),
            name=_NAME,
        )

    # Following

    def _pod_seen(self, pod: Object) -> None:
        if pod["spec"].get("nodeName") and claims_of_pod(pod):
            self.controller.queue.add(pod["spec"]["nodeName"])

    def _claim_changed(self, key: Key) -> None:
        for pod in self._pods.lister.by_index(PODS_BY_CLAIM, "/".join(key)):
            self._pod_seen(pod)

    def _volume_seen(self, volume: Object) -> None:
        key = claim_key(volume)
        if key is not None:
            self._claim_changed(key)

    def _volume_changed(self, old: Object, new: Object) -> None:
        if claim_key(old) != claim_key(new):
            self._volume_seen(new)

    def _volume_gone(self, volume: Object) -> None:
        self._asked.pop(volume["metadata"]["name"], None)

    def _attachment_gone(self, attachment: Object) -> None:
        """Another node may wait for the volume."""
        self.controller.queue.add(attachment["spec"]["nodeName"])
        for name in _volume_names(attachment):
            if self._asked.get(name, ("", ""))[1] == attachment["metadata"]["name"]:
                del self._asked[name]
            volume = self._volumes.lister.get("", name)
            if volume is not None:
                self._volume_seen(volume)

    def _node_changed(self, old: Object, new: Object) -> None:
        if _in_use(old) != _in_use(new) or _is_managed(old) != _is_managed(new):
            self.controller.queue.add(new["metadata"]["name"])

    # Reconciling

    async def _reconcile(self, name: str) -> float | None:
        node = self._nodes.lister.get("", name)
        if node is not None and not _is_managed(node):
            return None
        wanted = {} if node is None else self._wanted(name)
        there = self._attachments.lister.by_index(_BY_NODE, name)
        known = {each["metadata"]["name"]: each for each in there if _OWN_NAME.fullmatch(each["metadata"]["name"])}
        waits = False
        for attachment, what in wanted.items():
            if attachment not in known:
                waits |= not await self._attach(name, attachment, what)
        in_use = _in_use(node) if node is not None else set()
        for attachment, each in known.items():
            if attachment in wanted or each["metadata"].get("deletionTimestamp"):
                continue
            if self._unique_name_of(each) in in_use:
                waits = True
            else:
                await self._detach(attachment, each["metadata"]["uid"])
        if node is not None:
            await self._report(node, wanted, known)
        return _RETRY_SECONDS if waits else None

    def _wanted(self, node: str) -> dict[str, Attachable]:
        found: dict[str, Attachable] = {}
        for pod in self._pods.lister.by_index(PODS_BY_NODE, node):
            if is_terminal(pod):
                continue
            for volume in self._volumes_of(pod):
                what = Attachable(volume, pod)
                found.setdefault(what.attachment_name(node), what)
        return found

    def _volumes_of(self, pod: Object) -> Iterable[Object]:
        namespace = pod["metadata"]["namespace"]
        for name in claims_of_pod(pod):
            claim = self._claims.lister.get(namespace, name)
            volume = None if claim is None else self._volumes.lister.get("", claim["spec"].get("volumeName") or "")
            if volume is None or "csi" not in volume["spec"] or claim_key(volume) != (namespace, name):
                continue
            driver = self._drivers.lister.get("", volume["spec"]["csi"]["driver"])
            if driver is None or driver["spec"].get("attachRequired") is not False:
                yield volume

    async def _attach(self, node: str, attachment: str, what: Attachable) -> bool:
        """Whether the volume may be attached; if so it is asked for."""
        if not set(what.volume["spec"].get("accessModes") or ()) <= _SINGLE_NODE:
            await self._create(node, attachment, what)
            return True
        volume = what.volume["metadata"]["name"]
        if volume in self._asking:
            return False
        self._asking.add(volume)
        try:
            others = await self._other_nodes(volume, node)
            if others:
                self._tell_of_others(what, others)
                return False
            self._asked[volume] = (node, attachment)
            await self._create(node, attachment, what)
        finally:
            self._asking.discard(volume)
        return True

    async def _other_nodes(self, volume: str, node: str) -> set[str]:
        """Where a volume is attached or about to be."""
        shown = {each["spec"]["nodeName"] for each in self._attachments.lister.by_index(_BY_VOLUME, volume)}
        asked, attachment = self._asked.get(volume, (node, ""))
        if not shown and asked != node:
            try:
                await self._client.get("", attachment)
            except errors.NotFound:
                return set()
            return {asked}
        return shown

    async def _create(self, node: str, attachment: str, what: Attachable) -> None:
        spec = {
            "attacher": what.volume["spec"]["csi"]["driver"],
            "nodeName": node,
            "source": {"persistentVolumeName": what.volume["metadata"]["name"]},
        }
        with contextlib.suppress(errors.AlreadyExists):
            await self._client.create({"metadata": {"name": attachment}, "spec": spec})

    def _tell_of_others(self, what: Attachable, nodes: set[str]) -> None:
        key = claim_key(what.volume) or ("", "")
        users = self._pods.lister.by_index(PODS_BY_CLAIM, "/".join(key))
        there = sorted(pod["metadata"]["name"] for pod in users if pod["spec"].get("nodeName") in nodes)
        why = "Volume is already exclusively attached to one node and can't be attached to another"
        if there:
            why = f"Volume is already used by pod(s) {', '.join(there)}"
        text = f'Multi-Attach error for volume "{what.volume["metadata"]["name"]}" {why}'
        self._events.event(what.pod, "Warning", "FailedAttachVolume", text)

    async def _detach(self, attachment: str, uid: str) -> None:
        try:
            await self._client.delete("", attachment, uid=uid)
        except (errors.NotFound, errors.Conflict):
            return

    async def _report(self, node: Object, wanted: Mapping[str, Attachable], known: Mapping[str, Object]) -> None:
        """Write to the node what is attached, and tell the pods that waited for it."""
        reported = [each["name"] for each in (node.get("status") or {}).get("volumesAttached") or ()]
        attached: dict[str, Object] = {}
        for each in known.values():
            if (each.get("status") or {}).get("attached") and not each["metadata"].get("deletionTimestamp"):
                attached[self._unique_name_of(each)] = each
        if set(reported) == set(attached):
            return
        listed = [{"name": name, "devicePath": ""} for name in sorted(attached)]
        try:
            await self._node_client.patch(
                "", node["metadata"]["name"], {"status": {"volumesAttached": listed or None}}, subresource="status"
            )
        except errors.NotFound:
            return
        for what in wanted.values():
            if what.unique_name in attached and what.unique_name not in reported:
                text = f'AttachVolume.Attach succeeded for volume "{what.volume["metadata"]["name"]}" '
                self._events.event(what.pod, "Normal", "SuccessfulAttachVolume", text)

    def _unique_name_of(self, attachment: Object) -> str:
        volume = self._volumes.lister.get("", (_volume_names(attachment) or [""])[0])
        csi = {} if volume is None else volume["spec"].get("csi") or {}
        return unique_name(attachment["spec"]["attacher"], csi.get("volumeHandle") or "")


def _is_managed(node: Object) -> bool:
    return bool((node["metadata"].get("annotations") or {}).get(MANAGED) == "true")


def _in_use(node: Object) -> set[str]:
    return set((node.get("status") or {}).get("volumesInUse") or ())


def _volume_names(attachment: Object) -> list[str]:
    name = attachment["spec"]["source"].get("persistentVolumeName")
    return [name] if name else []
