"""Fields of features that are off: they are dropped as if unknown, unless the stored object already uses them.

Only gates that are off by default in this release appear here, in no particular order: they do not touch each other.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

Struct = dict[str, Any]

_PROBES: Final = ("livenessProbe", "readinessProbe", "startupProbe")
_CONTAINER_LISTS: Final = ("containers", "initContainers", "ephemeralContainers")
_LEGACY_ANNOTATIONS: Final = (
    "pod.beta.kubernetes.io/init-containers",
    "pod.alpha.kubernetes.io/init-containers",
    "pod.beta.kubernetes.io/init-container-statuses",
    "pod.alpha.kubernetes.io/init-container-statuses",
)


def drop_disabled_template_fields(template: Struct, old: Struct | None) -> None:
    """What a workload's template loses; ``old`` is the stored template."""
    drop_disabled_pod_fields(template["spec"], old["spec"] if old else None)
    drop_legacy_annotations(template["metadata"])


def drop_legacy_annotations(metadata: Struct) -> None:
    """Annotations from before init containers had fields."""
    annotations = metadata.get("annotations")
    if annotations:
        for key in _LEGACY_ANNOTATIONS:
            annotations.pop(key, None)
        if not annotations:
            del metadata["annotations"]


def drop_disabled_pod_fields(spec: Struct, old_spec: Struct | None) -> None:
    """What a pod spec loses; ``old_spec`` is the stored one."""
    for key in ("schedulingGroup", "evictionResponders"):
        if key in spec and not (old_spec and old_spec.get(key)):
            del spec[key]
    volumes = spec.get("volumes")
    if volumes:
        _drop_volume_fields(volumes, (old_spec or {}).get("volumes") or ())
    uses = _Uses()
    for container in _containers(spec):
        if _mentions(container):
            if old_spec and not uses.known:
                uses.look_at(old_spec)
            _drop_container_fields(container, uses)


def _containers(spec: Struct) -> Iterator[Struct]:
    for key in _CONTAINER_LISTS:
        yield from spec.get(key) or ()


def _mentions(container: Struct) -> bool:
    """Whether a container has a field at all that might be dropped."""
    return (
        "volumeMounts" in container
        or "lifecycle" in container
        or "livenessProbe" in container
        or "readinessProbe" in container
        or "startupProbe" in container
    )


class _Uses:
    """Which features the stored containers use."""

    __slots__ = ("grpc_mode", "http_protocol", "known", "mount_options", "stop_signal")

    def __init__(self) -> None:
        self.known = self.grpc_mode = self.http_protocol = self.mount_options = self.stop_signal = False

    def look_at(self, spec: Struct) -> None:
        self.known = True
        for container in _containers(spec):
            lifecycle = container.get("lifecycle") or {}
            self.stop_signal |= "stopSignal" in lifecycle
            self.mount_options |= any(mount.get("bindMountOptions") for mount in container.get("volumeMounts") or ())
            self.http_protocol |= any("protocol" in action for action in _actions(container, "httpGet"))
            self.grpc_mode |= any("mode" in action for action in _actions(container, "grpc"))


def _actions(container: Struct, kind: str) -> Iterator[Struct]:
    """The actions of one kind of a container's probes and hooks."""
    for key in _PROBES:
        probe = container.get(key)
        if probe and kind in probe:
            yield probe[kind]
    for hook in (container.get("lifecycle") or {}).values():
        if isinstance(hook, dict) and kind in hook:
            yield hook[kind]


def _drop_container_fields(container: Struct, uses: _Uses) -> None:
    if not uses.mount_options:
        for mount in container.get("volumeMounts") or ():
            mount.pop("bindMountOptions", None)
    if not uses.http_protocol:
        for action in _actions(container, "httpGet"):
            action.pop("protocol", None)
    if not uses.grpc_mode:
        for action in _actions(container, "grpc"):
            action.pop("mode", None)
    lifecycle = container.get("lifecycle")
    if lifecycle and not uses.stop_signal and lifecycle.pop("stopSignal", None) is not None and not lifecycle:
        del container["lifecycle"]


def _drop_volume_fields(volumes: list[Struct], old: Any) -> None:
    if not any("mode" in volume["emptyDir"] for volume in old if "emptyDir" in volume):
        for volume in volumes:
            if "emptyDir" in volume:
                volume["emptyDir"].pop("mode", None)
    if not any("defaultUser" in part or "user" in part for volume in old for part in _owned_parts(volume)):
        for volume in volumes:
            for part in _owned_parts(volume):
                part.pop("defaultUser", None)
                part.pop("user", None)


def _owned_parts(volume: Struct) -> Iterator[Struct]:
    """The parts of a volume that may name the user who owns the files: of the first source that has any."""
    for kind in ("secret", "configMap", "downwardAPI"):
        if kind in volume:
            yield volume[kind]
            yield from volume[kind].get("items") or ()
            return
    if "projected" in volume:
        yield volume["projected"]
        for source in volume["projected"].get("sources") or ():
            yield from _owned_projection_parts(source)


def _owned_projection_parts(source: Struct) -> Iterator[Struct]:
    for kind in ("secret", "downwardAPI", "configMap"):
        if kind in source:
            yield from source[kind].get("items") or ()
            return
    for kind in ("serviceAccountToken", "clusterTrustBundle", "podCertificate"):
        if kind in source:
            yield source[kind]
            return


def drop_disabled_status_fields(status: Struct, old: Struct | None) -> None:
    """What a pod's status loses; ``old`` is the stored status."""
    old = old or {}
    for key in ("nodeAllocatableResourceClaimStatuses", "volumeHealth"):
        if key in status and not old.get(key):
            del status[key]
    if not any("volumeStatus" in mount for mount in _status_mounts(old)):
        for mount in _status_mounts(status):
            mount.pop("volumeStatus", None)


def _status_mounts(status: Struct) -> Iterator[Struct]:
    for key in ("containerStatuses", "initContainerStatuses", "ephemeralContainerStatuses"):
        for container in status.get(key) or ():
            yield from container.get("volumeMounts") or ()
