"""What makes a persistent volume valid. The spec's rules hold for volumes inside VolumeAttachments too (``inline``)."""

from __future__ import annotations

import posixpath
from typing import Any, Final

from pilothouse.apis.core.checks import NOT_POSITIVE, ZERO, check_dns_subdomain
from pilothouse.apis.core.internal_form import internal_form, show_change
from pilothouse.apis.core.persistent_volume.sources import SOURCE_FIELDS, validate_source
from pilothouse.apis.core.pod_spec.affinity import validate_node_selector
from pilothouse.apis.metadata import IMMUTABLE
from pilothouse.machinery import names, quantity
from pilothouse.machinery.field_errors import FieldError, Path, as_json, forbidden, invalid, not_supported, required
from pilothouse.machinery.objects import Object

ACCESS_MODES: Final = ("ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod")
VOLUME_MODES: Final = ("Block", "Filesystem")
_RECLAIM_POLICIES: Final = ("Delete", "Recycle", "Retain")
_INLINE: Final = "may not be specified in the context of inline volumes"
_SPEC: Final = Path("spec")
_MOUNT_OPTIONS: Final = "volume.beta.kubernetes.io/mount-options"
_MOUNTABLE: Final = (
    "gcePersistentDisk", "awsElasticBlockStore", "glusterfs", "nfs", "rbd", "quobyte", "iscsi", "cinder", "cephfs",
    "azureFile", "vsphereVolume", "azureDisk", "photonPersistentDisk",
)  # fmt: skip
_STABLE_LABELS: Final = {
    "failure-domain.beta.kubernetes.io/zone": "topology.kubernetes.io/zone",
    "failure-domain.beta.kubernetes.io/region": "topology.kubernetes.io/region",
    "beta.kubernetes.io/os": "kubernetes.io/os",
    "beta.kubernetes.io/arch": "kubernetes.io/arch",
    "beta.kubernetes.io/instance-type": "node.kubernetes.io/instance-type",
}


def check_access_modes(path: Path, modes: list[str]) -> list[FieldError]:
    """Known modes; the one for a single pod only by itself."""
    errs = [not_supported(path, mode, ACCESS_MODES) for mode in modes if mode not in ACCESS_MODES]
    known = {mode for mode in modes if mode in ACCESS_MODES}
    if "ReadWriteOncePod" in known and len(known) > 1:
        errs.append(forbidden(path, "may not use ReadWriteOncePod with other access modes"))
    return errs


def validate_volume(obj: Object, old: Object | None = None) -> list[FieldError]:
    """Errors of a volume by itself."""
    lenient = old is not None and _has_invalid_label_value(old)
    name = obj["metadata"].get("name", "")
    errs = validate_volume_spec(_SPEC, obj.get("spec") or {}, name, lenient=lenient)
    return errs + _check_mount_options(obj)


def validate_volume_spec(
    path: Path, spec: dict[str, Any], name: str, *, inline: bool = False, lenient: bool = False
) -> list[FieldError]:
    """Errors of a volume's spec; ``inline`` for one that is not an object of its own."""
    errs: list[FieldError] = []
    if inline:
        errs += [forbidden(path.child(key), _INLINE) for key in ("claimRef", "capacity") if spec.get(key) is not None]
        if spec.get("csi") is None:
            errs.append(required(path.child("csi"), "has to be specified in the context of inline volumes"))
    modes = spec.get("accessModes") or []
    if not modes:
        errs.append(required(path.child("accessModes"), ""))
    errs += check_access_modes(path.child("accessModes"), modes)
    if not inline:
        errs += _check_capacity(path.child("capacity"), spec.get("capacity") or {})
    errs += _check_reclaim_policy(path.child("persistentVolumeReclaimPolicy"), spec, inline=inline)
    errs += _check_affinity(path.child("nodeAffinity"), spec, inline=inline, lenient=lenient)
    errs += validate_source(path, spec, name)
    host_path = (spec.get("hostPath") or {}).get("path", "-")
    if spec.get("persistentVolumeReclaimPolicy") == "Recycle" and posixpath.normpath(host_path) in ("/", "//"):
        where = path.child("persistentVolumeReclaimPolicy")
        errs.append(forbidden(where, "may not be 'recycle' for a hostPath mount of '/'"))
    return errs + _check_classes(path, spec, inline=inline)


def _check_capacity(path: Path, capacity: dict[str, str]) -> list[FieldError]:
    errs: list[FieldError] = []
    if not capacity:
        errs.append(required(path, ""))
    if set(capacity) != {"storage"}:
        errs.append(not_supported(path, dict(sorted(capacity.items())) or None, ("storage",)))
    for name, text in capacity.items():
        amount = quantity.parse(text)
        if amount.value() < 0:
            errs.append(invalid(path.key(name), amount.value(), "must be a valid resource quantity"))
        if amount <= ZERO:
            errs.append(invalid(path.key(name), str(amount), NOT_POSITIVE))
    return errs


def _check_reclaim_policy(path: Path, spec: dict[str, Any], *, inline: bool) -> list[FieldError]:
    policy = spec.get("persistentVolumeReclaimPolicy")
    if not policy:
        return []
    if inline:
        why = "may only be Retain in the context of inline volumes"
        return [] if policy == "Retain" else [forbidden(path, why)]
    return [] if policy in _RECLAIM_POLICIES else [not_supported(path, policy, _RECLAIM_POLICIES)]


