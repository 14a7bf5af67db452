"""Tolerations of taints."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from pilothouse.machinery.field_errors import FieldError, Named, Path, forbidden, invalid, not_supported
from pilothouse.machinery.go_quote import quote
from pilothouse.machinery.names import check_decimal_integer, check_label_key, check_label_value
from pilothouse.machinery.objects import Object

if TYPE_CHECKING:
    from pilothouse.apis.core.pod_spec.options import PodValidationOptions


TAINT_EFFECTS: Final = ("NoSchedule", "PreferNoSchedule", "NoExecute")
_is_integer = re.compile(r"[+-]?[0-9]+").fullmatch


def validate_tolerations(
    tolerations: list[Object], path: Path, errs: list[FieldError], options: PodValidationOptions
) -> None:
    """Errors of a list of tolerations; ``path`` is the list's."""
    for position, toleration in enumerate(tolerations):
        where = path.index(position)
        key, operator = toleration.get("key", ""), toleration.get("operator", "")
        if key:
            errs += (invalid(where.child("key"), key, message) for message in check_label_key(key))
        elif operator != "Exists":
            why = 'operator must be Exists when `key` is empty, which means "match all values and all keys"'
            errs.append(invalid(where.child("operator"), Named(operator), why))
        effect = toleration.get("effect", "")
        if "tolerationSeconds" in toleration and effect != "NoExecute":
            why = "effect must be 'NoExecute' when `tolerationSeconds` is set"
            errs.append(invalid(where.child("effect"), Named(effect), why))
        _validate_operator(operator, toleration.get("value", ""), where, errs, options.allow_comparing_tolerations)
        if effect and effect not in TAINT_EFFECTS:
            errs.append(not_supported(where.child("effect"), effect, TAINT_EFFECTS))


def _validate_operator(operator: str, value: str, path: Path, errs: list[FieldError], allow_comparing: bool) -> None:
    if operator in ("", "Equal"):
        if messages := check_label_value(value):
            errs.append(invalid(path.child("operator"), value, ";".join(messages)))
    elif operator == "Exists":
        if value:
            why = "value must be empty when `operator` is 'Exists'"
            errs.append(invalid(path.child("operator"), value, why))
    elif operator not in ("Lt", "Gt"):
        errs.append(not_supported(path.child("operator"), operator, ("Equal", "Exists")))
    elif not allow_comparing:
        errs.append(not_supported(path.child("operator"), operator, ("Equal", "Exists", "Lt", "Gt")))
    else:
        errs += (invalid(path.child("value"), value, message) for message in check_decimal_integer(value))
        if not _is_integer(value):
            why = f"strconv.ParseInt: parsing {quote(value)}: invalid syntax"
            errs.append(invalid(path.child("value"), value, why))
        elif not -(2**63) <= int(value) < 2**63:
            why = f"strconv.ParseInt: parsing {quote(value)}: value out of range"
            errs.append(invalid(path.child("value"), value, why))


def validate_added_tolerations(
    tolerations: list[Object], old: list[Object], path: Path, errs: list[FieldError], options: PodValidationOptions
) -> None:
    """A running pod's tolerations may grow, and their seconds may change; nothing else."""
    kept = {_without_seconds(toleration) for toleration in tolerations}
    if any(_without_seconds(toleration) not in kept for toleration in old):
        errs.append(forbidden(path, "existing toleration can not be modified except its tolerationSeconds"))
        return
    validate_tolerations(tolerations, path, errs, options)


def _without_seconds(toleration: Object) -> frozenset[tuple[str, str]]:
    return frozenset((key, value) for key, value in toleration.items() if key != "tolerationSeconds")
