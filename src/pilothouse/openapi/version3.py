"""OpenAPI 3.0 documents: one a group version, and one for each path that is no resource."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final

from pilothouse import KUBERNETES_VERSION
from pilothouse.openapi.grouping import by_path, split_shared
from pilothouse.openapi.naming import operation_id_and_tag
from pilothouse.openapi.operations import STRING, Operation
from pilothouse.openapi.parameters import Parameter
from pilothouse.openapi.schemas import GVK_KEY, V3, Schema

Definitions = Callable[[str], Schema | None]
INFO: Final = {"title": "Kubernetes", "version": KUBERNETES_VERSION}
_CUSTOM_INFO: Final = {"title": "Kubernetes CRD Swagger", "version": "v0.1.0"}
BEARER: Final = {
    "type": "apiKey", "description": "Bearer Token authentication", "name": "authorization", "in": "header",
}  # fmt: skip
_UNAUTHORIZED: Final = {"description": "Unauthorized"}


def build(operations: Iterable[Operation], definitions: Definitions, *, custom: bool = False) -> dict[str, Any]:
    """A whole document. ``definitions`` gives the schema of each model that is referred to.

    Those of ``custom`` resources have a head of their own, and say nothing of how clients are known.
    """
    models: set[str] = set()
    paths = {path: _path_item(members, models) for path, members in by_path(operations)}
    schemas = close_over(models, definitions)
    components: dict[str, Any] = {"schemas": schemas} if schemas else {}
    if not custom:
        components["securitySchemes"] = {"BearerToken": BEARER}
    info = _CUSTOM_INFO if custom else INFO
    return {"openapi": "3.0.0", "info": info, "paths": paths, "components": components}


def close_over(models: Iterable[str], definitions: Definitions) -> dict[str, Schema]:
    """The schemas of these models and of all they refer to, sorted by name."""
    found: dict[str, Schema] = {}
    # Wave by wave and sorted, so that the descriptions of one package are read together.
    wave = sorted(set(models))
    while wave:
        referred: list[str] = []
        for model in wave:
            schema = definitions(model)
            if schema is not None:
                found[model] = schema
                _collect_references(schema, referred)
        wave = sorted(set(referred) - found.keys())
    return dict(sorted(found.items()))


def _collect_references(schema: Any, into: list[str]) -> None:
    for key, value in schema.items():
        if key == "$ref" and isinstance(value, str):
            into.append(value.rpartition("/")[2])
        elif key == "properties":
            for member in value.values():
                _collect_references(member, into)
        elif isinstance(value, dict):
            _collect_references(value, into)
        elif key in ("allOf", "oneOf", "anyOf"):
            for member in value:
                _collect_references(member, into)


def _path_item(operations: list[Operation], models: set[str]) -> dict[str, Any]:
    shared, own = split_shared(operations)
    item: dict[str, Any] = {
        operation.method.lower(): _operation(operation, parameters, models)
        for operation, parameters in zip(operations, own, strict=True)
    }
    if shared:
        item["parameters"] = [_parameter(parameter) for parameter in shared]
    return item


def _operation(operation: Operation, parameters: list[Parameter], models: set[str]) -> dict[str, Any]:
    identity, tag = operation_id_and_tag(operation.name, operation.path)
    made: dict[str, Any] = {"tags": [tag]}
    if operation.description:
        made["description"] = operation.description
    made["operationId"] = identity
    if parameters:
        made["parameters"] = [_parameter(parameter) for parameter in parameters]
    if operation.body:
        body: dict[str, Any] = {"content": _content(operation.consumes, operation.body, models)}
        if operation.body_required:
            body["required"] = True
        made["requestBody"] = body
    made["responses"] = _responses(operation, models)
    if operation.gvk is not None:
        gvk = operation.gvk
        made["x-kubernetes-action"] = operation.action
        made[GVK_KEY] = {"group": gvk.group, "version": gvk.version, "kind": gvk.kind}
    return made


def _responses(operation: Operation, models: set[str]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for response in operation.responses:
        content = _content(operation.produces, response.model, models)
        found[str(response.code)] = {"description": response.description, "content": content}
    found["401"] = _UNAUTHORIZED
    return found


def _content(media: tuple[str, ...], model: str, models: set[str]) -> dict[str, Any]:
    if model == STRING:
        schema = {"schema": {"type": "string"}}
    else:
        models.add(model)
        schema = {"schema": {"$ref": V3.prefix + model}}
    return dict.fromkeys(sorted(media), schema)


def _parameter(parameter: Parameter) -> dict[str, Any]:
    made: dict[str, Any] = {"name": parameter.name, "in": parameter.where}
    if parameter.description:
        made["description"] = parameter.description
    if parameter.required:
        made["required"] = True
    made["schema"] = {"type": parameter.type, "uniqueItems": True}
    return made
