"""Which requests a webhook or policy is for: rules, selectors and match conditions."""

from __future__ import annotations

from typing import Any, Final

from pilothouse.apis.admissionregistration.expressions import Expression, compile_expressions
from pilothouse.apis.validation import one_of, repeats
from pilothouse.machinery import labels, names
from pilothouse.machinery.field_errors import FieldError, Path, duplicate, invalid, not_supported, required, too_many
from pilothouse.machinery.objects import Object

FAILURE_POLICIES: Final = ("Fail", "Ignore")
MATCH_POLICIES: Final = ("Equivalent", "Exact")
REINVOCATION_POLICIES: Final = ("IfNeeded", "Never")
_SCOPES: Final = ("*", "Cluster", "Namespaced")
_OPERATIONS: Final = ("*", "CONNECT", "CREATE", "DELETE", "UPDATE")
MUTATING_OPERATIONS: Final = ("*", "CONNECT", "CREATE", "UPDATE")
_CONDITIONS_LIMIT: Final = 64


def validate_rule(rule: Object, path: Path, errs: list[FieldError]) -> None:
    """A rule: operations, groups, versions, resources and a scope."""
    operations = rule.get("operations") or []
    if not operations:
        errs.append(required(path.child("operations")))
    if len(operations) > 1 and "*" in operations:
        why = "if '*' is present, must not specify other operations"
        errs.append(invalid(path.child("operations"), operations, why))
    for position, operation in enumerate(operations):
        if operation not in _OPERATIONS:
            errs.append(not_supported(path.child("operations").index(position), operation, _OPERATIONS))
    for name, what in (("apiGroups", "API groups"), ("apiVersions", "API versions")):
        values = rule.get(name) or []
        if not values:
            errs.append(required(path.child(name)))
        if len(values) > 1 and "*" in values:
            errs.append(invalid(path.child(name), values, f"if '*' is present, must not specify other {what}"))
    versions = rule.get("apiVersions") or ()
    errs += (required(path.child("apiVersions").index(at)) for at, version in enumerate(versions) if not version)
    _validate_resources(rule.get("resources") or [], path.child("resources"), errs)
    if rule.get("scope") is not None:
        one_of(rule["scope"], _SCOPES, path, "scope", errs)


def _validate_resources(resources: list[str], path: Path, errs: list[FieldError]) -> None:
    if not resources:
        errs.append(required(path))
    whole: set[str] = set()
    wild: set[str] = set()
    bare = False
    for position, name in enumerate(resources):
        if not name:
            errs.append(required(path.index(position)))
            continue
        resource, slash, sub = name.partition("/")
        if not slash:
            bare = name != "*"
            continue
        if resource in whole:
            why = f"if '{resource}/*' is present, must not specify {name}"
            errs.append(invalid(path.index(position), name, why))
        if sub in wild:
            why = f"if '*/{sub}' is present, must not specify {name}"
            errs.append(invalid(path.index(position), name, why))
        if sub == "*":
            whole.add(resource)
        if resource == "*":
            wild.add(sub)
    if len(resources) > 1 and "*/*" in resources:
        errs.append(invalid(path, resources, "if '*/*' is present, must not specify other resources"))
    if "*" in resources and bare:
        why = "if '*' is present, must not specify other resources without subresources"
        errs.append(invalid(path, resources, why))


def validate_match_resources(match: Object | None, path: Path, errs: list[FieldError]) -> None:
    """Selectors and rules of a policy or binding."""
    if match is None:
        return
    if match.get("matchPolicy") is None:
        errs.append(required(path.child("matchPolicy")))
    else:
        one_of(match["matchPolicy"], MATCH_POLICIES, path, "matchPolicy", errs)
    for name in ("namespaceSelector", "objectSelector"):
        if match.get(name) is None:
            errs.append(required(path.child(name)))
        else:
            errs += labels.validate_object(match[name], path.child(name))
    for name in ("resourceRules", "excludeResourceRules"):
        for position, rule in enumerate(match.get(name) or ()):
            where = path.child(name).index(position)
            _validate_names(rule.get("resourceNames") or (), where.child("resourceNames"), errs)
            validate_rule(rule, where, errs)


def _validate_names(values: Any, path: Path, errs: list[FieldError]) -> None:
    twice = repeats(values)
    for position, name in enumerate(values):
        errs += (invalid(path.index(position), name, message) for message in names.check_path_segment_name(name))
        if position in twice:
            errs.append(duplicate(path.index(position), name))


def validate_mutating_operations(match: Object, path: Path, errs: list[FieldError]) -> None:
    """What is being deleted cannot be changed."""
    for rule in match.get("resourceRules") or ():
        wrong = [name for name in rule.get("operations") or () if name not in MUTATING_OPERATIONS]
        where = path.child("resourceRules", "operations")
        errs += (not_supported(where, name, MUTATING_OPERATIONS) for name in wrong)


def validate_match_conditions(
    conditions: Any, path: Path, errs: list[FieldError], *, stored: set[str], has_params: bool = False
) -> None:
    """Named expressions that narrow down which requests match."""
    conditions = conditions or ()
    if len(conditions) > _CONDITIONS_LIMIT:
        errs.append(too_many(path, len(conditions), _CONDITIONS_LIMIT))
    seen: set[str] = set()
    for position, condition in enumerate(conditions):
        where = path.index(position)
        text, name = condition.get("expression", "").strip(), condition.get("name", "")
        if not text:
            errs.append(required(where.child("expression")))
        else:
            at = where.child("expression")
            expression = Expression(text, "matchCondition", at, has_params=has_params, stored=text in stored)
            errs += compile_expressions([expression])
        if not name:
            errs.append(required(where.child("name")))
        else:
            errs += (invalid(where.child("name"), name, message) for message in names.check_label_key(name))
            if name in seen:
                errs.append(duplicate(where.child("name"), name))
            seen.add(name)
