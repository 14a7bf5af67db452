"""The resize subresource: requests and limits of cpu and memory change in place, nothing else does."""

from __future__ import annotations

from typing import Any, Final

from pilothouse.apis.core.pod.comparison import same
from pilothouse.apis.core.pod.qos import compute_qos, qos_of
from pilothouse.apis.core.pod.validation import SPEC, validate_pod
from pilothouse.apis.core.pod.volume_resizes import validate_volume_resizes
from pilothouse.apis.core.pod_spec.annotations import MIRROR
from pilothouse.apis.core.pod_spec.options import PodValidationOptions
from pilothouse.machinery.field_errors import WHOLE, FieldError, forbidden, invalid
from pilothouse.machinery.objects import Object

_MUTABLE: Final = ("cpu", "memory")
_ONLY: Final = "only cpu and memory resources are mutable"
_RESIZABLE_VOLUMES: Final = "InPlacePodVerticalScalingMemoryBackedVolumes"
_NO_POD_LEVEL: Final = (
    "resize of pods with pod-level resources is forbidden when InPlacePodLevelResourcesVerticalScalingEnabled feature "
    "gate is disabled"
)


def keep_only_resizes(pod: Object, old: Object, gates: frozenset[str]) -> None:
    """Drop every change but resources and resize policies. Containers that do not pair up are left for validation."""
    spec, before = pod["spec"], old["spec"]
    unknowing = "PodLevelResourcesFixDefaulting" in gates and "resources" not in spec and "resources" in before
    if unknowing:  # clients that do not know the field must not clear it
        spec["resources"] = {kind: dict(amounts) for kind, amounts in before["resources"].items() if kind != "claims"}
    lists = ("containers", "initContainers")
    if any(len(spec.get(kind) or ()) != len(before.get(kind) or ()) for kind in lists):
        return
    merged = dict(before)
    taken = ["resources"] if "InPlacePodLevelResourcesVerticalScaling" in gates else []
    if _RESIZABLE_VOLUMES in gates:
        taken.append("volumes")
    for key in taken:
        merged.pop(key, None)
        if key in spec:
            merged[key] = spec[key]
    for kind in lists:
        if spec.get(kind):
            merged[kind] = _merge_containers(spec[kind], before[kind])
    pod["spec"], pod["status"] = merged, old.get("status") or {}


def _merge_containers(containers: list[Object], old: list[Object]) -> list[Object]:
    merged = []
    for container, before in zip(containers, old, strict=True):
        if container.get("name") != before.get("name"):
            return containers
        one = {key: value for key, value in before.items() if key not in ("resources", "resizePolicy")}
        one.update((key, container[key]) for key in ("resources", "resizePolicy") if key in container)
        merged.append(one)
    return merged


def validate_resize(pod: Object, old: Object, errs: list[FieldError], options: PodValidationOptions) -> None:
    """Errors of a resize."""
    if MIRROR in (old["metadata"].get("annotations") or ()):
        errs.append(forbidden(WHOLE, "static pods cannot be resized"))
        return
    spec, before = pod["spec"], old["spec"]
    if (before.get("os") or {}).get("name") == "windows":
        errs.append(forbidden(WHOLE, "windows pods cannot be resized"))
        return
    validate_pod(pod, errs, options)
    if qos_of(old, options.gates) != compute_qos(spec, options.gates):
        shown = (pod.get("status") or {}).get("qosClass", "")
        errs.append(invalid(SPEC, shown, "Pod QOS Class may not change as a result of resizing"))
    if not _node_can_resize(old):
        errs.append(forbidden(SPEC, "Pod running on node without support for resize"))
    munged = dict(spec)
    if _has_amounts(spec.get("resources")) or _has_amounts(before.get("resources")):
        if "InPlacePodLevelResourcesVerticalScaling" not in options.gates:
            errs.append(forbidden(WHOLE, _NO_POD_LEVEL))
            return
        _validate_pod_level(spec, before, munged, errs)
    if not _validate_order(spec, before, errs):
        return
    _validate_nothing_removed(spec, before, errs)
    _validate_regular(spec, before, munged, errs)
    _validate_init(spec, before, munged, errs)
    if _RESIZABLE_VOLUMES in options.gates:
        validate_volume_resizes(spec.get("volumes") or [], before.get("volumes") or [], errs)
        munged["volumes"] = before.get("volumes")
    elif not same(spec.get("volumes"), before.get("volumes")):
        why = f"volumes are immutable on resize when {_RESIZABLE_VOLUMES} feature gate is disabled"
        errs.append(forbidden(SPEC.child("volumes"), why))
    if not errs and not same(munged, before):
        errs.append(forbidden(SPEC, _ONLY))


