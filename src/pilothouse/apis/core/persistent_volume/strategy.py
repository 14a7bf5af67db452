"""PersistentVolumes: their strategies, columns and warnings."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Final

from pilothouse.apis.columns import AGE, NAME
from pilothouse.apis.core.persistent_volume.validation import validate_volume, validate_volume_update
from pilothouse.apis.core.resource_names import round_up_resources
from pilothouse.apis.deprecated_labels import DEPRECATED
from pilothouse.apis.strategy import Column, Context, Doc, StatusStrategy, Strategy
from pilothouse.apis.strategy_rules import DeletionRules, MetadataRules
from pilothouse.machinery.field_errors import FieldError, Path, required
from pilothouse.machinery.objects import Object

STORAGE_CLASS_ANNOTATION: Final = "volume.beta.kubernetes.io/storage-class"
STORAGE_CLASS_WARNING: Final = 'deprecated since v1.8; use "storageClassName" attribute instead'
_ANNOTATION_WARNINGS: Final = {
    STORAGE_CLASS_ANNOTATION: STORAGE_CLASS_WARNING,
    "volume.beta.kubernetes.io/mount-options": 'deprecated since v1.31; use "mountOptions" attribute instead',
}
_SOURCE_WARNINGS: Final = {
    "cephfs": "spec.cephfs: deprecated in v1.28, non-functional in v1.31+",
    "photonPersistentDisk": "spec.photonPersistentDisk: deprecated in v1.11, non-functional in v1.16+",
    "scaleIO": "spec.scaleIO: deprecated in v1.16, non-functional in v1.22+",
    "storageos": "spec.storageOS: deprecated in v1.22, non-functional in v1.25+",
    "glusterfs": "spec.glusterfs: deprecated in v1.25, non-functional in v1.26+",
    "rbd": "spec.rbd: deprecated in v1.28, non-functional in v1.31+",
}
_SOURCE_DEFAULTS: Final[dict[str, dict[str, Any]]] = {
    "hostPath": {"type": ""},
    "rbd": {"pool": "rbd", "user": "admin", "keyring": "/etc/ceph/keyring"},
    "iscsi": {"iscsiInterface": "default"},
    "azureDisk": {"cachingMode": "ReadWrite", "fsType": "ext4", "readOnly": False, "kind": "Shared"},
    "scaleIO": {"storageMode": "ThinProvisioned", "fsType": "xfs"},
}
_MODES: Final = {"ReadWriteOnce": "RWO", "ReadOnlyMany": "ROX", "ReadWriteMany": "RWX", "ReadWriteOncePod": "RWOP"}
_SPEC_DOC: Final = "core.v1.PersistentVolumeSpec"
_STATUS_DOC: Final = "core.v1.PersistentVolumeStatus"


def default_volume_spec(spec: dict[str, Any]) -> None:
    """Defaults of a volume's spec, wherever it stands."""
    for source, defaults in _SOURCE_DEFAULTS.items():
        given = spec.get(source)
        if given is not None:
            for key, value in defaults.items():
                # Texts are open when empty; what kube-apiserver holds by pointer only when missing.
                if given.get(key) is None or (given[key] == "" and source != "azureDisk"):
                    given[key] = value
    round_up_resources(spec.get("capacity"))


def default_volume(obj: Object) -> None:
    """A new volume is pending, is kept when released and holds a file system."""
    status = obj.setdefault("status", {})
    if not status.get("phase"):
        status["phase"] = "Pending"
    spec = obj.setdefault("spec", {})
    if not spec.get("persistentVolumeReclaimPolicy"):
        spec["persistentVolumeReclaimPolicy"] = "Retain"
    if spec.get("volumeMode") is None:
        spec["volumeMode"] = "Filesystem"
    default_volume_spec(spec)


def show_access_modes(modes: list[str] | None) -> str:
    """The modes in their short forms and usual order."""
    return ",".join(short for mode, short in _MODES.items() if mode in (modes or ()))


def _spec(obj: Object) -> dict[str, Any]:
    return obj.get("spec") or {}


def storage_class_of(obj: Object) -> str:
    """The storage class by annotation, as of old, or by field."""
    annotated = (obj["metadata"].get("annotations") or {}).get(STORAGE_CLASS_ANNOTATION)
    name: str = annotated if annotated is not None else _spec(obj).get("storageClassName") or ""
    return name


def phase_cell(obj: Object) -> str:
    """The phase; what is being deleted is terminating whatever its phase."""
    if obj["metadata"].get("deletionTimestamp"):
        return "Terminating"
    phase: str = (obj.get("status") or {}).get("phase", "")
    return phase


def _claim_cell(obj: Object) -> str:
    claim = _spec(obj).get("claimRef")
    return "" if claim is None else f"{claim.get('namespace', '')}/{claim.get('name', '')}"


def unset_cell(field: str) -> Any:
    """A cell that shows a field of the spec that may be missing."""

    def cell(obj: Object) -> str:
        value = _spec(obj).get(field)
        return "<unset>" if value is None else value

    return cell


