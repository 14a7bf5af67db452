"""Conversations about definitions whose schemas, rules and columns are random, and about objects of them."""

from __future__ import annotations

import json
import random
from typing import Any

from differential_admission import APPLY, MERGE, dump, mutating, validating
from differential_answers import JSON, Request
from differential_expressions import expression

_DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
_TABLE = "application/json;as=Table;g=meta.k8s.io;v=v1"
_JSON_PATCH = "application/json-patch+json"
Schema = dict[str, Any]
_FORMATS = ("date-time", "date", "duration", "byte", "ipv4", "ipv6", "cidr", "uuid", "email", "hostname", "uri", "mac",
            "password", "k8s-short-name", "bsonobjectid", "isbn", "creditcard", "hexcolor")  # fmt: skip
_TEXTS = ("", "a", "ab", "abc", "b", "2020-01-01T00:00:00Z", "2020-01-01", "1h", "YQ==", "1.2.3.4", "::1", "10.0.0.0/8",
          "123e4567-e89b-12d3-a456-426614174000", "a@b.example", "h.example", "http://h", "00:00:5e:00:53:01", "é",
          "1Gi",
          "#ffffff", "978-3-16-148410-0", "x" * 30, "A b", "1")  # fmt: skip
_ODD: tuple[Any, ...] = (None, True, 0, 1.5, "", "a", [], {}, [1], {"a": "b"}, ["a", "a"], 2**53, -1, [None], [{}])


def _text(choice: random.Random) -> Schema:
    made: Schema = {"type": "string"}
    for name, values in (
        ("minLength", (0, 1, 2)), ("maxLength", (3, 10, 40)), ("pattern", ("^a*$", "^[a-z]+$", "b", "(")),
        ("enum", (["a", "b"], ["a"], ["a", 1])), ("format", _FORMATS), ("nullable", (True,)),
    ):  # fmt: skip
        if choice.random() < 0.16:
            made[name] = choice.choice(values)
    return made


def _number(choice: random.Random) -> Schema:
    made: Schema = {"type": choice.choice(("integer", "integer", "number"))}
    for name, values in (
        ("minimum", (0, 1, -5)), ("maximum", (1, 10, 1.5)), ("exclusiveMinimum", (True,)), ("multipleOf", (2, 0.5, 3)),
        ("exclusiveMaximum", (True,)), ("nullable", (True,)),
        ("enum", ([1, 2], [1.5, 2])),
    ):  # fmt: skip
        if choice.random() < 0.13:
            made[name] = choice.choice(values)
    if choice.random() < 0.15:
        made["format"] = choice.choice(("int32", "int64") if made["type"] == "integer" else ("float", "double"))
    return made


