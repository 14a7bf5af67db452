"""Annotations that mean something in a pod: mirror pods, deletion cost, and the old ways to name profiles."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from pilothouse.apis.core.annotated import TOLERATION, AnnotationError, read_structs
from pilothouse.apis.core.pod_spec.paths import has_backsteps
from pilothouse.apis.core.pod_spec.tolerations import validate_tolerations
from pilothouse.apis.core.pod_spec.traversal import containers_at, containers_of
from pilothouse.machinery.field_errors import FieldError, Path, forbidden, invalid
from pilothouse.machinery.go_quote import quote
from pilothouse.machinery.objects import Object

if TYPE_CHECKING:
    from pilothouse.apis.core.pod_spec.options import PodValidationOptions

Annotations = dict[str, str]

MIRROR: Final = "kubernetes.io/config.mirror"
APP_ARMOR_PREFIX: Final = "container.apparmor.security.beta.kubernetes.io/"
SECCOMP_POD: Final = "seccomp.security.alpha.kubernetes.io/pod"
SECCOMP_PREFIX: Final = "container.seccomp.security.alpha.kubernetes.io/"
_DELETION_COST: Final = "controller.kubernetes.io/pod-deletion-cost"
_TOLERATIONS: Final = "scheduler.alpha.kubernetes.io/tolerations"
_LEGACY: Final = tuple(
    f"pod.{stage}.kubernetes.io/init-container{what}" for what in ("s", "-statuses") for stage in ("beta", "alpha")
)
_is_cost = re.compile(r"-[0-9]+|0|[1-9][0-9]*").fullmatch


def drop_legacy_annotations(metadata: Object) -> None:
    """Annotations from before init containers had fields go."""
    annotations = metadata.get("annotations")
    if annotations:
        for key in _LEGACY:
            annotations.pop(key, None)
        if not annotations:
            del metadata["annotations"]


def has_valid_deletion_cost(annotations: Annotations) -> bool:
    """Whether the pod's deletion cost, if it has one, is a 32-bit integer."""
    cost = annotations.get(_DELETION_COST)
    if cost is None:
        return True
    return bool(_is_cost(cost)) and len(cost) < 20 and -(2**31) <= int(cost) < 2**31


def validate_pod_annotations(
    annotations: Annotations, spec: Object, path: Path, errs: list[FieldError], options: PodValidationOptions
) -> None:
    """Errors of the annotations of a pod or template; ``path`` is that of the annotations."""
    if MIRROR in annotations and not spec.get("nodeName"):
        why = "must set spec.nodeName if mirror pod annotation is set"
        errs.append(invalid(path.key(MIRROR), annotations[MIRROR], why))
    if annotations.get(_TOLERATIONS):
        _validate_tolerations(annotations[_TOLERATIONS], path, errs, options)
    if not options.allow_invalid_deletion_cost and not has_valid_deletion_cost(annotations):
        errs.append(invalid(path.key(_DELETION_COST), annotations[_DELETION_COST], "must be a 32bit integer"))
    if SECCOMP_POD in annotations:
        validate_seccomp_profile(annotations[SECCOMP_POD], path.child(SECCOMP_POD), errs)
    for key, value in annotations.items():
        if key.startswith(SECCOMP_PREFIX):
            validate_seccomp_profile(value, path.child(key), errs)
    confined = [key for key in annotations if key.startswith(APP_ARMOR_PREFIX)]
    if confined:
        names = {container.get("name") for container in containers_of(spec)}
        for key in confined:
            _validate_app_armor(key, annotations[key], names, path, errs)


def _validate_tolerations(text: str, path: Path, errs: list[FieldError], options: PodValidationOptions) -> None:
    try:
        tolerations = read_structs(text, TOLERATION)
    except AnnotationError as error:
        errs.append(invalid(path, _TOLERATIONS, str(error)))
        return
    validate_tolerations(tolerations, path.child(_TOLERATIONS), errs, options)


