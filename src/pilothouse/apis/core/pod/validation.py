"""Validation of pods: new ones, and what each kind of update may change."""

from __future__ import annotations

from typing import Any, Final

from pilothouse.apis.core.internal_form import show_change
from pilothouse.apis.core.pod.comparison import same
from pilothouse.apis.core.pod_spec.affinity import REQUIRED
from pilothouse.apis.core.pod_spec.annotations import (
    MIRROR,
    validate_annotation_updates,
    validate_pod_annotations,
    validate_profiles_match,
)
from pilothouse.apis.core.pod_spec.containers import validate_image
from pilothouse.apis.core.pod_spec.options import PodValidationOptions
from pilothouse.apis.core.pod_spec.tolerations import validate_added_tolerations
from pilothouse.apis.core.pod_spec.validation import validate_pod_spec
from pilothouse.apis.validation import NEGATIVE
from pilothouse.machinery.field_errors import WHOLE, FieldError, Path, forbidden, invalid, not_supported, required
from pilothouse.machinery.go_quote import quote
from pilothouse.machinery.names import check_dns1123_subdomain
from pilothouse.machinery.objects import Object
from pilothouse.machinery.schema.emptied import unset

SPEC: Final = Path("spec")
ANNOTATIONS: Final = Path("metadata").child("annotations")
_NODE_AFFINITY: Final = SPEC.child("affinity", "nodeAffinity")
_UPDATABLE: Final = (
    "pod updates may not change fields other than `spec.containers[*].image`,`spec.initContainers[*].image`,"
    "`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations),"
    "`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)"
)


def validate_pod(pod: Object, errs: list[FieldError], options: PodValidationOptions) -> None:
    """Errors of a pod in whatever state."""
    metadata, spec = pod["metadata"], pod["spec"]
    annotations = metadata.get("annotations")
    if annotations:
        validate_pod_annotations(annotations, spec, ANNOTATIONS, errs, options)
    validate_pod_spec(spec, metadata, SPEC, errs, options)
    if not spec.get("serviceAccountName"):
        _validate_no_tokens(spec, errs)
    grace = spec.get("terminationGracePeriodSeconds", 0)
    if grace < 0:
        errs.append(invalid(SPEC.child("terminationGracePeriodSeconds"), grace, NEGATIVE))
    for kind in ("containers", "initContainers"):
        for position, container in enumerate(spec.get(kind) or ()):
            image = container.get("image")
            if image and (image[0].isspace() or image[-1].isspace()):
                validate_image(container, SPEC.child(kind).index(position), errs)


def _validate_no_tokens(spec: Object, errs: list[FieldError]) -> None:
    why = "must not be specified when serviceAccountName is not set"
    for at, volume in enumerate(spec.get("volumes") or ()):
        if "projected" in volume:
            where = SPEC.child("volumes").index(at).child("projected", "sources")
            for position, source in enumerate(volume["projected"].get("sources") or ()):
                if "serviceAccountToken" in source:
                    errs.append(forbidden(where.index(position).child("serviceAccountToken"), why))


def validate_new_pod(pod: Object, errs: list[FieldError], options: PodValidationOptions) -> None:
    """Errors of a pod that is to be created."""
    validate_pod(pod, errs, options)
    spec = pod["spec"]
    if spec.get("ephemeralContainers"):
        errs.append(forbidden(SPEC.child("ephemeralContainers"), "cannot be set on create"))
    if spec.get("nodeName") and spec.get("schedulingGates"):
        why = "cannot be set until all schedulingGates have been cleared"
        errs.append(forbidden(SPEC.child("nodeName"), why))
    annotations = pod["metadata"].get("annotations")
    if annotations:
        validate_profiles_match(annotations, spec, SPEC, errs)


def validate_annotations_of_update(
    pod: Object, old: Object, errs: list[FieldError], options: PodValidationOptions
) -> None:
    """Errors of changed annotations."""
    annotations, before = pod["metadata"].get("annotations") or {}, old["metadata"].get("annotations") or {}
    if annotations or before:
        validate_annotation_updates(annotations, before, ANNOTATIONS, errs)
        validate_pod_annotations(annotations, pod["spec"], ANNOTATIONS, errs, options)