def _list(choice: random.Random, depth: int) -> Schema:
    way = choice.randrange(4)
    if way == 0:
        keyed = {"k": {"type": "string", **choice.choice(({}, {"default": "d"}))}, "v": some_schema(choice, depth - 1)}
        keys = choice.choice((["k"], ["k"], ["k"], ["v"], ["k", "v"]))
        items = {"type": "object", "properties": keyed, **choice.choice(({"required": ["k"]}, {}))}
        return {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": keys, "items": items}
    made: Schema = {"type": "array", "items": some_schema(choice, depth - 1)}
    if way == 1:
        made |= {"x-kubernetes-list-type": "set", "items": choice.choice((_text, _number))(choice)}
    if way == 2:
        made["x-kubernetes-list-type"] = "atomic"
    for name, values in (("minItems", (0, 1)), ("maxItems", (2, 5)), ("nullable", (True,)), ("uniqueItems", (True,))):
        if choice.random() < (0.15 if name != "uniqueItems" else 0.02):
            made[name] = choice.choice(values)
    return made


def _object(choice: random.Random, depth: int) -> Schema:
    if choice.random() < 0.25:
        return {"type": "object", "additionalProperties": some_schema(choice, depth - 1),
                **choice.choice(({}, {"minProperties": 1}, {"maxProperties": 1}))}  # fmt: skip
    properties = {name: some_schema(choice, depth - 1) for name in choice.sample("pqrs", choice.randrange(1, 4))}
    made: Schema = {"type": "object", "properties": properties}
    if choice.random() < 0.25:
        made["required"] = choice.sample(sorted(properties), 1)
    if choice.random() < 0.12:
        made["x-kubernetes-preserve-unknown-fields"] = True
    if choice.random() < 0.12:
        made["x-kubernetes-map-type"] = choice.choice(("atomic", "granular"))
    if choice.random() < 0.06:
        name = choice.choice(sorted(properties))
        made[choice.choice(("anyOf", "oneOf", "allOf"))] = [
            {"required": [name]}, {"properties": {name: choice.choice(({"minimum": 1}, {"pattern": "a"}))}}
        ]  # fmt: skip
    return made


def some_schema(choice: random.Random, depth: int) -> Schema:
    """Any schema of so many levels."""
    way = choice.randrange(10 if depth > 0 else 6)
    if way < 3:
        made = _text(choice)
    elif way < 5:
        made = _number(choice)
    elif way == 5:
        made = choice.choice(({"type": "boolean"}, {"x-kubernetes-int-or-string": True}, {
            "x-kubernetes-preserve-unknown-fields": True}, {"type": "object", "x-kubernetes-embedded-resource": True,
            "x-kubernetes-preserve-unknown-fields": True}))  # fmt: skip
        made = dict(made)
    else:
        made = (_list if way < 8 else _object)(choice, depth)
    if choice.random() < 0.12:
        made["default"] = a_value(choice, made)
    return made


def a_value(choice: random.Random, schema: Schema) -> Any:
    """A value that the schema mostly takes."""
    if choice.random() < 0.05:
        return choice.choice(_ODD)
    if choice.random() < 0.03 and "default" in schema:
        return None
    if "enum" in schema and choice.random() < 0.8:
        return choice.choice(schema["enum"])
    match schema.get("type"):
        case "string":
            return choice.choice(_TEXTS)
        case "integer":
            return choice.choice((0, 1, 2, 4, 10, -6))
        case "number":
            return choice.choice((0, 1, 1.5, 2.25, -0.5))
        case "boolean":
            return choice.random() < 0.5
        case "array":
            return [a_value(choice, schema["items"]) for _ in range(choice.choice((0, 1, 1, 2, 3)))]
        case "object" if "additionalProperties" in schema:
            of = schema["additionalProperties"]
            return {choice.choice("abc"): a_value(choice, of) for _ in range(choice.randrange(3))}
        case "object" if "x-kubernetes-embedded-resource" in schema:
            return choice.choice(({"apiVersion": "v1", "kind": "X", "metadata": {"name": "a", "labels": {"a": "b"}}},
                                  {"kind": "X"}, {"apiVersion": "v1", "kind": "X", "metadata": {"name": "A b"}},
                                  {"apiVersion": "v1", "kind": "X", "metadata": {"odd": 1}}))  # fmt: skip
        case "object":
            made = {name: a_value(choice, of) for name, of in schema["properties"].items() if choice.random() < 0.75}
            return made | ({"unknown": 1} if choice.random() < 0.05 else {})
    return choice.choice((1, "1", "50%", {"a": {"b": 1}}, [1]))


def _variables(schema: Schema, at: str = "self") -> dict[str, str]:
    """What rules may speak of."""
    found = {}
    for name, of in schema.get("properties", {}).items():
        path = f"{at}.{name}"
        kind = {"string": "string", "integer": "int", "number": "double", "boolean": "bool"}.get(of.get("type", ""))
        if kind is not None and "format" not in of:
            found[path] = kind
        elif of.get("type") == "array" and of["items"].get("type") == "string" and "format" not in of["items"]:
            found[path] = "list"
        elif of.get("type") == "object" and of.get("additionalProperties", {}).get("type") == "integer":
            found[path] = "map"
        elif of.get("type") == "object" and "properties" in of:
            found |= _variables(of, path)
        else:
            found[path] = "any"
    return found


def a_rule(choice: random.Random, schema: Schema) -> Schema:
    """A rule about fields of the schema."""
    variables = _variables(schema)
    made = {"rule": expression(choice, "bool", variables)}
    if choice.random() < 0.5 and variables:
        made["rule"] = f"!has({choice.choice(sorted(variables))}) || {made['rule']}"
    if choice.random() < 0.4:
        made["messageExpression"] = expression(choice, "string", variables)
    if choice.random() < 0.2:
        made["message"] = "no"
    return made


def a_definition(choice: random.Random, group: str, spec: Schema, other: Schema) -> Schema:
    """A definition of two versions."""

    def version(name: str, of: Schema) -> Schema:
        properties = {"spec": of, "status": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
        made: Schema = {"name": name, "served": True, "storage": name == "v1",
                        "schema": {"openAPIV3Schema": {"type": "object", "properties": properties}}}  # fmt: skip
        if choice.random() < 0.6:
            made["subresources"] = {"status": {}}
        paths = [path.replace("self", ".spec") for path in sorted(_variables(of))]
        if paths and choice.random() < 0.6:
            made["additionalPrinterColumns"] = [
                {"name": f"C{number}", "type": choice.choice(("string", "integer", "date", "boolean", "number")),
                 "jsonPath": path + choice.choice(("", "", "", "[0]", ".x")), **choice.choice(({}, {"priority": 1},
                 {"format": "int32"}, {"description": "d"}))}
                for number, path in enumerate(choice.sample(paths, min(len(paths), 3)))
            ]  # fmt: skip
        return made

    versions = [version("v1", spec), version("v2", other)]
    names = {"plural": "randoms", "kind": "Random", "shortNames": choice.choice(([], ["rd"]))}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"randoms.{group}"},
        "spec": {"group": group, "scope": "Namespaced", "names": names, "versions": versions},
    }


