"""Flow schemas and priority levels."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Final

from pilothouse.apis.columns import AGE, NAME
from pilothouse.apis.core.internal_form import internal_form
from pilothouse.apis.flowcontrol.mandatory import FLOW_SCHEMAS
from pilothouse.apis.flowcontrol.status import FlowControlStatusStrategy, validate_status
from pilothouse.apis.status import StatusKeeper
from pilothouse.apis.strategy import Column, Context, Doc, Strategy
from pilothouse.apis.strategy_rules import GenerationRules, MetadataRules
from pilothouse.machinery import names
from pilothouse.machinery.field_errors import FieldError, Path, forbidden, invalid, not_supported, required
from pilothouse.machinery.objects import Object

MAX_PRECEDENCE: Final = 10000
_SPEC: Final = Path("spec")
_VERBS: Final = ("create", "delete", "deletecollection", "get", "list", "patch", "proxy", "update", "watch")
_SUBJECTS: Final = {"ServiceAccount": "serviceAccount", "User": "user", "Group": "group"}
_NAMESPACE_INTRO: Final = "each member of this list must be '*' or a DNS-1123 label; "


def validate_flow_schema(obj: Object) -> list[FieldError]:
    """Errors of a flow schema."""
    errs: list[FieldError] = []
    name, spec = obj["metadata"].get("name", ""), obj["spec"]
    _validate_precedence(name, spec.get("matchingPrecedence", 0), errs)
    method = spec.get("distinguisherMethod")
    if method is not None and method.get("type") not in ("ByNamespace", "ByUser"):
        shown = internal_form("flowcontrol.v1.FlowDistinguisherMethod", method)
        errs.append(not_supported(_SPEC.child("distinguisherMethod", "type"), shown, ("ByNamespace", "ByUser")))
    level = (spec.get("priorityLevelConfiguration") or {}).get("name", "")
    where = _SPEC.child("priorityLevelConfiguration", "name")
    if level:
        errs += (invalid(where, level, message) for message in names.check_dns1123_subdomain(level))
    else:
        errs.append(required(where, "must reference a priority level"))
    for position, rule in enumerate(spec.get("rules") or ()):
        _validate_rule(rule, _SPEC.child("rules").index(position), errs)
    if name in FLOW_SCHEMAS and spec != FLOW_SCHEMAS[name]:
        shown = internal_form("flowcontrol.v1.FlowSchemaSpec", spec)
        errs.append(invalid(_SPEC, shown, f"spec of '{name}' must equal the fixed value"))
    return errs + validate_status(obj)


def _validate_precedence(name: str, value: int, errs: list[FieldError]) -> None:
    path = _SPEC.child("matchingPrecedence")
    if value <= 0:
        errs.append(invalid(path, value, "must be a positive value"))
    if value > MAX_PRECEDENCE:
        errs.append(invalid(path, value, f"must not be greater than {MAX_PRECEDENCE}"))
    if value == 1 and name != "exempt":
        errs.append(invalid(path, value, "only the schema named 'exempt' may have matchingPrecedence 1"))


def _validate_rule(rule: Object, path: Path, errs: list[FieldError]) -> None:
    subjects = rule.get("subjects") or ()
    if not subjects:
        errs.append(required(path.child("subjects"), "subjects must contain at least one value"))
    for position, subject in enumerate(subjects):
        _validate_subject(subject, path.child("subjects").index(position), errs)
    resources, urls = rule.get("resourceRules") or (), rule.get("nonResourceRules") or ()
    if not resources and not urls:
        errs.append(required(path, "at least one of resourceRules and nonResourceRules has to be non-empty"))
    for position, one in enumerate(resources):
        _validate_resource_rule(one, path.child("resourceRules").index(position), errs)
    for position, one in enumerate(urls):
        _validate_url_rule(one, path.child("nonResourceRules").index(position), errs)


def _validate_subject(subject: Object, path: Path, errs: list[FieldError]) -> None:
    kind = subject.get("kind", "")
    if kind not in _SUBJECTS:
        errs.append(not_supported(path.child("kind"), kind, ("Group", "ServiceAccount", "User")))
        return
    name = _SUBJECTS[kind]
    chosen = subject.get(name)
    if chosen is None:
        errs.append(required(path.child(name), f"{name} is required when subject kind is '{kind}'"))
    elif kind == "ServiceAccount":
        _validate_service_account(chosen, path.child(name), errs)
    elif not chosen.get("name"):
        errs.append(required(path.child(name, "name")))
    for other_kind, other in _SUBJECTS.items():
        if other != name and subject.get(other) is not None:
            errs.append(forbidden(path.child(other), f"{other} is forbidden when subject kind is not '{other_kind}'"))


def _validate_service_account(subject: Object, path: Path, errs: list[FieldError]) -> None:
    name, namespace = subject.get("name", ""), subject.get("namespace", "")
    if not name:
        errs.append(required(path.child("name")))
    elif name != "*":
        errs += (invalid(path.child("name"), name, message) for message in names.check_dns1123_subdomain(name))
    if namespace:
        errs += (invalid(path.child("namespace"), namespace, m) for m in names.check_dns1123_label(namespace))
    else:
        errs.append(required(path.child("namespace"), "must specify namespace for service account"))


def _validate_verbs(verbs: list[str], path: Path, errs: list[FieldError]) -> None:
    if not verbs:
        errs.append(required(path, "verbs must contain at least one value"))
    elif "*" in verbs:
        if len(verbs) > 1:
            errs.append(invalid(path, verbs, "if '*' is present, must not specify other verbs"))
    elif not set(verbs) <= set(_VERBS):
        errs.append(not_supported(path, verbs, _VERBS))


def _validate_alone(values: list[str], path: Path, missing: str, what: str, errs: list[FieldError]) -> None:
    if not values:
        errs.append(required(path, missing))
    elif len(values) > 1 and "*" in values:
        errs.append(invalid(path, values, f"if '*' is present, must not specify other {what}"))


def _validate_resource_rule(rule: Object, path: Path, errs: list[FieldError]) -> None:
    _validate_verbs(rule.get("verbs") or [], path.child("verbs"), errs)
    why = "resource rules must supply at least one api group"
    _validate_alone(rule.get("apiGroups") or [], path.child("apiGroups"), why, "api groups", errs)
    why = "resource rules must supply at least one resource"
    _validate_alone(rule.get("resources") or [], path.child("resources"), why, "resources", errs)
    namespaces, where = rule.get("namespaces") or [], path.child("namespaces")
    if not namespaces and not rule.get("clusterScope"):
        why = "resource rules that are not cluster scoped must supply at least one namespace"
        errs.append(required(where, why))
    elif "*" in namespaces:
        if len(namespaces) > 1:
            errs.append(invalid(where, namespaces, "if '*' is present, must not specify other namespaces"))
    else:
        for position, name in enumerate(namespaces):
            messages = names.check_dns1123_label(name)
            errs += (invalid(where.index(position), name, _NAMESPACE_INTRO + message) for message in messages)


def _validate_url_rule(rule: Object, path: Path, errs: list[FieldError]) -> None:
    _validate_verbs(rule.get("verbs") or [], path.child("verbs"), errs)
    urls, where = rule.get("nonResourceURLs") or [], path.child("nonResourceURLs")
    why = "nonResourceURLs must contain at least one value"
    _validate_alone(urls, where, why, "non-resource URLs", errs)
    if "*" not in urls:
        for position, url in enumerate(urls):
            error = _url_error(url)
            if error:
                errs.append(invalid(where.index(position), url, error))


def _url_error(url: str) -> str:
    if not url:
        return "must not be empty"
    if url == "/":
        return ""
    if not url.startswith("/"):
        return "must start with slash"
    if " " in url:
        return "must not contain white-space"
    if "//" in url:
        return "must not contain double slash"
    stars = url.count("*")
    return "wildcard can only do suffix matching" if stars > 1 or (stars == 1 and not url.endswith("/*")) else ""


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

    metadata_rules = MetadataRules(judges_prefix_on_update=True)
    type_name = "flowcontrol.v1.FlowSchema"
    generation_rules = GenerationRules(counted=True)
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
