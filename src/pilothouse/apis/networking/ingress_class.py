"""Ingress classes: which controller serves an ingress."""

from __future__ import annotations

from typing import Any, Final

from pilothouse.apis.columns import AGE
from pilothouse.apis.core.checks import check_dns_label, check_unchanged
from pilothouse.apis.networking.ingress.validation import check_reference
from pilothouse.apis.strategy import Column, Context, Doc, Strategy
from pilothouse.apis.strategy_rules import GenerationRules, MetadataRules
from pilothouse.machinery.field_errors import FieldError, Path, forbidden, not_supported, required, too_long
from pilothouse.machinery.names import check_domain_prefixed_path
from pilothouse.machinery.objects import Object

_DEFAULT_CLASS: Final = "ingressclass.kubernetes.io/is-default-class"
_CONTROLLER_LIMIT: Final = 250
_SCOPES: Final = ("Cluster", "Namespace")


def _spec(obj: Object) -> dict[str, Any]:
    return obj.get("spec") or {}


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

    metadata_rules = MetadataRules(judges_prefix_on_update=True)
    generation_rules = GenerationRules(counted=True)
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
