"""How pods spread over zones and nodes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from pilothouse.apis.selectors import validate_label_selector
from pilothouse.apis.validation import positive
from pilothouse.machinery.field_errors import FieldError, Path, duplicate, forbidden, invalid, not_supported, required
from pilothouse.machinery.names import check_label_key
from pilothouse.machinery.objects import Object

if TYPE_CHECKING:
    from pilothouse.apis.core.pod_spec.options import PodValidationOptions


_ACTIONS: Final = ("DoNotSchedule", "ScheduleAnyway")
_POLICIES: Final = ("Honor", "Ignore")
_IN_BOTH: Final = "exists in both matchLabelKeys and labelSelector"
_NOWHERE: Final = Path()


def validate_spread_constraints(
    constraints: list[Object], path: Path, errs: list[FieldError], options: PodValidationOptions
) -> None:
    """Errors of a list of constraints; ``path`` is the list's."""
    last = {(c.get("topologyKey", ""), c.get("whenUnsatisfiable", "")): at for at, c in enumerate(constraints)}
    for position, constraint in enumerate(constraints):
        where = path.index(position)
        key, action = constraint.get("topologyKey", ""), constraint.get("whenUnsatisfiable", "")
        positive(constraint.get("maxSkew", 0), where, "maxSkew", errs)
        if not key:
            errs.append(required(where.child("topologyKey"), "can not be empty"))
        if action not in _ACTIONS:
            errs.append(not_supported(where.child("whenUnsatisfiable"), action, _ACTIONS))
        if last[key, action] > position:
            errs.append(duplicate(where.child("{topologyKey, whenUnsatisfiable}"), f"{{{key}, {action}}}"))
        _validate_domains(constraint, action, where, errs)
        _validate_selection(constraint, where, errs, options)


def _validate_domains(constraint: Object, action: str, path: Path, errs: list[FieldError]) -> None:
    domains = constraint.get("minDomains")
    if domains is not None:
        positive(domains, path, "minDomains", errs)
        if action != "DoNotSchedule":
            why = f"can only use minDomains if whenUnsatisfiable=DoNotSchedule, not {action}"
            errs.append(invalid(path.child("minDomains"), domains, why))
    for name in ("nodeAffinityPolicy", "nodeTaintsPolicy"):
        policy = constraint.get(name)
        if policy is not None and policy not in _POLICIES:
            errs.append(not_supported(path.child(name), policy, _POLICIES))


def _validate_selection(constraint: Object, path: Path, errs: list[FieldError], options: PodValidationOptions) -> None:
    keys, selector = constraint.get("matchLabelKeys") or (), constraint.get("labelSelector")
    if options.former_match_label_keys:
        _validate_match_keys_once(keys, selector, path.child("matchLabelKeys"), errs)
    else:
        validate_match_keys(keys, (), selector, path, errs)
    if not options.allow_invalid_spread_selector:
        validate_label_selector(selector, path.child("labelSelector"), errs)


def validate_match_keys(keys: Any, others: Any, selector: Object | None, path: Path, errs: list[FieldError]) -> None:
    """Keys whose values of the new pod itself select others, or must not.

    The server has already added what the keys mean to the selector, so a key that is there twice was there before.
    """
    if not keys and not others:
        return
    for name, listed in (("matchLabelKeys", keys), ("mismatchLabelKeys", others)):
        if listed and selector is None:
            errs.append(forbidden(path.child(name), "must not be specified when labelSelector is not set"))
            continue
        for position, key in enumerate(listed):
            errs += (invalid(path.child(name).index(position), key, message) for message in check_label_key(key))
    if selector is not None:
        places = {key: position for position, key in enumerate(keys)}
        seen = set(selector.get("matchLabels") or ())
        for expression in selector.get("matchExpressions") or ():
            key = expression.get("key", "")
            if key in places and key in seen:
                errs.append(invalid(path.index(places[key]), key, _IN_BOTH))
            seen.add(key)
    excluded = set(others)
    for position, key in enumerate(keys):
        if key in excluded:
            why = "exists in both matchLabelKeys and mismatchLabelKeys"
            errs.append(invalid(path.child("matchLabelKeys").index(position), key, why))


def _validate_match_keys_once(keys: Any, selector: Object | None, path: Path, errs: list[FieldError]) -> None:
    """The rule of earlier releases, which did not add anything to the selector."""
    if not keys:
        return
    if selector is None:
        errs.append(forbidden(path, "must not be specified when labelSelector is not set"))
    selector = selector or {}
    selected = {*(selector.get("matchLabels") or ())}
    selected.update(expression.get("key", "") for expression in selector.get("matchExpressions") or ())
    for position, key in enumerate(keys):
        errs += (invalid(path.index(position), key, message) for message in check_label_key(key))
        if key in selected:
            errs.append(invalid(path.index(position), key, _IN_BOTH))


def has_invalid_spread_selector(constraint: Object) -> bool:
    """Whether a stored constraint's selector breaks today's rules."""
    errs: list[FieldError] = []
    validate_label_selector(constraint.get("labelSelector"), _NOWHERE, errs)
    return bool(errs)


def breaks_former_match_keys(constraint: Object) -> bool:
    """Whether a stored constraint's keys break the rules of earlier releases."""
    errs: list[FieldError] = []
    _validate_match_keys_once(constraint.get("matchLabelKeys"), constraint.get("labelSelector"), _NOWHERE, errs)
    return bool(errs)


def has_invalid_match_keys(constraint: Object) -> bool:
    """Whether a stored constraint's keys break today's rules."""
    errs: list[FieldError] = []
    validate_match_keys(constraint.get("matchLabelKeys") or (), (), constraint.get("labelSelector"), _NOWHERE, errs)
    return bool(errs)
