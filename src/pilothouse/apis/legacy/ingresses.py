"""Ingresses through extensions/v1beta1 and networking.k8s.io/v1beta1: flat backends, and errors that name their fields.

spec.backend                           spec.defaultBackend
serviceName: s, servicePort: 80        service: {name: s, port: {number: 80}}
serviceName: s, servicePort: http      service: {name: s, port: {name: http}}
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import ClassVar, Final

from pilothouse.apis.legacy.older import Older
from pilothouse.apis.networking.ingress.strategy import IngressStrategy
from pilothouse.apis.strategy import Context
from pilothouse.machinery.field_errors import FieldError
from pilothouse.machinery.objects import Object

_FIELDS: Final = (
    (re.compile(r"^spec\.defaultBackend\b"), "spec.backend"),
    (re.compile(r"\.service\.name$"), ".serviceName"),
    (re.compile(r"\.service\.port\.(name|number)$"), ".servicePort"),
)


class FlatIngresses(IngressStrategy):
    """Ingresses as the betas judge them: names of secrets and rules for wildcards pass."""

    lenient: ClassVar[bool] = True

    def validate(self, ctx: Context, obj: Object) -> list[FieldError]:
        return [_renamed(error) for error in super().validate(ctx, obj)]

    def validate_update(self, ctx: Context, obj: Object, old: Object) -> list[FieldError]:
        return [_renamed(error) for error in super().validate_update(ctx, obj, old)]


def _renamed(error: FieldError) -> FieldError:
    field = error.field
    for old, new in _FIELDS:
        field = old.sub(new, field)
    return FieldError(error.type, field, error.value, error.detail)


def default_ingress(obj: Object) -> None:
    for rule in obj["spec"].get("rules") or ():
        for path in (rule.get("http") or {}).get("paths") or ():
            if path.get("pathType") is None:
                path["pathType"] = "ImplementationSpecific"


def from_flat(obj: Object) -> Object:
    """As networking.k8s.io/v1 has it."""
    return _converted(obj, "backend", "defaultBackend", _from_flat)


def to_flat(obj: Object) -> Object:
    """As the betas have it."""
    return _converted(obj, "defaultBackend", "backend", _to_flat)


def _converted(obj: Object, old: str, new: str, convert: Callable[[Object], Object]) -> Object:
    spec = {name: value for name, value in (obj.get("spec") or {}).items() if name != old}
    backend = (obj.get("spec") or {}).get(old)
    if backend is not None:
        spec[new] = convert(backend)
    if spec.get("rules"):
        spec["rules"] = [_converted_rule(rule, convert) for rule in spec["rules"]]
    return {**obj, "spec": spec}


def _converted_rule(rule: Object, convert: Callable[[Object], Object]) -> Object:
    http = rule.get("http")
    if not http or not http.get("paths"):
        return rule
    paths = [{**path, "backend": convert(path.get("backend") or {})} for path in http["paths"]]
    return {**rule, "http": {**http, "paths": paths}}


def _from_flat(backend: Object) -> Object:
    made = {name: value for name, value in backend.items() if name not in ("serviceName", "servicePort")}
    name, port = backend.get("serviceName", ""), backend.get("servicePort", 0)
    if not name and port == 0:
        return made
    given = {"number" if isinstance(port, int) else "name": port} if port else {}
    return {**made, "service": {"name": name, "port": given}}


def _to_flat(backend: Object) -> Object:
    made = {name: value for name, value in backend.items() if name != "service"}
    service = backend.get("service")
    if service is None:
        return {**made, "servicePort": 0}
    port = service.get("port") or {}
    return {**made, "serviceName": service.get("name", ""), "servicePort": port.get("name") or port.get("number", 0)}


INGRESSES: Final = Older(from_flat, to_flat, default_ingress, FlatIngresses)
