"""Ingresses and their classes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Final

from pilothouse.apis.columns import AGE, NAME
from pilothouse.apis.core.service.strategy import show_load_balancer
from pilothouse.apis.networking.ingress.validation import (
    CLASS_ANNOTATION,
    check_class_annotation,
    status_entries,
    validate_ingress,
    validate_ingress_status,
)
from pilothouse.apis.strategy import Column, Context, StatusStrategy, Strategy
from pilothouse.apis.strategy_rules import GenerationRules, MetadataRules
from pilothouse.machinery.addresses import warn_about_ip
from pilothouse.machinery.field_errors import FieldError
from pilothouse.machinery.objects import Object

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

    metadata_rules = MetadataRules(judges_prefix_on_update=True)
    generation_rules = GenerationRules(counted=True)
    subresources: ClassVar[Mapping[str, type[Strategy]]] = {"status": IngressStatusStrategy}
    reset_fields = ("status",)
    lenient: ClassVar[bool] = False
    """Whether names of secrets and rules for wildcard hosts are let pass."""
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
        return validate_ingress(obj, lenient=self.lenient) + check_class_annotation(obj)

    def validate_update(self, ctx: Context, obj: Object, old: Object) -> list[FieldError]:
        return validate_ingress(obj, old, lenient=self.lenient)

    def warnings_on_create(self, ctx: Context, obj: Object) -> list[str]:
        if CLASS_ANNOTATION not in (obj["metadata"].get("annotations") or ()):
            return []
        if _spec(obj).get("ingressClassName") is not None:
            return []
        return [f"annotation \"{CLASS_ANNOTATION}\" is deprecated, please use 'spec.ingressClassName' instead"]