def validate_pod_update(pod: Object, old: Object, errs: list[FieldError], options: PodValidationOptions) -> None:
    """Errors of a plain update: images, deadline, tolerations and gates may change, and little else."""
    validate_pod(pod, errs, options)
    validate_annotations_of_update(pod, old, errs, options)
    spec, before = pod["spec"], old["spec"]
    for kind in ("containers", "initContainers"):
        if not _validate_images(spec.get(kind) or [], before.get(kind) or [], SPEC.child(kind), errs):
            return
    if not _validate_deadline(spec.get("activeDeadlineSeconds"), before.get("activeDeadlineSeconds"), errs):
        return
    tolerations = spec.get("tolerations") or [], before.get("tolerations") or []
    validate_added_tolerations(*tolerations, SPEC.child("tolerations"), errs, options)
    _validate_gates(spec.get("schedulingGates") or (), before.get("schedulingGates") or (), errs)
    if spec == before:
        return
    munged = _with_updatable_fields_of(spec, before)
    if before.get("schedulingGates"):
        _munge_gated(munged, before, errs)
    if not same(munged, before):
        errs.append(forbidden(SPEC, f"{_UPDATABLE}\n{show_change('core.v1.PodSpec', before, munged)}"))


def _validate_images(containers: list[Object], old: list[Object], path: Path, errs: list[FieldError]) -> bool:
    if len(containers) != len(old):
        errs.append(forbidden(path, "pod updates may not add or remove containers"))
        return False
    for position, container in enumerate(containers):
        if not container.get("image"):
            errs.append(required(path.index(position).child("image"), ""))
        validate_image(container, path.index(position), errs)
    return True


def _validate_deadline(deadline: int | None, old: int | None, errs: list[FieldError]) -> bool:
    """It may come into being or shrink; tells whether to go on."""
    where = SPEC.child("activeDeadlineSeconds")
    if deadline is None:
        if old is not None:
            errs.append(invalid(where, None, "must not update from a positive integer to nil value"))
        return True
    if not 0 <= deadline < 2**31:
        errs.append(invalid(where, deadline, f"must be between 0 and {2**31 - 1}, inclusive"))
        return False
    if old is not None and old < deadline:
        errs.append(invalid(where, deadline, "must be less than or equal to previous value"))
        return False
    return True


def _validate_gates(gates: Any, old: Any, errs: list[FieldError]) -> None:
    known = {gate.get("name", "") for gate in old}
    places = {gate.get("name", ""): position for position, gate in enumerate(gates)}
    for name, position in places.items():
        if name not in known:
            why = f"only deletion is allowed, but found new scheduling gate '{name}'"
            errs.append(forbidden(SPEC.child("schedulingGates").index(position).child("name"), why))


def _put(spec: Object, old: Object, name: str) -> None:
    if name in old:
        spec[name] = old[name]
    else:
        unset(spec, name)


def _with_updatable_fields_of(spec: Object, old: Object) -> Object:
    """The new spec as if nothing had changed that may."""
    munged = spec.copy()
    for kind in ("containers", "initContainers"):
        unset(munged, kind)
        if kind in spec:
            munged[kind] = [container.copy() for container in spec[kind] or ()]
            for container, before in zip(munged[kind], old.get(kind) or (), strict=True):
                _put(container, before, "image")
    for name in ("activeDeadlineSeconds", "schedulingGates", "tolerations"):
        _put(munged, old, name)
    if old.get("terminationGracePeriodSeconds", 0) < 0 and munged.get("terminationGracePeriodSeconds") == 1:
        munged["terminationGracePeriodSeconds"] = old["terminationGracePeriodSeconds"]
    return munged


