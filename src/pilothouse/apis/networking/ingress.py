"""Ingresses and their classes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Final

from pilothouse.apis.columns import AGE, NAME
from pilothouse.apis.core.checks import check_dns_label, check_unchanged
from pilothouse.apis.core.service import show_load_balancer
from pilothouse.apis.networking.ingress_validation import (
    CLASS_ANNOTATION,
    check_class_annotation,
    check_reference,
    status_entries,
    validate_ingress,
    validate_ingress_status,
)
from pilothouse.apis.strategy import Column, Context, Doc, Object, StatusStrategy, Strategy
from pilothouse.machinery.addresses import warn_about_ip
from pilothouse.machinery.field_errors import FieldError, Path, forbidden, not_supported, required, too_long
from pilothouse.machinery.names import check_domain_prefixed_path

_DEFAULT_CLASS: Final = "ingressclass.kubernetes.io/is-default-class"
_CONTROLLER_LIMIT: Final = 250
_SCOPES: Final = ("Cluster", "Namespace")
_SHOWN: Final = 3


def _spec(obj: Object) -> dict[str, Any]:
    return obj.get("spec") or {}


def _class_cell(obj: Object) -> str:
    name = _spec(obj).get("ingressClassName")
    return "<none>" if name is None else name


def _hosts_cell(obj: Object) -> str:
    rules = _spec(obj).get("rules") or ()
    shown: list[str] = []
    more = False
    for rule in rules:
        more = more or len(shown) == _SHOWN
        if not more and rule.get("host"):
            shown.append(rule["host"])
    text = ",".join(shown) or "*"
    return f"{text} + {len(rules) - _SHOWN} more..." if more else text


class IngressStatusStrategy(StatusStrategy):
    """``/status``: where the load balancer can be reached."""

    def validate_update(self, ctx: Context, obj: Object, old: Object) -> list[FieldError]:
        return validate_ingress_status(obj, old, strict=self.strict_addresses)

    def warnings_on_update(self, ctx: Context, obj: Object, old: Object) -> list[str]:
        return [
            warning
            for at, entry in enumerate(status_entries(obj))
            for warning in warn_about_ip(f"status.loadBalancer.ingress[{at}]", entry.get("ip") or "")
        ]


class IngressStrategy(Strategy):
    """Rules that send requests from outside to services."""

    judges_prefix_on_update = True
    generation = True
    subresources: ClassVar[Mapping[str, type[Strategy]]] = {"status": IngressStatusStrategy}
    reset_fields = ("status",)
    columns = (
        NAME,
        Column(
            "Class",
            "string",
            _class_cell,
            description="The name of the IngressClass resource that should be used for additional configuration",
        ),
        Column(
            "Hosts",
            "string",
            _hosts_cell,
            description="Hosts that incoming requests are matched against before the ingress rule",
        ),
        Column(
            "Address",
            "string",
            lambda obj: show_load_balancer(obj.get("status")),
            description="Address is a list containing ingress points for the load-balancer",
        ),
        Column(
            "Ports",
            "string",
            lambda obj: "80, 443" if _spec(obj).get("tls") else "80",
            description="Ports of TLS configurations that open",
        ),
        AGE,
    )

    def prepare_for_create(self, ctx: Context, obj: Object) -> None:
        obj["status"] = {"loadBalancer": {}}

    def prepare_for_update(self, ctx: Context, obj: Object, old: Object) -> None:
        obj["status"] = old.get("status", {})

    def validate(self, ctx: Context, obj: Object) -> list[FieldError]:
        return validate_ingress(obj) + check_class_annotation(obj)

    def validate_update(self, ctx: Context, obj: Object, old: Object) -> list[FieldError]:
        return validate_ingress(obj, old)

    def warnings_on_create(self, ctx: Context, obj: Object) -> list[str]:
        if CLASS_ANNOTATION not in (obj["metadata"].get("annotations") or ()):
            return []
        if _spec(obj).get("ingressClassName") is not None:
            return []
        return [f"annotation \"{CLASS_ANNOTATION}\" is deprecated, please use 'spec.ingressClassName' instead"]


def _class_name_cell(obj: Object) -> str:
    name: str = obj["metadata"].get("name", "")
    default = (obj["metadata"].get("annotations") or {}).get(_DEFAULT_CLASS) == "true"
    return f"{name} (default)" if default else name


def _parameters_cell(obj: Object) -> str:
    reference = _spec(obj).get("parameters")
    if reference is None:
        return "<none>"
    group = reference.get("apiGroup")
    kind = reference.get("kind", "") if group is None else f"{reference.get('kind', '')}.{group}"
    return f"{kind}/{reference.get('name', '')}"


class IngressClassStrategy(Strategy):
    """Who serves the ingresses of a class, and with which parameters."""

    judges_prefix_on_update = True
    generation = True
    columns = (
        Column("Name", "string", _class_name_cell, format="name", description=Doc("meta.v1.ObjectMeta", "name")),
        Column(
            "Controller",
            "string",
            lambda obj: _spec(obj).get("controller", ""),
            description="Controller that is responsible for handling this class",
        ),
        Column(
            "Parameters",
            "string",
            _parameters_cell,
            description="A reference to a resource with additional parameters",
        ),
        AGE,
    )

    def default(self, obj: Object) -> None:
        parameters = _spec(obj).get("parameters")
        if parameters is not None and parameters.get("scope") is None:
            parameters["scope"] = "Cluster"

    def validate(self, ctx: Context, obj: Object) -> list[FieldError]:
        # That a reference has a kind and a name is a declared rule: told last.
        controller = _spec(obj).get("controller", "")
        path = Path("spec", "controller")
        errs = [too_long(path, "", _CONTROLLER_LIMIT)] if len(controller.encode()) > _CONTROLLER_LIMIT else []
        errs += check_domain_prefixed_path(path, controller)
        parameters = _spec(obj).get("parameters")
        if parameters is None:
            return errs
        where = Path("spec", "parameters")
        missing = [required(where.child(key)) for key in ("kind", "name") if not parameters.get(key)]
        return errs + _check_parameters(where, parameters) + missing

    def validate_update(self, ctx: Context, obj: Object, old: Object) -> list[FieldError]:
        before = _spec(old).get("controller", "")
        errs = check_unchanged(Path("spec", "controller"), _spec(obj).get("controller", ""), before)
        return errs + self.validate(ctx, obj)


def _check_parameters(path: Path, reference: dict[str, Any]) -> list[FieldError]:
    errs = check_reference(path, reference, with_missing=False)
    scope, namespace = reference.get("scope"), reference.get("namespace")
    where = path.child("namespace")
    if scope is None:
        errs.append(required(path.child("scope"), ""))
    elif scope not in _SCOPES:
        errs.append(not_supported(path.child("scope"), scope, _SCOPES, plain=True))
    elif scope == "Namespace":
        why = "`parameters.scope` is set to 'Namespace'"
        errs += [required(where, why)] if namespace is None else check_dns_label(where, namespace)
    elif namespace is not None:
        errs.append(forbidden(where, "`parameters.scope` is set to 'Cluster'"))
    return errs
