"""Events: two generations of one kind.

An event with an ``eventTime`` is of the new generation and must name who reported it, the action and the reason,
whichever group it came through. Writers through ``events.k8s.io`` are held to more: see ``apis/events``.
"""

from __future__ import annotations

from typing import Any, ClassVar, Final

from pilothouse.apis.ages import Age, age_of
from pilothouse.apis.columns import name_cell
from pilothouse.apis.core.checks import check_qualified_name
from pilothouse.apis.object_names import name_is_path_segment
from pilothouse.apis.strategy import Column, Context, Doc, Strategy
from pilothouse.apis.strategy_rules import DeletionRules, MetadataRules, UpdateRules
from pilothouse.machinery.field_errors import FieldError, Path, invalid, required
from pilothouse.machinery.objects import Object

_INVOLVED: Final = ("kind", "namespace", "name", "uid", "apiVersion", "resourceVersion", "fieldPath")
_LIMITS: Final = {"reportingInstance": 128, "action": 128, "reason": 128, "message": 1024}
_NAMESPACE: Final = Path("involvedObject", "namespace")
_DOC: Final = "core.v1.Event"


def first_seen(obj: Object) -> Age | str:
    """How long ago it happened first."""
    return age_of(obj.get("firstTimestamp") or obj.get("eventTime"))


def last_seen(obj: Object) -> Age | str:
    """How long ago it happened last."""
    if obj.get("series") is not None:
        return age_of(obj["series"].get("lastObservedTime"))
    return age_of(obj["lastTimestamp"]) if obj.get("lastTimestamp") else first_seen(obj)


def _count(obj: Object) -> int:
    if obj.get("series") is not None:
        return int(obj["series"].get("count", 0))
    return int(obj.get("count") or 1)


def _target(obj: Object) -> str:
    involved = obj.get("involvedObject") or {}
    kind = involved.get("kind", "").lower()
    return f"{kind}/{involved['name']}" if involved.get("name") else kind


def _source(obj: Object) -> str:
    source = obj.get("source") or {}
    component = source.get("component") or obj.get("reportingComponent", "")
    host = source.get("host") or obj.get("reportingInstance", "")
    return f"{component}, {host}" if host else component


COLUMNS: Final = (
    Column("Last Seen", "string", last_seen, description=Doc(_DOC, "lastTimestamp")),
    Column("Type", "string", lambda obj: obj.get("type", ""), description=Doc(_DOC, "type")),
    Column("Reason", "string", lambda obj: obj.get("reason", ""), description=Doc(_DOC, "reason")),
    Column("Object", "string", _target, description=Doc(_DOC, "involvedObject")),
    Column(
        "Subobject",
        "string",
        lambda obj: (obj.get("involvedObject") or {}).get("fieldPath", ""),
        priority=1,
        description=Doc("core.v1.ObjectReference", "fieldPath"),
    ),
    Column("Source", "string", _source, priority=1, description=Doc(_DOC, "source")),
    Column("Message", "string", lambda obj: obj.get("message", "").strip(), description=Doc(_DOC, "message")),
    Column("First Seen", "string", first_seen, priority=1, description=Doc(_DOC, "firstTimestamp")),
    Column("Count", "string", _count, priority=1, description=Doc(_DOC, "count")),
    Column("Name", "string", name_cell, format="name", priority=1, description=Doc("meta.v1.ObjectMeta", "name")),
)


class EventStrategy(Strategy):
    """Events as core/v1 writes them. They own nothing and are never collected as garbage."""

    validate_name = staticmethod(name_is_path_segment)
    update_rules = UpdateRules(allow_create=True)
    deletion_rules = DeletionRules(collects_garbage=False)
    metadata_rules = MetadataRules(standard_finalizers=False, judged_last=True)
    columns = COLUMNS
    field_labels = frozenset(
        {*(f"involvedObject.{key}" for key in _INVOLVED), "reason", "reportingComponent", "source", "type"}
    )
    field_sources = frozenset({"involvedObject", "reason", "reportingComponent", "source", "type"})
    reporter: ClassVar[str] = "reportingComponent"
    """What the field that names the reporting controller is called where the event comes in."""

    def validate(self, ctx: Context, obj: Object) -> list[FieldError]:
        return _check_new(obj, self.reporter) if obj.get("eventTime") else _check_old(obj)

    def validate_update(self, ctx: Context, obj: Object, old: Object) -> list[FieldError]:
        return self.validate(ctx, obj)

    def fields(self, obj: Object) -> dict[str, str]:
        involved = obj.get("involvedObject") or {}
        reporter = obj.get("reportingComponent", "")
        return {
            **{f"involvedObject.{key}": involved.get(key, "") for key in _INVOLVED},
            "reason": obj.get("reason", ""),
            "reportingComponent": reporter,
            "source": (obj.get("source") or {}).get("component") or reporter,
            "type": obj.get("type", ""),
        }


def _involved_namespace(obj: Object) -> str:
    namespace: str = (obj.get("involvedObject") or {}).get("namespace", "")
    return namespace


def _check_old(obj: Object) -> list[FieldError]:
    namespace, own = _involved_namespace(obj), obj["metadata"].get("namespace", "")
    agrees = namespace == own if namespace else own in ("", "default")
    return [] if agrees else [invalid(_NAMESPACE, namespace, "does not match event.namespace")]


def _check_new(obj: Object, reporter: str) -> list[FieldError]:
    errs: list[FieldError] = []
    namespace = _involved_namespace(obj)
    if not namespace and obj["metadata"].get("namespace", "") not in ("default", "kube-system"):
        errs.append(invalid(_NAMESPACE, namespace, "does not match event.namespace"))
    controller: Any = obj.get("reportingComponent", "")
    if not controller:
        errs.append(required(Path(reporter), ""))
    errs += check_qualified_name(Path(reporter), controller)
    for key, limit in _LIMITS.items():
        text = obj.get(key, "")
        if not text and key != "message":
            errs.append(required(Path(key), ""))
        elif len(text.encode()) > limit:
            errs.append(invalid(Path(key), "", f"can have at most {limit} characters"))
    return errs
