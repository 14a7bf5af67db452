"""Conversations about definitions that change below objects of theirs, and about the documents that describe them."""

from __future__ import annotations

import random
from typing import Any

from differential_admission import APPLY, MERGE, dump
from differential_answers import JSON, Request
from differential_schemas import Schema, a_definition, a_rule, a_value, copied, some_schema

_DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
_TABLE = "application/json;as=Table;g=meta.k8s.io;v=v1"
_FORMS = (
    JSON, JSON, "application/yaml", "*/*", "text/plain", "application/vnd.kubernetes.protobuf", "", "application/*",
    "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList", _TABLE, "application/json;v=v1",
    "application/json;g=apidiscovery.k8s.io;v=v9;as=APIGroupDiscoveryList,application/json", "APPLICATION/JSON",
    "application/json;q=0.1,application/yaml",
)  # fmt: skip


def _fields(choice: random.Random, names: str) -> Schema:
    made: Schema = {"type": "object", "properties": {name: some_schema(choice, 2) for name in names}}
    if choice.random() < 0.3:
        made["required"] = choice.sample(sorted(names), 1)
    if choice.random() < 0.3:
        made["x-kubernetes-validations"] = [a_rule(choice, made)]
    return made


def _marked(schema: Schema, mark: str) -> Schema:
    """The same with a field that tells by its one value which of several schemas is in effect."""
    made = copied(schema)
    made["properties"]["mark"] = {"type": "string", "enum": [mark]}
    return made


def _set_schema(definition: dict[str, Any], schema: Schema) -> None:
    """Give the spec of the first version another schema."""
    whole = definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    whole["properties"]["spec"] = schema


def ratchets(choice: random.Random, names: Any) -> list[Request]:
    """Objects whose schema becomes another one, which they may not fit any more, and changes of them."""
    group = f"{names.name}.example"
    where = f"/apis/{group}/v1/namespaces/{names.namespace}/randoms"
    path, definition = f"{where}/r", f"{_DEFINITIONS}/randoms.{group}"
    keys = "".join(choice.sample("abcdef", 3))
    schemas = [_fields(choice, keys) for _ in range(choice.choice((2, 2, 3)))]
    made = a_definition(choice, group, _marked(schemas[0], "m0"), _marked(schemas[0], "m0"))
    made["spec"]["versions"] = made["spec"]["versions"][:1]
    probe = dump({"apiVersion": f"{group}/v1", "kind": "Random", "metadata": {"name": "x"}, "spec": {"mark": "none"}})
    said = [
        Request("POST", _DEFINITIONS, dump(made), unordered=True),
        Request("GET", definition, awaits='"status":"True","type":"Established"'),
        Request("GET", where, awaits='"items"'),
        *(_change(choice, path, where, group, schemas[0]) for _ in range(4)),
    ]
    for number, schema in enumerate(schemas[1:], 1):
        changed = copied(made)
        changed["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"] = _marked(
            schema, f"m{number}"
        )
        patch = dump({"spec": {"versions": changed["spec"]["versions"]}})
        said += [
            Request("PATCH", definition, patch, MERGE, unordered=True),
            Request("POST", f"{where}?dryRun=All", probe, unordered=True, awaits=f'\\"m{number}\\"'),
            Request("GET", path, accept=choice.choice((JSON, _TABLE))),
            *(_change(choice, path, where, group, choice.choice((schema, schema, schemas[0]))) for _ in range(4)),
        ]
    return [*said, Request("DELETE", path), Request("DELETE", definition)]


def _change(choice: random.Random, path: str, where: str, group: str, schema: Schema) -> Request:
    spec = a_value(choice, schema)
    body = {"apiVersion": f"{group}/v1", "kind": "Random", "metadata": {"name": "r"}, "spec": spec}
    few = {key: spec[key] for key in choice.sample(sorted(spec), min(1, len(spec)))} if isinstance(spec, dict) else spec
    label = {"metadata": {"labels": {"l": choice.choice("abc")}}}
    validation = choice.choice(("", "", "?fieldValidation=Strict", "?dryRun=All"))
    gone = {"spec": {choice.choice("abcdef"): None}}
    forced = f"{path}?fieldManager={choice.choice('mn')}{choice.choice(('', '&force=true'))}"
    return choice.choice(
        (
            Request("POST", where + validation, dump(body), unordered=True),
            Request("PUT", path + validation, dump(body), unordered=True),
            Request("PATCH", path, dump(label), MERGE, unordered=True),
            Request("PATCH", path + validation, dump({"spec": few}), MERGE, unordered=True),
            Request("PATCH", path, dump(gone), MERGE, unordered=True),
            Request("PATCH", f"{path}/status", dump({"status": {"a": 1}}), MERGE, unordered=True),
            Request("PATCH", forced, dump({**body, "spec": few}), APPLY, unordered=True),
            Request("PATCH", forced, dump({**body, **label, "spec": {}}), APPLY, unordered=True),
        )
    )


def documents(choice: random.Random, names: Any) -> list[Request]:
    """What OpenAPI and discovery tell of a definition, in all forms, while it changes."""
    group = f"{names.name}.example"
    definition = f"{_DEFINITIONS}/randoms.{group}"
    schemas = [_fields(choice, "abc"), _fields(choice, "cde")]
    made = a_definition(choice, group, _marked(schemas[0], "m0"), schemas[1])
    made["spec"]["scope"] = choice.choice(("Namespaced", "Namespaced", "Cluster"))
    made["spec"]["names"] |= choice.choice(({}, {"categories": ["all"]}, {"singular": "one"}, {"listKind": "Many"}))
    version = made["spec"]["versions"][0]
    version |= choice.choice(({}, {}, {"deprecated": True}, {"deprecated": True, "deprecationWarning": "no <more>"}))
    if choice.random() < 0.4:
        paths = {"specReplicasPath": ".spec.n", "statusReplicasPath": ".status.n", "labelSelectorPath": ".status.l"}
        version["subresources"] = {"scale": paths, **choice.choice(({}, {"status": {}}))}
    fields = schemas[0]["properties"]
    plain = [name for name in sorted(fields) if fields[name].get("type") in ("string", "integer", "boolean")]
    if plain and choice.random() < 0.5:
        version["selectableFields"] = [{"jsonPath": f".spec.{choice.choice(plain)}"}]
    changed = copied(made)
    _set_schema(changed, _marked(schemas[1], "m1"))
    document = f"/openapi/v3/apis/{group}/v1"
    return [
        Request("POST", _DEFINITIONS, dump(made), unordered=True),
        Request("GET", definition, awaits='"status":"True","type":"Established"'),
        Request("GET", document, awaits='"m0"'),
        Request("GET", f"/openapi/v3/apis/{group}/v2", awaits='"paths"'),
        Request("GET", f"/apis/{group}", awaits='"v2"'),
        *(Request(choice.choice(("GET", "GET", "HEAD", "POST")), at, accept=choice.choice(_FORMS))
          for at in (f"/apis/{group}", f"/apis/{group}/v1", f"/apis/{group}/v2", document, f"/apis/{group}/v9")),
        Request("PATCH", definition, dump({"spec": {"versions": changed["spec"]["versions"]}}), MERGE, unordered=True),
        Request("GET", document, awaits='"m1"'),
        Request("DELETE", definition),
    ]  # fmt: skip