COLUMNS: Final = (
    NAME,
    Column(
        "Capacity",
        "string",
        lambda obj: (_spec(obj).get("capacity") or {}).get("storage", "0"),
        description=Doc(_SPEC_DOC, "capacity"),
    ),
    Column(
        "Access Modes",
        "string",
        lambda obj: show_access_modes(_spec(obj).get("accessModes")),
        description=Doc(_SPEC_DOC, "accessModes"),
    ),
    Column(
        "Reclaim Policy",
        "string",
        lambda obj: _spec(obj).get("persistentVolumeReclaimPolicy", ""),
        description=Doc(_SPEC_DOC, "persistentVolumeReclaimPolicy"),
    ),
    Column("Status", "string", phase_cell, description=Doc(_STATUS_DOC, "phase")),
    Column("Claim", "string", _claim_cell, description=Doc(_SPEC_DOC, "claimRef")),
    Column("StorageClass", "string", storage_class_of, description="StorageClass of the pv"),
    Column(
        "VolumeAttributesClass",
        "string",
        unset_cell("volumeAttributesClassName"),
        description="VolumeAttributesClass of the pv",
    ),
    Column(
        "Reason",
        "string",
        lambda obj: (obj.get("status") or {}).get("reason", ""),
        description=Doc(_STATUS_DOC, "reason"),
    ),
    AGE,
    Column("VolumeMode", "string", unset_cell("volumeMode"), priority=1, description=Doc(_SPEC_DOC, "volumeMode")),
)


class PersistentVolumeStatusStrategy(StatusStrategy):
    """``/status``: when the phase changes, so does the time of its last change."""

    def default(self, obj: Object) -> None:
        default_volume(obj)

    def prepare_for_update(self, ctx: Context, obj: Object, old: Object) -> None:
        super().prepare_for_update(ctx, obj, old)
        status, before = obj.setdefault("status", {}), old.get("status") or {}
        given, known = status.get("lastPhaseTransitionTime"), before.get("lastPhaseTransitionTime")
        if status.get("phase") != before.get("phase"):
            if given is None or given == known:
                status["lastPhaseTransitionTime"] = ctx.now
        elif given is None and known is not None:
            status["lastPhaseTransitionTime"] = known

    def validate_update(self, ctx: Context, obj: Object, old: Object) -> list[FieldError]:
        return [] if obj["metadata"].get("resourceVersion") else [required(Path("resourceVersion"), "")]


class PersistentVolumeStrategy(Strategy):
    """Volumes are cluster-scoped; they may be selected by name as ``name`` too."""

    metadata_rules = MetadataRules(judges_prefix_on_update=True)
    subresources: ClassVar[Mapping[str, type[Strategy]]] = {"status": PersistentVolumeStatusStrategy}
    reset_fields = ("status",)
    deletion_rules = DeletionRules(returns_deleted=True)
    columns = COLUMNS

    def default(self, obj: Object) -> None:
        default_volume(obj)

    def prepare_for_create(self, ctx: Context, obj: Object) -> None:
        obj["status"] = {"phase": "Pending", "lastPhaseTransitionTime": ctx.now}

    def prepare_for_update(self, ctx: Context, obj: Object, old: Object) -> None:
        obj["status"] = old.get("status", {})

    def validate(self, ctx: Context, obj: Object) -> list[FieldError]:
        return validate_volume(obj)

    def validate_update(self, ctx: Context, obj: Object, old: Object) -> list[FieldError]:
        return validate_volume_update(obj, old, may_move="MutablePVNodeAffinity" in self.gates)

    def warnings_on_create(self, ctx: Context, obj: Object) -> list[str]:
        annotations, spec = obj["metadata"].get("annotations") or {}, _spec(obj)
        warnings = [
            f"metadata.annotations[{key}]: {why}" for key, why in _ANNOTATION_WARNINGS.items() if key in annotations
        ]
        if spec.get("persistentVolumeReclaimPolicy") == "Recycle":
            warnings.append(
                "spec.persistentVolumeReclaimPolicy: The Recycle reclaim policy is deprecated. "
                "Instead, the recommended approach is to use dynamic provisioning."
            )
        warnings += _warn_about_labels((spec.get("nodeAffinity") or {}).get("required") or {})
        return warnings + [why for source, why in _SOURCE_WARNINGS.items() if spec.get(source) is not None]

    def warnings_on_update(self, ctx: Context, obj: Object, old: Object) -> list[str]:
        return self.warnings_on_create(ctx, obj)


def _warn_about_labels(selector: dict[str, Any]) -> list[str]:
    warnings = []
    for i, term in enumerate(selector.get("nodeSelectorTerms") or ()):
        for j, expression in enumerate(term.get("matchExpressions") or ()):
            why = DEPRECATED.get(expression.get("key", ""))
            if why:
                where = f"spec.nodeAffinity.required.nodeSelectorTerms[{i}].matchExpressions[{j}].key"
                warnings.append(f"{where}: {expression['key']} is {why}")
    return warnings