def schemas(choice: random.Random, names: Any) -> list[Request]:
    """A definition of two versions with random schemas, objects that mostly fit, and the definition changed."""
    return _defined(choice, names, rules=0.25)


def expressions(choice: random.Random, names: Any) -> list[Request]:
    """The same with rules that say something about the fields."""
    return _defined(choice, names, rules=1.0)


def _defined(choice: random.Random, names: Any, *, rules: float) -> list[Request]:
    group = f"{names.name}.example"

    def spec_of() -> Schema:
        properties = {name: some_schema(choice, 2) for name in choice.sample("abcdef", choice.randrange(2, 6))}
        made: Schema = {"type": "object", "properties": properties}
        if choice.random() < rules:
            made["x-kubernetes-validations"] = [a_rule(choice, made) for _ in range(choice.choice((1, 1, 2, 3)))]
        return made

    first = spec_of()
    second = choice.choice((spec_of(), copied(first)))
    definition = a_definition(choice, group, first, second)
    path = f"{_DEFINITIONS}/randoms.{group}"
    said = [
        Request("POST", _DEFINITIONS, dump(definition), unordered=True),
        Request("GET", path, awaits='"status":"True","type":"Established"', accept=JSON),
        Request("GET", f"/apis/{group}/v1/namespaces/{names.namespace}/randoms", awaits='"items"'),
        Request("GET", f"/apis/{group}/v2/namespaces/{names.namespace}/randoms", awaits='"items"'),
    ]
    said += (_said(choice, group, names, {"v1": first, "v2": second}) for _ in range(choice.randrange(6, 16)))
    end = f"/apis/{group}/v1/namespaces/{names.namespace}/randoms"
    return [*said, *(Request("DELETE", f"{end}/r{number}") for number in range(2)), Request("DELETE", path)]


