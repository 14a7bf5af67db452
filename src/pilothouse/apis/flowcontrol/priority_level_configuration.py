"""Flow schemas and priority levels."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, ClassVar, Final

from pilothouse.apis.columns import AGE, NAME
from pilothouse.apis.core.internal_form import internal_form
from pilothouse.apis.error_lists import ErrorList
from pilothouse.apis.flowcontrol.mandatory import PRIORITY_LEVELS
from pilothouse.apis.flowcontrol.status import FlowControlStatusStrategy, validate_status
from pilothouse.apis.status import StatusKeeper
from pilothouse.apis.strategy import Column, Context, Doc, Strategy
from pilothouse.apis.strategy_rules import GenerationRules, MetadataRules
from pilothouse.machinery.field_errors import FieldError, Path, forbidden, invalid, not_supported, required
from pilothouse.machinery.objects import Object

MAX_QUEUES: Final = 10_000_000
MAX_HASH_BITS: Final = 60
_SPEC: Final = Path("spec")
_LIMITED: Final = _SPEC.child("limited")
_ZERO_SHARES: Final = "flowcontrol.k8s.io/concurrency-shares-defaults-to-zero"
_QUEUING = "flowcontrol.v1.QueuingConfiguration"
_QUEUING_DEFAULTS = (("handSize", 8), ("queues", 64), ("queueLengthLimit", 50))


def validate_priority_level(obj: Object) -> list[FieldError]:
    """Errors of a priority level."""
    errs = ErrorList()
    metadata, spec = obj["metadata"], obj["spec"]
    name, level = metadata.get("name", ""), spec.get("type", "")
    if _ZERO_SHARES in (metadata.get("annotations") or ()):
        why = f"annotation '{_ZERO_SHARES}' is forbidden"
        errs.errors.append(forbidden(Path("metadata", "annotations"), why))
    if (name == "exempt") != (level == "Exempt"):
        why = "must be 'Exempt' if and only if `name` is 'exempt'"
        errs.errors.append(invalid(_SPEC.child("type"), level, why))
    if level == "Exempt" and spec.get("exempt") is not None:
        _validate_exempt(spec["exempt"], _SPEC.child("exempt"), errs.errors)
    elif level == "Limited" and spec.get("limited") is not None:
        _validate_limited(spec["limited"], errs.errors)
    elif level not in ("", "Exempt", "Limited"):
        errs.errors.append(not_supported(_SPEC.child("type"), level, ("Exempt", "Limited")))
    _validate_mandatory(name, spec, errs.errors)
    errs.errors += validate_status(obj)
    _declare(spec, level, errs.declared)
    return errs.listed()


def _declare(spec: Object, level: str, errs: list[FieldError]) -> None:
    """Which halves of the spec and of the limit's response go with which type."""
    exempt, limited = spec.get("exempt"), spec.get("limited")
    if exempt is not None and level != "Exempt":
        errs.append(forbidden(_SPEC.child("exempt"), ""))
    if limited is None:
        if level == "Limited":
            errs.append(required(_LIMITED))
    elif level != "Limited":
        errs.append(forbidden(_LIMITED, ""))
    if not level:
        errs.append(required(_SPEC.child("type")))
    if limited is not None:
        response = limited.get("limitResponse") or {}
        answer, queuing = response.get("type", ""), response.get("queuing")
        where = _LIMITED.child("limitResponse")
        if queuing is None and answer == "Queue":
            errs.append(required(where.child("queuing")))
        if queuing is not None and answer != "Queue":
            errs.append(forbidden(where.child("queuing"), ""))
        if not answer:
            errs.append(required(where.child("type")))


def _validate_exempt(exempt: Object, path: Path, errs: list[FieldError]) -> None:
    shares = exempt.get("nominalConcurrencyShares")
    if shares is not None and shares < 0:
        errs.append(invalid(path.child("nominalConcurrencyShares"), shares, "must be a non-negative integer"))
    _validate_lendable(exempt, path, errs)


