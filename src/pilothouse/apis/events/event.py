"""Events written through events.k8s.io/v1: of the new generation only, and fixed once written.

Objects have the core/v1 form here too, so messages name the core fields, as in kube-apiserver; only the reporting
controller goes by its new name.
"""

from __future__ import annotations

from typing import Any, Final

from pilothouse.apis.core.event import EventStrategy
from pilothouse.apis.core.internal_form import internal_form
from pilothouse.apis.metadata import IMMUTABLE, validate_metadata
from pilothouse.apis.object_names import name_is_dns_subdomain
from pilothouse.apis.strategy import Context
from pilothouse.apis.strategy_rules import MetadataRules
from pilothouse.apis.validation import standard_finalizers
from pilothouse.machinery.field_errors import FieldError, Path, invalid, required
from pilothouse.machinery.objects import Object

_LABELS: Final = {
    "reason": "reason",
    "reportingController": "reportingComponent",
    "type": "type",
    **{
        f"regarding.{key}": f"involvedObject.{key}"
        for key in ("kind", "namespace", "name", "uid", "apiVersion", "resourceVersion", "fieldPath")
    },
}
_FIXED: Final[tuple[tuple[str, str, Any, str], ...]] = (
    ("involvedObject", "involvedObject", {}, "core.v1.ObjectReference"),
    ("reason", "reason", "", ""),
    ("message", "message", "", ""),
    ("source", "source", {}, "core.v1.EventSource"),
    ("firstTimestamp", "firstTimestamp", None, ""),
    ("lastTimestamp", "lastTimestamp", None, ""),
    ("count", "count", 0, ""),
    ("type", "type", "", ""),
    ("eventTime", "eventTime", None, ""),
    ("action", "action", "", ""),
    ("related", "related", None, "core.v1.ObjectReference"),
    ("reportingComponent", "reportingController", "", ""),
    ("reportingInstance", "reportingInstance", "", ""),
)
"""(field, its name in messages, what stands for a missing value, its type where it is a struct)."""


class StrictEventStrategy(EventStrategy):
    """The strict rules on top of those for all events."""

    reporter = "reportingController"
    metadata_rules = MetadataRules(judged_last=True)

    def validate(self, ctx: Context, obj: Object) -> list[FieldError]:
        errs = super().validate(ctx, obj)
        errs += validate_metadata(obj["metadata"], namespaced=True, validate_name=name_is_dns_subdomain)
        standard_finalizers(obj["metadata"], errs)
        return errs + _check_series(obj) + _check_new_only(obj)

    def validate_update(self, ctx: Context, obj: Object, old: Object) -> list[FieldError]:
        errs = super().validate(ctx, obj)
        if obj.get("series") != old.get("series"):
            errs += _check_series(obj)
        for field, shown, missing, type_name in _FIXED:
            value, before = obj.get(field, missing), old.get(field, missing)
            if value != before:
                errs.append(invalid(Path(shown), internal_form(type_name, value) if type_name else value, IMMUTABLE))
        return errs

    def convert_field(self, name: str, value: str) -> tuple[str, str]:
        if name in ("metadata.name", "metadata.namespace"):
            return name, value
        if name in _LABELS:
            return _LABELS[name], value
        raise ValueError(f"field label not supported: {name}")


def _check_series(obj: Object) -> list[FieldError]:
    series = obj.get("series")
    if series is None:
        return []
    errs: list[FieldError] = []
    if series.get("count", 0) < 2:
        errs.append(invalid(Path("series.count"), "", "should be at least 2"))
    if not series.get("lastObservedTime"):
        errs.append(required(Path("series.lastObservedTime"), ""))
    return errs


def _check_new_only(obj: Object) -> list[FieldError]:
    errs: list[FieldError] = []
    if not obj.get("eventTime"):
        errs.append(required(Path("eventTime"), ""))
    type_ = obj.get("type", "")
    if type_ not in ("Normal", "Warning"):
        errs.append(invalid(Path("type"), "", f"has invalid value: {type_}"))
    old_fields = (key for key in ("firstTimestamp", "lastTimestamp", "count") if obj.get(key))
    errs += (invalid(Path(key), "", "needs to be unset") for key in old_fields)
    source = obj.get("source") or {}
    if source.get("component") or source.get("host"):
        errs.append(invalid(Path("source"), "", "needs to be unset"))
    return errs