def _munge_gated(munged: Object, old: Object, errs: list[FieldError]) -> None:
    """While gates hold a pod back, its choice of nodes may still be narrowed."""
    selector, before = munged.get("nodeSelector") or {}, old.get("nodeSelector") or {}
    if selector != before:
        if any(selector.get(key) != value for key, value in before.items()):
            why = "only additions to spec.nodeSelector are allowed (no mutations or deletions)"
            errs.append(invalid(SPEC.child("nodeSelector"), dict(sorted(selector.items())) or None, why))
        _put(munged, old, "nodeSelector")
    affinity, old_affinity = munged.get("affinity"), old.get("affinity")
    nodes, old_nodes = (affinity or {}).get("nodeAffinity"), (old_affinity or {}).get("nodeAffinity")
    if nodes == old_nodes:
        return
    _validate_narrowing(nodes, old_nodes, errs)
    if affinity is None:
        munged["affinity"] = {"nodeAffinity": old_nodes}
    elif old_affinity is None and "podAffinity" not in affinity and "podAntiAffinity" not in affinity:
        del munged["affinity"]
    else:
        munged["affinity"] = affinity.copy()
        _put(munged["affinity"], old_affinity or {}, "nodeAffinity")


def _validate_narrowing(nodes: Object | None, old: Object | None, errs: list[FieldError]) -> None:
    if not old or old.get(REQUIRED) is None:
        return
    before = old[REQUIRED].get("nodeSelectorTerms") or []
    wanted = ((nodes or {}).get(REQUIRED) or {}).get("nodeSelectorTerms")
    after = wanted or []
    where = _NODE_AFFINITY.child(REQUIRED, "nodeSelectorTerms")
    if before and len(before) != len(after):
        why = "no additions/deletions to non-empty NodeSelectorTerms list are allowed"
        shown = None if wanted is None else [_show_term(term) for term in after]
        errs.append(invalid(where, shown, why))
        return
    for position, (term, old_term) in enumerate(zip(after, before, strict=False)):
        if not _only_adds(term, old_term):
            why = "only additions are allowed (no mutations or deletions)"
            errs.append(invalid(where.index(position), _show_term(term), why))


def _only_adds(term: Object, old: Object) -> bool:
    if not any(old.get(name) for name in ("matchExpressions", "matchFields")):
        return not any(term.get(name) for name in ("matchExpressions", "matchFields"))
    return all(
        (term.get(name) or [])[: len(old.get(name) or ())] == (old.get(name) or [])
        for name in ("matchExpressions", "matchFields")
    )


def _show_term(term: Object) -> Object:
    """A node selector term under its internal names."""
    return {
        shown: [
            {"Key": item.get("key", ""), "Operator": item.get("operator", ""), "Values": item.get("values")}
            for item in term[name]
        ]
        if term.get(name)
        else None
        for name, shown in (("matchExpressions", "MatchExpressions"), ("matchFields", "MatchFields"))
    }


def validate_ephemeral_update(pod: Object, old: Object, errs: list[FieldError], options: PodValidationOptions) -> None:
    """Errors of an update of the ephemeral containers: they may be added, never changed or removed."""
    if MIRROR in (old["metadata"].get("annotations") or ()):
        errs.append(forbidden(WHOLE, "static pods do not support ephemeral containers"))
        return
    validate_pod(pod, errs, options)
    validate_annotations_of_update(pod, old, errs, options)
    where = SPEC.child("ephemeralContainers")
    by_name = {container.get("name", ""): container for container in pod["spec"].get("ephemeralContainers") or ()}
    for before in old["spec"].get("ephemeralContainers") or ():
        name = before.get("name", "")
        container = by_name.get(name)
        if container is None:
            errs.append(forbidden(where, f"existing ephemeral containers {quote(name)} may not be removed\n"))
        elif not same(before, container):
            change = show_change("core.v1.EphemeralContainer", before, container)
            errs.append(forbidden(where, f"existing ephemeral containers {quote(name)} may not be changed\n{change}"))


def validate_binding(binding: Object) -> list[FieldError]:
    """Errors of a binding of a pod to a node."""
    errs: list[FieldError] = []
    target, where = binding.get("target") or {}, Path("target")
    kind, name = target.get("kind", ""), target.get("name", "")
    if kind not in ("", "Node"):
        errs.append(not_supported(where.child("kind"), kind, ("Node", "<empty>"), plain=True))
    if not name:
        errs.append(required(where.child("name"), ""))
    elif kind in ("", "Node"):
        errs += (invalid(where.child("name"), name, message) for message in check_dns1123_subdomain(name))
    return errs
