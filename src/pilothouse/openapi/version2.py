"""The OpenAPI 2.0 (Swagger) document: one for the whole server.

Parameters that many operations have in common stand once, under ``#/parameters/NAME-HASH``. The hash is of the
parameter's JSON as kube-apiserver writes it, so equal parameters have equal names wherever they come from. Parameters
that clients look for in place (``dryRun``, ``fieldValidation``), names and bodies of particular kinds are never shared.
"""

from __future__ import annotations

import base64
from collections.abc import Iterable
from typing import Any, Final

import orjson

from pilothouse.openapi.grouping import by_path, split_shared
from pilothouse.openapi.naming import operation_id_and_tag
from pilothouse.openapi.operations import STRING, Operation
from pilothouse.openapi.parameters import Parameter
from pilothouse.openapi.schemas import GVK_KEY, V2
from pilothouse.openapi.version3 import BEARER, INFO, Definitions, close_over

_UNAUTHORIZED: Final = {"description": "Unauthorized"}
_NEVER_SHARED: Final = frozenset({"name", "fieldValidation", "dryRun"})
_GENERIC_BODIES: Final = "io.k8s.apimachinery"
_FNV_OFFSET: Final = 0xCBF29CE484222325
_FNV_PRIME: Final = 0x100000001B3
_HTML: Final = ((b"&", b"\\u0026"), (b"<", b"\\u003c"), (b">", b"\\u003e"))


def build(operations: Iterable[Operation], definitions: Definitions) -> dict[str, Any]:
    """The document of all these operations."""
    writer = _Writer()
    paths = {path: writer.path_item(members) for path, members in by_path(operations)}
    return {
        "swagger": "2.0",
        "info": INFO,
        "paths": paths,
        "definitions": close_over(writer.models, definitions),
        "parameters": dict(sorted(writer.shared.items())),
        "securityDefinitions": {"BearerToken": BEARER},
        "security": [{"BearerToken": []}],
    }


def shared_name(parameter: dict[str, Any]) -> str:
    """The name under which a parameter is shared."""
    text = orjson.dumps(parameter)
    for char, escape in _HTML:
        text = text.replace(char, escape)
    value = _FNV_OFFSET
    for byte in text:
        value = (value * _FNV_PRIME & 0xFFFFFFFFFFFFFFFF) ^ byte
    return f"{parameter['name']}-{base64.urlsafe_b64encode(value.to_bytes(8, 'big')[:6]).decode()}"


class _Writer:
    """Writes paths; gathers the models they use and the parameters they share."""

    def __init__(self) -> None:
        self.models: set[str] = set()
        self.shared: dict[str, dict[str, Any]] = {}
        self._parameters: dict[Parameter, dict[str, Any]] = {}
        self._bodies: dict[tuple[str, bool], dict[str, Any]] = {}
        self._responses: dict[tuple[str, str], dict[str, Any]] = {}

    def path_item(self, operations: list[Operation]) -> dict[str, Any]:
        shared, own = split_shared(operations)
        item = {
            operation.method.lower(): self._operation(operation, parameters)
            for operation, parameters in zip(operations, own, strict=True)
        }
        if shared:
            item["parameters"] = [self._parameter(parameter) for parameter in shared]  # type: ignore[assignment]
        return item

    def _operation(self, operation: Operation, parameters: list[Parameter]) -> dict[str, Any]:
        identity, tag = operation_id_and_tag(operation.name, operation.path)
        made: dict[str, Any] = {}
        if operation.description:
            made["description"] = operation.description
        if operation.consumes:
            made["consumes"] = operation.consumes
        if operation.produces:
            made["produces"] = operation.produces
        made["schemes"] = ("https",)
        made["tags"] = (tag,)
        made["operationId"] = identity
        # "body" sorts before the names of all parameters there are.
        found = [self._body(operation)] if operation.body else []
        found += [self._parameter(parameter) for parameter in parameters]
        if found:
            made["parameters"] = found
        made["responses"] = {str(r.code): self._response(r.description, r.model) for r in operation.responses}
        made["responses"]["401"] = _UNAUTHORIZED
        if operation.gvk is not None:
            gvk = operation.gvk
            made["x-kubernetes-action"] = operation.action
            made[GVK_KEY] = {"group": gvk.group, "version": gvk.version, "kind": gvk.kind}
        return made

    def _parameter(self, parameter: Parameter) -> dict[str, Any]:
        made = self._parameters.get(parameter)
        if made is None:
            made = {"uniqueItems": True, "type": parameter.type}
            if parameter.description:
                made["description"] = parameter.description
            made |= {"name": parameter.name, "in": parameter.where}
            if parameter.required:
                made["required"] = True
            if parameter.name not in _NEVER_SHARED:
                made = self._share(made)
            self._parameters[parameter] = made
        return made

    def _body(self, operation: Operation) -> dict[str, Any]:
        key = (operation.body, operation.body_required)
        made = self._bodies.get(key)
        if made is None:
            made = {"name": "body", "in": "body"}
            if operation.body_required:
                made["required"] = True
            made["schema"] = self._reference(operation.body)
            if operation.body.startswith(_GENERIC_BODIES):
                made = self._share(made)
            self._bodies[key] = made
        return made

    def _share(self, parameter: dict[str, Any]) -> dict[str, Any]:
        name = shared_name(parameter)
        self.shared[name] = parameter
        return {"$ref": f"#/parameters/{name}"}

    def _response(self, description: str, model: str) -> dict[str, Any]:
        made = self._responses.get((description, model))
        if made is None:
            schema = {"type": "string"} if model == STRING else self._reference(model)
            made = self._responses[description, model] = {"description": description, "schema": schema}
        return made

    def _reference(self, model: str) -> dict[str, Any]:
        self.models.add(model)
        return {"$ref": V2.prefix + model}