def _check_affinity(path: Path, spec: dict[str, Any], *, inline: bool, lenient: bool) -> list[FieldError]:
    affinity = spec.get("nodeAffinity")
    if affinity is None:
        return []
    if inline:
        return [forbidden(path, _INLINE)]
    if affinity.get("required") is None:
        return [required(path.child("required"), "must specify required node constraints")]
    errs: list[FieldError] = []
    validate_node_selector(affinity["required"], path.child("required"), errs, allow_invalid_values=lenient)
    return errs


def _check_classes(path: Path, spec: dict[str, Any], *, inline: bool) -> list[FieldError]:
    errs: list[FieldError] = []
    storage_class, mode = spec.get("storageClassName"), spec.get("volumeMode")
    if storage_class and inline:
        errs.append(forbidden(path.child("storageClassName"), _INLINE))
    elif storage_class:
        errs += check_dns_subdomain(path.child("storageClassName"), storage_class)
    if mode is not None and inline:
        if mode != "Filesystem":
            why = "may not specify volumeMode other than Filesystem in the context of inline volumes"
            errs.append(forbidden(path.child("volumeMode"), why))
    elif mode is not None and mode not in VOLUME_MODES:
        errs.append(not_supported(path.child("volumeMode"), mode, VOLUME_MODES))
    attributes = spec.get("volumeAttributesClassName")
    if attributes is not None:
        where = path.child("volumeAttributesClassName")
        if not attributes:
            errs.append(required(where, "an empty string is disallowed"))
        else:
            errs += check_dns_subdomain(where, attributes)
        if spec.get("csi") is None:
            errs.append(required(path.child("csi"), "has to be specified when using volumeAttributesClassName"))
    return errs


def _check_mount_options(obj: Object) -> list[FieldError]:
    if _MOUNT_OPTIONS not in (obj["metadata"].get("annotations") or ()):
        return []
    if any((obj.get("spec") or {}).get(field) is not None for field in _MOUNTABLE):
        return []
    where = Path("metadata", "annotations", _MOUNT_OPTIONS)
    return [forbidden(where, "may not specify mount options for this volume type")]


def _has_invalid_label_value(obj: Object) -> bool:
    required_ = ((obj.get("spec") or {}).get("nodeAffinity") or {}).get("required") or {}
    return any(
        names.check_label_value(value)
        for term in required_.get("nodeSelectorTerms") or ()
        for expression in term.get("matchExpressions") or ()
        for value in expression.get("values") or ()
    )


def validate_volume_update(obj: Object, old: Object, *, may_move: bool = False) -> list[FieldError]:
    """Errors of a changed volume: where its data is stays fixed; what nodes reach it too, unless it may move."""
    errs = validate_volume(obj, old)
    spec, before = obj.get("spec") or {}, old.get("spec") or {}
    source, old_source = _source_of(spec), _source_of(before)
    csi, old_csi = source.get("csi"), old_source.get("csi")
    # A secret for expansion may be added later.
    if csi and old_csi and "controllerExpandSecretRef" not in old_csi and "controllerExpandSecretRef" in csi:
        source["csi"] = {key: value for key, value in csi.items() if key != "controllerExpandSecretRef"}
    if source != old_source:
        change = show_change("core.v1.PersistentVolumeSource", old_source, source)
        why = f"spec.persistentvolumesource is immutable after creation\n{change}"
        errs.append(forbidden(Path("spec", "persistentvolumesource"), why))
    if spec.get("volumeMode") != before.get("volumeMode"):
        errs.append(invalid(Path("volumeMode"), as_json(spec.get("volumeMode")), IMMUTABLE))
    if not may_move:
        errs += _check_affinity_update(spec.get("nodeAffinity"), before.get("nodeAffinity"))
    if before.get("volumeAttributesClassName") is not None and spec.get("volumeAttributesClassName") is None:
        where = Path("spec", "volumeAttributesClassName")
        errs.append(forbidden(where, "update from non-nil value to nil is forbidden"))
    return errs


def _source_of(spec: dict[str, Any]) -> dict[str, Any]:
    return {field: spec[field] for field in SOURCE_FIELDS if spec.get(field) is not None}


def _check_affinity_update(affinity: Any, old: Any) -> list[FieldError]:
    if old is None or affinity == old or _renamed(affinity, old) == affinity:
        return []
    shown = internal_form("core.v1.VolumeNodeAffinity", affinity)
    return [invalid(Path("nodeAffinity"), shown, f"{IMMUTABLE}, except for updating from beta label to GA")]


def _renamed(new: Any, old: Any) -> Any:
    """The old affinity with those keys that the new one spells in their stable form."""
    if isinstance(new, dict) and isinstance(old, dict):
        return {key: _renamed(new.get(key), value) for key, value in old.items()}
    if isinstance(new, list) and isinstance(old, list) and len(new) == len(old):
        return [_renamed(a, b) for a, b in zip(new, old, strict=True)]
    return new if isinstance(old, str) and _STABLE_LABELS.get(old) == new else old
