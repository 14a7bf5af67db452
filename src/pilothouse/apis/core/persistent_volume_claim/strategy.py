"""PersistentVolumeClaims: their strategies, columns and warnings."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Final

from pilothouse.apis.columns import AGE, NAME
from pilothouse.apis.core.persistent_volume.strategy import (
    STORAGE_CLASS_ANNOTATION,
    STORAGE_CLASS_WARNING,
    phase_cell,
    show_access_modes,
    storage_class_of,
    unset_cell,
)
from pilothouse.apis.core.persistent_volume_claim.validation import (
    validate_claim,
    validate_claim_status,
    validate_claim_update,
)
from pilothouse.apis.core.resource_names import round_up_resources
from pilothouse.apis.strategy import Column, Context, Doc, StatusStrategy, Strategy
from pilothouse.apis.strategy_rules import DeletionRules, MetadataRules
from pilothouse.machinery import quantity
from pilothouse.machinery.field_errors import FieldError
from pilothouse.machinery.go_quote import quote
from pilothouse.machinery.objects import Object

_SPEC_DOC: Final = "core.v1.PersistentVolumeClaimSpec"
_STATUS_DOC: Final = "core.v1.PersistentVolumeClaimStatus"
_ELSEWHERE: Final = "CrossNamespaceVolumeDataSource"
_OLD_SOURCES: Final = frozenset({("", "PersistentVolumeClaim"), ("snapshot.storage.k8s.io", "VolumeSnapshot")})


def default_claim_spec(spec: dict[str, Any]) -> None:
    """Defaults of a claim's spec, wherever it stands."""
    if spec.get("volumeMode") is None:
        spec["volumeMode"] = "Filesystem"
    resources = spec.get("resources") or {}
    round_up_resources(resources.get("limits"))
    round_up_resources(resources.get("requests"))


def default_claim(obj: Object) -> None:
    """Defaults of a claim, also of a stateful set's template."""
    default_claim_spec(obj.setdefault("spec", {}))
    status = obj.setdefault("status", {})
    if not status.get("phase"):
        status["phase"] = "Pending"
    for key in ("capacity", "allocatedResources"):
        round_up_resources(status.get(key))


def settle_sources(spec: dict[str, Any], old: dict[str, Any] | None, gates: frozenset[str]) -> None:
    """Make the two ways to name a data source agree.

    A reference into another namespace needs a feature. Sources other than claims and snapshots never worked in the
    older field and are dropped there.
    """
    before = old or {}
    reference = spec.get("dataSourceRef")
    elsewhere = reference is not None and reference.get("namespace") and _ELSEWHERE not in gates
    if elsewhere and before.get("dataSourceRef") is None:
        del spec["dataSourceRef"]
    used = before.get("dataSource") is not None or before.get("dataSourceRef") is not None
    source = spec.get("dataSource")
    by_older_field = None if used or spec.get("dataSourceRef") is not None else source
    if by_older_field is not None and _kind_of(by_older_field) not in _OLD_SOURCES:
        del spec["dataSource"]
    mirror_sources(spec)


def _kind_of(source: dict[str, Any]) -> tuple[str, str]:
    return source.get("apiGroup") or "", source.get("kind", "")


def mirror_sources(spec: dict[str, Any]) -> None:
    """What is named one way only is named the other way too."""
    source, reference = spec.get("dataSource"), spec.get("dataSourceRef")
    if source is not None and reference is None:
        spec["dataSourceRef"] = dict(source)
    elif reference is not None and source is None and not reference.get("namespace"):
        spec["dataSource"] = {key: value for key, value in reference.items() if key != "namespace"}
        spec["dataSource"].setdefault("apiGroup", None)


def warn_about_claim_spec(path: str, spec: dict[str, Any]) -> list[str]:
    """Amounts of storage that are not whole bytes."""
    warnings = []
    for key in ("requests", "limits"):
        text = ((spec.get("resources") or {}).get(key) or {}).get("storage")
        if text and quantity.parse(text).milli_value() % 1000:
            where = f"{path}.resources.{key}[storage]"
            warnings.append(f"{where}: fractional byte value {quote(text)} is invalid, must be an integer")
    return warnings


def _spec(obj: Object) -> dict[str, Any]:
    return obj.get("spec") or {}


def _bound(obj: Object, key: str) -> Any:
    """A value of the status that is shown once a volume is found."""
    return (obj.get("status") or {}).get(key) if _spec(obj).get("volumeName") else None


def _capacity_cell(obj: Object) -> str:
    if not _spec(obj).get("volumeName"):
        return ""
    size: str = (_bound(obj, "capacity") or {}).get("storage", "0")
    return size


COLUMNS: Final = (
    NAME,
    Column("Status", "string", phase_cell, description=Doc(_STATUS_DOC, "phase")),
    Column("Volume", "string", lambda obj: _spec(obj).get("volumeName", ""), description=Doc(_SPEC_DOC, "volumeName")),
    Column("Capacity", "string", _capacity_cell, description=Doc(_STATUS_DOC, "capacity")),
    Column(
        "Access Modes",
        "string",
        lambda obj: show_access_modes(_bound(obj, "accessModes")),
        description=Doc(_STATUS_DOC, "accessModes"),
    ),
    Column("StorageClass", "string", storage_class_of, description="StorageClass of the pvc"),
    Column(
        "VolumeAttributesClass",
        "string",
        unset_cell("volumeAttributesClassName"),
        description="VolumeAttributesClass of the pvc",
    ),
    AGE,
    Column("VolumeMode", "string", unset_cell("volumeMode"), priority=1, description=Doc(_SPEC_DOC, "volumeMode")),
)


class PersistentVolumeClaimStatusStrategy(StatusStrategy):
    """``/status``."""

    def default(self, obj: Object) -> None:
        default_claim(obj)

    def validate_update(self, ctx: Context, obj: Object, old: Object) -> list[FieldError]:
        return validate_claim_status(obj)


class PersistentVolumeClaimStrategy(Strategy):
    """A claim starts pending; its spec is fixed but for what a bound claim may grow into."""

    metadata_rules = MetadataRules(judges_prefix_on_update=True)
    subresources: ClassVar[Mapping[str, type[Strategy]]] = {"status": PersistentVolumeClaimStatusStrategy}
    reset_fields = ("status",)
    deletion_rules = DeletionRules(returns_deleted=True)
    completed_when_read = True
    columns = COLUMNS

    def default(self, obj: Object) -> None:
        default_claim(obj)

    def prepare_for_create(self, ctx: Context, obj: Object) -> None:
        obj["status"] = {}
        settle_sources(obj["spec"], None, self.gates)

    def prepare_for_update(self, ctx: Context, obj: Object, old: Object) -> None:
        obj["status"] = old.get("status", {})
        settle_sources(obj["spec"], old.get("spec"), self.gates)

    def validate(self, ctx: Context, obj: Object) -> list[FieldError]:
        return validate_claim(obj)

    def validate_update(self, ctx: Context, obj: Object, old: Object) -> list[FieldError]:
        return validate_claim_update(obj, old)

    def warnings_on_create(self, ctx: Context, obj: Object) -> list[str]:
        warnings = []
        if STORAGE_CLASS_ANNOTATION in (obj["metadata"].get("annotations") or ()):
            warnings.append(f"metadata.annotations[{STORAGE_CLASS_ANNOTATION}]: {STORAGE_CLASS_WARNING}")
        return warnings + warn_about_claim_spec("spec", obj["spec"])

    def warnings_on_update(self, ctx: Context, obj: Object, old: Object) -> list[str]:
        return self.warnings_on_create(ctx, obj)