def _validate_lendable(half: Object, path: Path, errs: list[FieldError]) -> None:
    lendable = half.get("lendablePercent")
    if lendable is not None and not 0 <= lendable <= 100:
        errs.append(invalid(path.child("lendablePercent"), lendable, "must be between 0 and 100, inclusive"))


def _validate_limited(limited: Object, errs: list[FieldError]) -> None:
    shares = limited.get("nominalConcurrencyShares") or 0
    if shares < 0:
        errs.append(invalid(_LIMITED.child("nominalConcurrencyShares"), shares, "must be a non-negative integer"))
    response, path = limited.get("limitResponse") or {}, _LIMITED.child("limitResponse")
    answer = response.get("type", "")
    if answer == "Queue" and response.get("queuing") is not None:
        _validate_queuing(response["queuing"], path.child("queuing"), errs)
    elif answer not in ("", "Queue", "Reject"):
        errs.append(not_supported(path.child("type"), answer, ("Queue", "Reject")))
    _validate_lendable(limited, _LIMITED, errs)
    borrowing = limited.get("borrowingLimitPercent")
    if borrowing is not None and borrowing < 0:
        why = "if specified, must be a non-negative integer"
        errs.append(invalid(_LIMITED.child("borrowingLimitPercent"), borrowing, why))


def _validate_queuing(queuing: Object, path: Path, errs: list[FieldError]) -> None:
    length, queues, hand = (queuing.get(name, 0) for name in ("queueLengthLimit", "queues", "handSize"))
    if length <= 0:
        errs.append(invalid(path.child("queueLengthLimit"), length, "must be positive"))
    if queues <= 0:
        errs.append(invalid(path.child("queues"), queues, "must be positive"))
    elif queues > MAX_QUEUES:
        errs.append(invalid(path.child("queues"), queues, f"must not be greater than {MAX_QUEUES}"))
    if hand <= 0:
        errs.append(invalid(path.child("handSize"), hand, "must be positive"))
    elif hand > queues:
        errs.append(invalid(path.child("handSize"), hand, f"should not be greater than queues ({queues})"))
    elif math.ceil(math.log2(queues) * hand) > MAX_HASH_BITS:
        why = (
            f"required entropy bits of deckSize {queues} and handSize {hand} should not be greater than {MAX_HASH_BITS}"
        )
        errs.append(invalid(path.child("handSize"), hand, why))


def _validate_mandatory(name: str, spec: Object, errs: list[FieldError]) -> None:
    fixed = PRIORITY_LEVELS.get(name)
    if fixed is None:
        return
    shown = "flowcontrol.v1.PriorityLevelConfigurationSpec"
    if name == "exempt":
        if {**spec, "exempt": None} != {**fixed, "exempt": None}:
            why = f"spec of '{name}' except the 'spec.exempt' field must equal the fixed value"
            errs.append(invalid(_SPEC, internal_form(shown, spec), why))
    elif spec != fixed:
        errs.append(invalid(_SPEC, internal_form(shown, spec), f"spec of '{name}' must equal the fixed value"))


def _shares(obj: Object) -> Any:
    limited = obj["spec"].get("limited")
    return "<none>" if limited is None else limited.get("nominalConcurrencyShares", 0)


def _queuing(name: str) -> Any:
    def cell(obj: Object) -> Any:
        limited = obj["spec"].get("limited") or {}
        queuing = (limited.get("limitResponse") or {}).get("queuing")
        return "<none>" if queuing is None else queuing.get(name, 0)

    return cell


class PriorityLevelStrategy(StatusKeeper):
    """Priority levels."""

    metadata_rules = MetadataRules(judges_prefix_on_update=True)
    type_name = "flowcontrol.v1.PriorityLevelConfiguration"
    generation_rules = GenerationRules(counted=True)
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