def _has_amounts(resources: Object | None) -> bool:
    return bool(resources and (resources.get("requests") or resources.get("limits")))


def _node_can_resize(pod: Object) -> bool:
    """The first running container tells whether its node reports resources; without one nobody knows."""
    for status in (pod.get("status") or {}).get("containerStatuses") or ():
        if "running" in (status.get("state") or ()):
            return "resources" in status
    return True


def _is_removed(amounts: Any, old: Any) -> bool:
    return bool(set(old or ()) - set(amounts or ()))


def _validate_pod_level(spec: Object, before: Object, munged: Object, errs: list[FieldError]) -> None:
    resources, old = spec.get("resources"), before.get("resources")
    if old is not None and resources is None:
        errs.append(forbidden(SPEC.child("resources"), "pod-level resources cannot be removed"))
        return
    for kind in ("requests", "limits"):
        if old is not None and _is_removed((resources or {}).get(kind), old.get(kind)):
            why = f"pod-level resource {kind} cannot be removed"
            errs.append(forbidden(SPEC.child("resources", kind), why))
    kept = _with_old_amounts(resources or {}, old or {})
    if old is None and not kept:
        munged.pop("resources", None)
    else:
        munged["resources"] = kept
    if not same(munged.get("resources"), old):
        errs.append(forbidden(SPEC, "only cpu and memory resources are mutable at pod-level"))


def _with_old_amounts(resources: Object, old: Object) -> Object:
    """The new resources as if cpu and memory had not changed."""
    kept = {key: value for key, value in resources.items() if key not in ("limits", "requests")}
    for kind in ("limits", "requests"):
        amounts = {name: text for name, text in (resources.get(kind) or {}).items() if name not in _MUTABLE}
        amounts.update((name, text) for name, text in (old.get(kind) or {}).items() if name in _MUTABLE)
        if amounts:
            kept[kind] = amounts
    return kept


def _validate_order(spec: Object, before: Object, errs: list[FieldError]) -> bool:
    found = len(errs)
    for kind in ("containers", "initContainers"):
        containers, old = spec.get(kind) or [], before.get(kind) or []
        if len(containers) != len(old):
            errs.append(forbidden(SPEC.child(kind), f"{kind} may not be added or removed on resize"))
            continue
        for position, (container, previous) in enumerate(zip(containers, old, strict=True)):
            if container.get("name") != previous.get("name"):
                where = SPEC.child(kind).index(position).child("name")
                errs.append(forbidden(where, f"{kind} may not be renamed or reordered on resize"))
    return len(errs) == found


def _validate_nothing_removed(spec: Object, before: Object, errs: list[FieldError]) -> None:
    for kind in ("initContainers", "containers"):
        for position, old in enumerate(before.get(kind) or ()):
            resources, previous = spec[kind][position].get("resources") or {}, old.get("resources") or {}
            for part in ("requests", "limits"):
                if _is_removed(resources.get(part), previous.get(part)):
                    where = SPEC.child(kind).index(position).child("resources", part)
                    errs.append(forbidden(where, f"resource {part} cannot be removed"))


def _without_resizes(container: Object, old: Object) -> Object:
    resources = _with_old_amounts(container.get("resources") or {}, old.get("resources") or {})
    return {**container, "resources": resources}


def _validate_regular(spec: Object, before: Object, munged: Object, errs: list[FieldError]) -> None:
    munged["containers"] = []
    for container, old in zip(spec.get("containers") or (), before.get("containers") or (), strict=True):
        kept = _without_resizes(container, old)
        if not same(kept, old):
            errs.append(forbidden(SPEC, _ONLY))
        munged["containers"].append(kept)


def _validate_init(spec: Object, before: Object, munged: Object, errs: list[FieldError]) -> None:
    if not spec.get("initContainers"):
        return
    munged["initContainers"] = []
    for position, (container, old) in enumerate(zip(spec["initContainers"], before["initContainers"], strict=True)):
        where = SPEC.child("initContainers").index(position)
        kept = _without_resizes(container, old)
        if not same(kept, old):
            why = "only cpu and memory resources for init or sidecar containers are mutable"
            errs.append(forbidden(where, why))
        if container.get("restartPolicy") != "Always" and not same(container, old):
            why = "non-sidecar init containers with a resize policy of RestartContainer cannot be resized"
            policies = [policy.get("restartPolicy") for policy in container.get("resizePolicy") or ()]
            errs += (forbidden(where, why) for policy in policies if policy == "RestartContainer")
        munged["initContainers"].append(kept)
