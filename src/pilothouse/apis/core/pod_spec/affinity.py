"""Affinity to nodes and to other pods."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from pilothouse.apis.core.pod_spec.topology_spread import validate_match_keys
from pilothouse.apis.selectors import validate_label_selector
from pilothouse.machinery.field_errors import FieldError, Named, Path, forbidden, invalid, required
from pilothouse.machinery.names import check_dns1123_label, check_dns1123_subdomain, check_label_key, check_label_value
from pilothouse.machinery.objects import Object

if TYPE_CHECKING:
    from pilothouse.apis.core.pod_spec.options import PodValidationOptions


REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED: Final = "preferredDuringSchedulingIgnoredDuringExecution"
_POD_KINDS: Final = ("podAffinity", "podAntiAffinity")
_BAD_OPERATOR: Final = "not a valid selector operator"
_BAD_WEIGHT: Final = "must be in the range 1-100"
_NOWHERE: Final = Path()


def validate_affinity(affinity: Object, path: Path, errs: list[FieldError], options: PodValidationOptions) -> None:
    """Errors of all three kinds of affinity."""
    nodes = affinity.get("nodeAffinity")
    if nodes is not None:
        allow = options.allow_invalid_label_value_in_node_affinity
        _validate_node_affinity(nodes, path.child("nodeAffinity"), errs, allow)
    for kind in _POD_KINDS:
        pods = affinity.get(kind)
        if pods:
            _validate_pod_affinity(pods, path.child(kind), errs, options.allow_invalid_label_value_in_selector)


def _validate_node_affinity(affinity: Object, path: Path, errs: list[FieldError], allow_invalid: bool) -> None:
    selector = affinity.get(REQUIRED)
    if selector is not None:
        validate_node_selector(selector, path.child(REQUIRED), errs, allow_invalid_values=allow_invalid)
    for position, term in enumerate(affinity.get(PREFERRED) or ()):
        where = path.child(PREFERRED).index(position)
        weight = term.get("weight", 0)
        if not 0 < weight <= 100:
            errs.append(invalid(where.child("weight"), weight, _BAD_WEIGHT))
        # A preference that no label can meet does no harm, so its values are not checked.
        preference = term.get("preference") or {}
        validate_node_selector_term(preference, where.child("preference"), errs, allow_invalid_values=True)


def validate_node_selector(
    selector: Object, path: Path, errs: list[FieldError], *, allow_invalid_values: bool = False
) -> None:
    """Errors of a ``NodeSelector``, also that of a persistent volume."""
    terms = selector.get("nodeSelectorTerms")
    where = path.child("nodeSelectorTerms")
    if not terms:
        errs.append(required(where, "must have at least one node selector term"))
        return
    for position, term in enumerate(terms):
        validate_node_selector_term(term, where.index(position), errs, allow_invalid_values=allow_invalid_values)


def validate_node_selector_term(
    term: Object, path: Path, errs: list[FieldError], *, allow_invalid_values: bool = False
) -> None:
    """Errors of one term: expressions about labels, and about the node's name."""
    for position, expression in enumerate(term.get("matchExpressions") or ()):
        where = path.child("matchExpressions").index(position)
        _validate_label_requirement(expression, where, errs, allow_invalid_values)
    for position, expression in enumerate(term.get("matchFields") or ()):
        _validate_field_requirement(expression, path.child("matchFields").index(position), errs)


def _validate_label_requirement(expression: Object, path: Path, errs: list[FieldError], allow_invalid: bool) -> None:
    operator, values, key = expression.get("operator", ""), expression.get("values") or (), expression.get("key", "")
    if operator in ("In", "NotIn"):
        if not values:
            errs.append(required(path.child("values"), "must be specified when `operator` is 'In' or 'NotIn'"))
    elif operator in ("Exists", "DoesNotExist"):
        if values:
            why = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"
            errs.append(forbidden(path.child("values"), why))
    elif operator in ("Gt", "Lt"):
        if len(values) != 1:
            why = "must be specified single value when `operator` is 'Lt' or 'Gt'"
            errs.append(required(path.child("values"), why))
    else:
        errs.append(invalid(path.child("operator"), Named(operator), _BAD_OPERATOR))
    errs += (invalid(path.child("key"), key, message) for message in check_label_key(key))
    if not allow_invalid:
        for position, value in enumerate(values):
            where = path.child("values").index(position)
            errs += (invalid(where, value, message) for message in check_label_value(value))


