"""Flow schemas and priority levels."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from pilothouse.apis.columns import AGE, NAME
from pilothouse.apis.flowcontrol.level_validation import validate_priority_level
from pilothouse.apis.flowcontrol.validation import validate_flow_schema, validate_status
from pilothouse.apis.status import StatusKeeper
from pilothouse.apis.strategy import Column, Context, Doc, Object, StatusStrategy, Strategy, keep
from pilothouse.machinery.field_errors import FieldError


class FlowControlStatusStrategy(StatusStrategy):
    """What the server itself reports; all metadata but the managed fields stays."""

    reset_fields = ("metadata", "spec")

    def prepare_for_update(self, ctx: Context, obj: Object, old: Object) -> None:
        super().prepare_for_update(ctx, obj, old)
        metadata = dict(old["metadata"])
        keep(metadata, obj["metadata"], "managedFields")
        obj["metadata"] = metadata

    def validate_update(self, ctx: Context, obj: Object, old: Object) -> list[FieldError]:
        return validate_status(obj)


def _method(obj: Object) -> str:
    method = obj["spec"].get("distinguisherMethod")
    return "<none>" if method is None else str(method.get("type", ""))


def _dangling(obj: Object) -> str:
    for condition in (obj.get("status") or {}).get("conditions") or ():
        if condition.get("type") == "Dangling":
            return str(condition.get("status", ""))
    return "?"


class FlowSchemaStrategy(StatusKeeper):
    """Flow schemas."""

    judges_prefix_on_update = True
    type_name = "flowcontrol.v1.FlowSchema"
    generation = True
    subresources: ClassVar[Mapping[str, type[Strategy]]] = {"status": FlowControlStatusStrategy}
    columns = (
        NAME,
        Column(
            "PriorityLevel",
            "string",
            lambda o: o["spec"]["priorityLevelConfiguration"].get("name", ""),
            description=Doc("flowcontrol.v1.PriorityLevelConfigurationReference", "name"),
        ),
        Column(
            "MatchingPrecedence",
            "string",
            lambda o: o["spec"].get("matchingPrecedence", 0),
            description=Doc("flowcontrol.v1.FlowSchemaSpec", "matchingPrecedence"),
        ),
        Column(
            "DistinguisherMethod",
            "string",
            _method,
            description=Doc("flowcontrol.v1.FlowSchemaSpec", "distinguisherMethod"),
        ),
        AGE,
        Column(
            "MissingPL",
            "string",
            _dangling,
            description="references a broken or non-existent PriorityLevelConfiguration",
        ),
    )

    def default(self, obj: Object) -> None:
        if not obj["spec"].get("matchingPrecedence"):
            obj["spec"]["matchingPrecedence"] = 1000

    def validate(self, ctx: Context, obj: Object) -> list[FieldError]:
        return validate_flow_schema(obj)

    def validate_update(self, ctx: Context, obj: Object, old: Object) -> list[FieldError]:
        return validate_flow_schema(obj)


def _shares(obj: Object) -> Any:
    limited = obj["spec"].get("limited")
    return "<none>" if limited is None else limited.get("nominalConcurrencyShares", 0)


def _queuing(name: str) -> Any:
    def cell(obj: Object) -> Any:
        limited = obj["spec"].get("limited") or {}
        queuing = (limited.get("limitResponse") or {}).get("queuing")
        return "<none>" if queuing is None else queuing.get(name, 0)

    return cell


_QUEUING = "flowcontrol.v1.QueuingConfiguration"


class PriorityLevelStrategy(StatusKeeper):
    """Priority levels."""

    judges_prefix_on_update = True
    type_name = "flowcontrol.v1.PriorityLevelConfiguration"
    generation = True
    subresources: ClassVar[Mapping[str, type[Strategy]]] = {"status": FlowControlStatusStrategy}
    columns = (
        NAME,
        Column(
            "Type",
            "string",
            lambda o: o["spec"].get("type", ""),
            description=Doc("flowcontrol.v1.PriorityLevelConfigurationSpec", "type"),
        ),
        Column(
            "NominalConcurrencyShares",
            "string",
            _shares,
            description=Doc("flowcontrol.v1.LimitedPriorityLevelConfiguration", "nominalConcurrencyShares"),
        ),
        Column("Queues", "string", _queuing("queues"), description=Doc(_QUEUING, "queues")),
        Column("HandSize", "string", _queuing("handSize"), description=Doc(_QUEUING, "handSize")),
        Column(
            "QueueLengthLimit", "string", _queuing("queueLengthLimit"), description=Doc(_QUEUING, "queueLengthLimit")
        ),
        AGE,
    )

    def default(self, obj: Object) -> None:
        exempt, limited = obj["spec"].get("exempt"), obj["spec"].get("limited")
        if exempt is not None:
            _fill(exempt, nominalConcurrencyShares=0, lendablePercent=0)
        if limited is not None:
            _fill(limited, nominalConcurrencyShares=30, lendablePercent=0)
            queuing = (limited.get("limitResponse") or {}).get("queuing")
            if queuing is not None:
                queuing |= {name: value for name, value in _QUEUING_DEFAULTS if not queuing.get(name)}

    def validate(self, ctx: Context, obj: Object) -> list[FieldError]:
        return validate_priority_level(obj)

    def validate_update(self, ctx: Context, obj: Object, old: Object) -> list[FieldError]:
        return validate_priority_level(obj)


def _fill(half: Object, **values: int) -> None:
    for name, value in values.items():
        if half.get(name) is None:
            half[name] = value


_QUEUING_DEFAULTS = (("handSize", 8), ("queues", 64), ("queueLengthLimit", 50))

STRATEGIES: dict[str, type[Strategy]] = {
    "flowschemas": FlowSchemaStrategy,
    "prioritylevelconfigurations": PriorityLevelStrategy,
}