def _said(choice: random.Random, group: str, names: Any, schemas_of: dict[str, Schema]) -> Request:
    at = choice.choice(("v1", "v1", "v2"))
    where = f"/apis/{group}/{at}/namespaces/{names.namespace}/randoms"
    name = f"r{choice.randrange(2)}"
    path, head = f"{where}/{name}", {"apiVersion": f"{group}/{at}", "kind": "Random", "metadata": {"name": name}}
    spec = a_value(choice, schemas_of[at])
    body = {**head, "spec": spec, **choice.choice(({}, {}, {"status": {"a": 1}}))}
    validation = choice.choice(("", "?fieldValidation=Strict", "?fieldValidation=Ignore", "?dryRun=All"))
    below = choice.choice(("", "", "", "", "/status"))
    few = spec
    if isinstance(spec, dict) and spec:
        few = {key: spec[key] for key in choice.sample(sorted(spec), 1)}
    operation = {"op": choice.choice(("add", "replace", "remove", "test")), "path": "/spec/" + choice.choice("abcdef"),
                 "value": a_value(choice, {"type": choice.choice(("string", "integer"))})}  # fmt: skip
    force = choice.choice(("", "&force=true"))
    return choice.choice(
        (
            Request("POST", where + validation, dump(body), unordered=True),
            Request("POST", where + validation, dump(body), unordered=True),
            Request("POST", where, dump(body), unordered=True),
            Request("PUT", path + below + validation, dump(body), unordered=True),
            Request("PUT", path, dump(body), unordered=True),
            Request("PATCH", path + below + validation, dump({"spec": few}), MERGE, unordered=True),
            Request("PATCH", path, dump([operation]), _JSON_PATCH, unordered=True),
            Request("PATCH", f"{path}?fieldManager={choice.choice('mn')}{force}", dump({**body, "spec": few}), APPLY,
                    unordered=True),
            Request("GET", path, accept=choice.choice((JSON, _TABLE))),
            Request("GET", where, accept=_TABLE),
            Request("DELETE", path),
        )
    )  # fmt: skip


def copied(schema: Schema) -> Schema:
    """The same, which may be changed."""
    made: Schema = json.loads(json.dumps(schema))
    return made


_OBJECT = {
    "object.metadata.name": "string", "object.data['a']": "string", "object.data.ab": "string", "object": "any",
    "variables.first": "string", "request.operation": "string", "request.namespace": "string", "request.name": "string",
    "params.data.most": "string", "namespaceObject.metadata.name": "string", "request.userInfo.username": "string",
    "object.metadata.labels": "any", "oldObject": "any", "request.userInfo.groups": "list", "variables.count": "int",
    "size(object.data)": "int", "object.data.size()": "int", "has(object.data)": "bool", "oldObject == null": "bool",
    "request.dryRun": "bool", "object.data.map(k, k)": "list",
}  # fmt: skip


def judgements(choice: random.Random, names: Any) -> list[Request]:
    """Validating policies of random expressions, and what they let pass."""
    return validating(
        choice, names, lambda: expression(choice, "bool", _OBJECT), lambda: expression(choice, "string", _OBJECT)
    )


def rewritings(choice: random.Random, names: Any) -> list[Request]:
    """Mutating policies of random expressions, and what becomes of objects."""

    def configuration() -> str:
        shape = choice.choice(
            ("Object{{data: {{'n': {0}}}}}", "Object{{metadata: Object.metadata{{labels: {{'l': {0}}}}}}}",
             "Object{{metadata: Object.metadata{{annotations: {{{0}: 'v'}}}}}}", "({1}) ? Object{{}} : Object{{data: "
             "{{'c': {0}}}}}")
        )  # fmt: skip
        return shape.format(expression(choice, "string", _OBJECT), expression(choice, "bool", _OBJECT))

    def patch() -> str:
        path = choice.choice(("'/data/a'", "'/data/z'", "'/metadata/labels'", "'/data/' + {0}", "'/data'"))
        value = choice.choice(("{0}", "{{'a': {0}}}", "{1}"))
        operation = choice.choice(("add", "replace", "test", "remove"))
        shape = f"[JSONPatch{{{{op: '{operation}', path: {path}, value: {value}}}}}]"
        return shape.format(expression(choice, "string", _OBJECT), expression(choice, "any", _OBJECT))

    return mutating(choice, names, configuration, patch)