def _validate_field_requirement(expression: Object, path: Path, errs: list[FieldError]) -> None:
    operator, values, key = expression.get("operator", ""), expression.get("values") or (), expression.get("key", "")
    if operator not in ("In", "NotIn"):
        errs.append(invalid(path.child("operator"), Named(operator), _BAD_OPERATOR))
    elif len(values) != 1:
        why = "must be only one value when `operator` is 'In' or 'NotIn' for node field selector"
        errs.append(required(path.child("values"), why))
    if key != "metadata.name":
        errs.append(invalid(path.child("key"), key, "not a valid field selector key"))
        return
    for position, value in enumerate(values):
        where = path.child("values").index(position)
        errs += (invalid(where, value, message) for message in check_dns1123_subdomain(value))


def _validate_pod_affinity(affinity: Object, path: Path, errs: list[FieldError], allow_invalid: bool) -> None:
    for position, term in enumerate(affinity.get(REQUIRED) or ()):
        _validate_pod_term(term, path.child(REQUIRED).index(position), errs, allow_invalid)
    for position, weighted in enumerate(affinity.get(PREFERRED) or ()):
        where = path.child(PREFERRED).index(position)
        weight = weighted.get("weight", 0)
        if not 0 < weight <= 100:
            errs.append(invalid(where.child("weight"), weight, _BAD_WEIGHT))
        _validate_pod_term(weighted.get("podAffinityTerm") or {}, where.child("podAffinityTerm"), errs, allow_invalid)


def _validate_pod_term(term: Object, path: Path, errs: list[FieldError], allow_invalid: bool) -> None:
    _validate_term_selectors(term, path, errs, allow_invalid)
    for name in term.get("namespaces") or ():
        errs += (invalid(path.child("namespace"), name, message) for message in check_dns1123_label(name))
    keys, others = term.get("matchLabelKeys") or (), term.get("mismatchLabelKeys") or ()
    validate_match_keys(keys, others, term.get("labelSelector"), path, errs)
    key = term.get("topologyKey", "")
    if not key:
        errs.append(required(path.child("topologyKey"), "can not be empty"))
    errs += (invalid(path.child("topologyKey"), key, message) for message in check_label_key(key))


def _validate_term_selectors(term: Object, path: Path, errs: list[FieldError], allow_invalid: bool) -> None:
    for name in ("labelSelector", "namespaceSelector"):
        selector = term.get(name)
        if selector:
            validate_label_selector(selector, path.child(name), errs, allow_invalid_values=allow_invalid)


def pod_terms_of(affinity: Object) -> Iterator[Object]:
    """The terms of all pod affinities, in the order the server extends them."""
    for kind in _POD_KINDS:
        pods = affinity.get(kind) or {}
        for weighted in pods.get(PREFERRED) or ():
            yield weighted.get("podAffinityTerm") or {}
        yield from pods.get(REQUIRED) or ()


def has_invalid_term_value(affinity: Object) -> bool:
    """Whether a stored selector of pods breaks today's rules."""
    errs: list[FieldError] = []
    for term in pod_terms_of(affinity):
        _validate_term_selectors(term, _NOWHERE, errs, allow_invalid=False)
    return bool(errs)


def has_invalid_node_value(affinity: Object) -> bool:
    """Whether a stored selector of nodes has a value that is no label value."""
    selector = (affinity.get("nodeAffinity") or {}).get(REQUIRED) or {}
    return any(
        check_label_value(value)
        for term in selector.get("nodeSelectorTerms") or ()
        for expression in term.get("matchExpressions") or ()
        for value in expression.get("values") or ()
    )
