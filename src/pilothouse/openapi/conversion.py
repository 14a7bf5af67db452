"""Documents of version 2 as version 3, for servers that have no better: what is needed to explain and validate.

As in kube-aggregator, much is lost: defaults of bodies, forms, and whatever version 2 cannot say.
"""

from __future__ import annotations

from typing import Any, Final

Tree = dict[str, Any]
_METHODS: Final = ("get", "put", "post", "delete", "options", "head", "patch")
_OPERATION_KEYS: Final = ("tags", "summary", "description", "externalDocs", "operationId", "deprecated")
_PARAMETER_KEYS: Final = ("$ref", "name", "in", "description", "required", "allowEmptyValue")
_SIMPLE_KEYS: Final = ("type", "format", "uniqueItems")
_SINGLE_SCHEMAS: Final = ("items", "additionalProperties", "additionalItems")
_MOVED: Final = (
    ("#/definitions/", "#/components/schemas/"),
    ("#/parameters/", "#/components/parameters/"),
    ("#/responses/", "#/components/responses/"),
)


def convert(swagger: Tree) -> Tree:
    """A whole document. Raises LookupError, TypeError and AttributeError for what is none."""
    document: Tree = {"openapi": "3.0.0"}
    document |= {key: swagger[key] for key in ("info", "externalDocs") if key in swagger}
    document["paths"] = {path: _path_item(item) for path, item in (swagger.get("paths") or {}).items()}
    components: Tree = {}
    if "definitions" in swagger:
        components["schemas"] = {name: _schema(each) for name, each in swagger["definitions"].items()}
    if "responses" in swagger:
        produces = swagger.get("produces") or ()
        components["responses"] = {name: _response(each, produces) for name, each in swagger["responses"].items()}
    if "securityDefinitions" in swagger:
        components["securitySchemes"] = {name: _security(each) for name, each in swagger["securityDefinitions"].items()}
    return {**document, "components": components}


def _path_item(item: Tree) -> Tree:
    made: Tree = _extensions(item) | {method: _operation(item[method]) for method in _METHODS if method in item}
    if item.get("parameters"):
        made["parameters"] = [_parameter(each) for each in item["parameters"]]
    return made


def _operation(operation: Tree) -> Tree:
    made = _extensions(operation) | {key: operation[key] for key in _OPERATION_KEYS if key in operation}
    parameters = operation.get("parameters") or ()
    bodies = [each for each in parameters if each.get("name") == "body" and "schema" in each]
    others = [_parameter(each) for each in parameters if each not in bodies]
    if bodies:
        made["requestBody"] = {"content": _content(operation.get("consumes") or (), bodies[-1]["schema"])}
    if others:
        made["parameters"] = others
    produces = operation.get("produces") or ()
    made["responses"] = {code: _response(each, produces) for code, each in (operation.get("responses") or {}).items()}
    return made


def _response(response: Tree, produces: Any) -> Tree:
    made = _extensions(response) | {key: response[key] for key in ("description",) if key in response}
    if "$ref" in response:
        made["$ref"] = _moved(response["$ref"])
    if "schema" in response:
        made["content"] = _content(produces, response["schema"])
    return made


def _content(media: Any, schema: Tree) -> Tree:
    return {each: {"schema": _schema(schema)} for each in media}


def _parameter(parameter: Tree) -> Tree:
    made = _extensions(parameter) | {key: parameter[key] for key in _PARAMETER_KEYS if key in parameter}
    if "$ref" in made:
        return {"$ref": _moved(made["$ref"])}
    simple = {key: parameter[key] for key in _SIMPLE_KEYS if key in parameter}
    made["schema"] = _schema(parameter["schema"]) if "schema" in parameter else simple
    return made


def _schema(schema: Tree) -> Tree:
    made = dict(schema)
    if "properties" in schema:
        made["properties"] = {name: _schema(each) for name, each in schema["properties"].items()}
    for key in _SINGLE_SCHEMAS:
        if isinstance(schema.get(key), dict):
            made[key] = _schema(schema[key])
    if "$ref" not in schema:
        return made
    reference = {"$ref": _moved(made.pop("$ref"))}
    return {**made, "allOf": [reference]} if made else reference  # what stands beside a reference is not read


def _security(scheme: Tree) -> Tree:
    made: Tree = {key: scheme[key] for key in ("type", "description", "name", "in") if key in scheme}
    if scheme.get("flow"):
        keys = ("authorizationUrl", "tokenUrl", "scopes")
        made["flows"] = {scheme["flow"]: {key: scheme[key] for key in keys if key in scheme}}
    return _extensions(scheme) | made


def _extensions(tree: Tree) -> Tree:
    return {key: value for key, value in tree.items() if key.startswith("x-")}


def _moved(reference: str) -> str:
    for old, new in _MOVED:
        if reference.startswith(old):
            return new + reference[len(old) :]
    return reference