def validate_seccomp_profile(profile: str, path: Path, errs: list[FieldError]) -> None:
    """The name of a seccomp profile in an annotation."""
    if profile in ("runtime/default", "docker/default", "unconfined"):
        return
    if not profile.startswith("localhost/"):
        errs.append(invalid(path, profile, "must be a valid seccomp profile"))
        return
    target = profile.removeprefix("localhost/")
    if target.startswith("/"):
        errs.append(invalid(path, target, "must be a relative path"))
    if has_backsteps(target):
        errs.append(invalid(path, target, "must not contain '..'"))


def _validate_app_armor(key: str, profile: str, names: set[Any], path: Path, errs: list[FieldError]) -> None:
    name = key.removeprefix(APP_ARMOR_PREFIX)
    if name not in names:
        errs.append(invalid(path.key(key), name, "container not found"))
    validate_app_armor_profile(profile, path.key(key), errs)


def validate_app_armor_profile(profile: str, path: Path, errs: list[FieldError]) -> None:
    """The name of an AppArmor profile in an annotation."""
    if profile not in ("", "runtime/default", "unconfined") and not profile.startswith("localhost/"):
        errs.append(invalid(path, profile, f"invalid AppArmor profile name: {quote(profile)}"))


def validate_profiles_match(annotations: Annotations, spec: Object, path: Path, errs: list[FieldError]) -> None:
    """A profile that is named by a field and an annotation must be the same one. ``path`` is the spec's."""
    if not any(key.startswith((SECCOMP_POD, SECCOMP_PREFIX, APP_ARMOR_PREFIX)) for key in annotations):
        return
    context = spec.get("securityContext") or {}
    if SECCOMP_POD in annotations and "seccompProfile" in context:
        where = path.child("securityContext", "seccompProfile")
        _match(annotations[SECCOMP_POD], context["seccompProfile"], "seccomp", where, errs)
    for container, at in containers_at(spec, path):
        profile = (container.get("securityContext") or {}).get("seccompProfile")
        annotation = annotations.get(SECCOMP_PREFIX + container.get("name", ""))
        if profile is not None and annotation is not None:
            _match(annotation, profile, "seccomp", at.child("securityContext", "seccompProfile"), errs)
    if (spec.get("os") or {}).get("name") == "windows":
        return
    for container, at in containers_at(spec, path):
        own = (container.get("securityContext") or {}).get("appArmorProfile")
        profile = own if own is not None else context.get("appArmorProfile")
        annotation = annotations.get(APP_ARMOR_PREFIX + container.get("name", ""))
        if profile is not None and annotation is not None:
            _match(annotation, profile, "apparmor", at.child("securityContext", "appArmorProfile"), errs)


def _match(annotation: str, profile: Object, what: str, path: Path, errs: list[FieldError]) -> None:
    kind = profile.get("type", "")
    fits = True
    if kind == "Unconfined":
        fits = annotation == "unconfined"
    elif kind == "RuntimeDefault":
        fits = annotation == "runtime/default" or (what == "seccomp" and annotation == "docker/default")
    elif kind == "Localhost":
        fits = annotation.startswith("localhost/")
        if fits and profile.get("localhostProfile") != annotation.removeprefix("localhost/"):
            why = f"{what} profile in annotation and field must match"
            errs.append(forbidden(path.child("localhostProfile"), why))
    if not fits:
        errs.append(forbidden(path.child("type"), f"{what} type in annotation and field must match"))


def validate_annotation_updates(annotations: Annotations, old: Annotations, path: Path, errs: list[FieldError]) -> None:
    """What a pod's annotations say of its confinement and origin is settled when it is created."""
    for key, value in old.items():
        if annotations.get(key) != value:
            if key.startswith(APP_ARMOR_PREFIX):
                errs.append(forbidden(path.key(key), "may not remove or update AppArmor annotations"))
            elif key == MIRROR:
                errs.append(forbidden(path.key(key), "may not remove or update mirror pod annotation"))
    for key in annotations:
        if key not in old:
            if key.startswith(APP_ARMOR_PREFIX):
                errs.append(forbidden(path.key(key), "may not add AppArmor annotations"))
            elif key == MIRROR:
                errs.append(forbidden(path.key(key), "may not add mirror pod annotation"))
