"""LimitRanges: what the limits of a type must agree on among themselves."""

from __future__ import annotations

import uuid
from typing import Any, Final

from pilothouse.apis.core.checks import refusals
from pilothouse.apis.core.resource_names import (
    check_container_resource_name,
    check_resource_name,
    may_overcommit,
    round_up_resources,
)
from pilothouse.apis.strategy import Context, Strategy
from pilothouse.apis.strategy_rules import MetadataRules, UpdateRules
from pilothouse.machinery import names, quantity
from pilothouse.machinery.field_errors import FieldError, Named, Path, duplicate, forbidden, invalid, required
from pilothouse.machinery.objects import Object
from pilothouse.machinery.quantity import Quantity

_LIMITS: Final = Path("spec", "limits")
_TYPES: Final = frozenset({"Pod", "Container", "PersistentVolumeClaim"})
_AMOUNTS: Final = ("max", "min", "default", "defaultRequest", "maxLimitRequestRatio")
_MAX_MILLI: Final = ((1 << 63) - 1) // 1000
_ONE: Final = quantity.parse("1")


class LimitRangeStrategy(Strategy):
    """A range without a name gets a random one; a PUT may create."""

    metadata_rules = MetadataRules(judges_prefix_on_update=True)
    update_rules = UpdateRules(allow_create=True)

    def default(self, obj: Object) -> None:
        for limit in obj.get("spec", {}).get("limits") or ():
            for key in _AMOUNTS:
                round_up_resources(limit.get(key))
            if limit.get("type") == "Container":
                _default_container(limit)

    def prepare_for_create(self, ctx: Context, obj: Object) -> None:
        if not obj["metadata"].get("name"):
            obj["metadata"]["name"] = str(uuid.uuid4())

    def validate(self, ctx: Context, obj: Object) -> list[FieldError]:
        errs: list[FieldError] = []
        seen: set[str] = set()
        for at, limit in enumerate(obj.get("spec", {}).get("limits") or ()):
            path = _LIMITS.index(at)
            type_ = limit.get("type", "")
            errs += _check_type(path.child("type"), type_)
            if type_ in seen:
                errs.append(duplicate(path.child("type"), Named(type_)))
            seen.add(type_)
            errs += _check_limit(path, limit, type_)
        return errs

    def validate_update(self, ctx: Context, obj: Object, old: Object) -> list[FieldError]:
        return self.validate(ctx, obj)


def _default_container(limit: dict[str, Any]) -> None:
    """Default limits come from max, default requests from default limits, then from min."""
    limits = {**(limit.get("max") or {}), **(limit.get("default") or {})}
    requests = {**(limit.get("min") or {}), **limits, **(limit.get("defaultRequest") or {})}
    if limits:
        limit["default"] = limits
    if requests:
        limit["defaultRequest"] = requests


def _check_type(path: Path, type_: str) -> list[FieldError]:
    errs = refusals(path, Named(type_), names.check_label_key(type_))
    if not errs and "/" not in type_ and type_ not in _TYPES:
        return [invalid(path, Named(type_), "must be a standard limit type or fully qualified")]
    return errs


def _check_limit(path: Path, limit: dict[str, Any], type_: str) -> list[FieldError]:
    check_name = check_container_resource_name if type_ in ("Pod", "Container") else check_resource_name
    errs: list[FieldError] = []
    amounts: dict[str, dict[str, Quantity]] = {}
    for key in _AMOUNTS:
        given = limit.get(key) or {}
        if type_ == "Pod" and key in ("default", "defaultRequest"):
            if given:
                errs.append(forbidden(path.child(key), "may not be specified when `type` is 'Pod'"))
            continue
        if key == "maxLimitRequestRatio" and type_ == "PersistentVolumeClaim":
            errs += _check_claim_storage(path, limit)
        for name, text in given.items():
            errs += check_name(path.child(key).key(name), name)
            amounts.setdefault(name, {})[key] = quantity.parse(text)
    for name, found in amounts.items():
        errs += _check_amounts(path, name, found)
    return errs


def _check_claim_storage(path: Path, limit: dict[str, Any]) -> list[FieldError]:
    if "storage" in (limit.get("min") or ()) or "storage" in (limit.get("max") or ()):
        return []
    why = "either minimum or maximum storage value is required, but neither was provided"
    return [required(path.child("limits"), why)]


def _check_amounts(path: Path, name: str, found: dict[str, Quantity]) -> list[FieldError]:
    """min ≤ default request ≤ default limit ≤ max, and ratios that can be met."""
    least, most = found.get("min"), found.get("max")
    limit, request, ratio = found.get("default"), found.get("defaultRequest"), found.get("maxLimitRequestRatio")
    errs: list[FieldError] = []

    def refuse(key: str, value: Quantity, why: str) -> None:
        errs.append(invalid(path.child(key).key(name), str(value), why))

    if least is not None and most is not None and least > most:
        refuse("min", least, f"min value {least} is greater than max value {most}")
    if request is not None and least is not None and least > request:
        refuse("defaultRequest", request, f"min value {least} is greater than default request value {request}")
    if request is not None and most is not None and request > most:
        refuse("defaultRequest", request, f"default request value {request} is greater than max value {most}")
    if request is not None and limit is not None and request > limit:
        why = f"default request value {request} is greater than default limit value {limit}"
        refuse("defaultRequest", request, why)
    if limit is not None and least is not None and least > limit:
        refuse("default", least, f"min value {least} is greater than default value {limit}")
    if limit is not None and most is not None and limit > most:
        refuse("default", most, f"default value {limit} is greater than max value {most}")
    if ratio is not None and ratio < _ONE:
        refuse("maxLimitRequestRatio", ratio, f"ratio {ratio} is less than 1")
    if ratio is not None and least is not None and most is not None:
        allowed = _largest_ratio(ratio, least, most)
        if allowed is not None:
            refuse("maxLimitRequestRatio", ratio, f"ratio {ratio} is greater than max/min = {allowed}")
    if not may_overcommit(name) and limit is not None and request is not None and limit != request:
        why = f"default value {limit} must equal to defaultRequest value {request} in {name}"
        refuse("defaultRequest", request, why)
    return errs


def _largest_ratio(ratio: Quantity, least: Quantity, most: Quantity) -> str | None:
    """max/min as the message shows it, when the ratio is above it."""
    wanted, low, high = float(ratio.value()), least.value(), most.value()
    if max(ratio.value(), low, high) < _MAX_MILLI:
        wanted, low, high = ratio.milli_value() / 1000, least.milli_value(), most.milli_value()
    if not low:
        return None
    return f"{high / low:f}" if wanted > high / low else None
