"""Custom resources whose schema multiplies what is sent: enumerations, defaults, rules; and schemas that are large."""

from __future__ import annotations

from typing import Any

import pytest

GROUP = "attacks.example"


def definition(plural: str, spec: dict[str, Any], **more: Any) -> dict[str, Any]:
    schema = {"type": "object", "properties": {"spec": spec}}
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}, **more}
    kind = plural.capitalize()
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{GROUP}"},
        "spec": {
            "group": GROUP,
            "scope": "Namespaced",
            "names": {"plural": plural, "kind": kind},
            "versions": [version],
        },
    }


def path(plural: str) -> str:
    return f"/apis/{GROUP}/v1/namespaces/default/{plural}"


def custom(plural: str, spec: Any, name: str = "attack") -> dict[str, Any]:
    kind = plural.capitalize()
    return {"apiVersion": f"{GROUP}/v1", "kind": kind, "metadata": {"name": name}, "spec": spec}


def listed(items: dict[str, Any]) -> dict[str, Any]:
    return {"type": "object", "properties": {"items": {"type": "array", "items": items}}}


@pytest.mark.parametrize("size", [500, 50_000])
def test_wrong_values_of_an_enumeration(victim: Any, size: int) -> None:
    plural = f"enums{size}"
    victim.establish(definition(plural, listed({"type": "string", "enum": [f"value{n}" for n in range(size)]})))
    with victim.attacked(f"enumeration of {size}, 117 KB of wrong values"):
        answer = victim.call("POST", path(plural), custom(plural, {"items": ["x"] * 29_000}))
    assert answer.status == 422
    with victim.attacked(f"enumeration of {size}, right values"):
        answer = victim.call("POST", path(plural), custom(plural, {"items": [f"value{size - 1}"] * 29_000}))
    assert answer.status == 201


def test_defaults_that_multiply(victim: Any) -> None:
    fields = {f"f{n}": {"type": "integer", "default": 0} for n in range(150)}
    victim.establish(definition("defaults", listed({"type": "object", "properties": fields})))
    with victim.attacked("78 KB that default to 4 million values"):
        answer = victim.call("POST", path("defaults"), custom("defaults", {"items": [{}] * 26_000}))
    assert (answer.status, answer.json["message"]) == (500, "etcdserver: request is too large")


def test_rules_within_their_budget(victim: Any) -> None:
    rule = {"rule": "self.all(a, self.all(b, a + b >= 0))"}
    numbers = {"type": "array", "maxItems": 300, "items": {"type": "integer"}, "x-kubernetes-validations": [rule]}
    spec = {"type": "object", "properties": {"items": {"type": "array", "maxItems": 8, "items": numbers}}}
    victim.establish(definition("rules", spec))
    assert victim.call("POST", path("rules"), custom("rules", {"items": [[1]]}, "first")).status == 201
    with victim.attacked("rules within their budget"):
        answer = victim.call("POST", path("rules"), custom("rules", {"items": [list(range(300))] * 8}))
    assert answer.status == 201


def test_the_first_object_of_a_long_rule(victim: Any) -> None:
    """Rules are compiled when somebody asks for what they judge."""
    rule = f"{{{','.join(f'{number}:1' for number in range(8_000))}}} != {{}}"
    with victim.attacked("the first object of a rule of 55 KB"):
        victim.establish(definition("maprules", {"type": "object", "x-kubernetes-validations": [{"rule": rule}]}))
        assert victim.call("POST", path("maprules"), custom("maprules", {})).status == 201


def test_large_schema(victim: Any) -> None:
    one = {"type": "object", "properties": {"a": {"type": "string", "pattern": "^a*$"}}}
    fields = {f"field{n}": one for n in range(7_000)}
    with victim.attacked("a definition of 600 KB", allowance=250 << 20):
        victim.establish(definition("larges", {"type": "object", "properties": fields}))
    with victim.attacked("a first object of a definition of 600 KB", allowance=250 << 20):
        assert victim.call("POST", path("larges"), custom("larges", {"field1": {"a": "aa"}})).status == 201
        assert victim.call("GET", path("larges")).status == 200
    victim.call("DELETE", f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/larges.{GROUP}")


def test_definition_that_is_too_large(victim: Any) -> None:
    fields = {f"field{n}": {"type": "string", "enum": ["a", "b"]} for n in range(55_000)}
    with victim.attacked("a definition of 2.9 MB", allowance=250 << 20):
        answer = victim.call(
            "POST",
            "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
            definition("toolarges", {"type": "object", "properties": fields}),
        )
    assert answer.status in (413, 422, 500)


def test_apply_in_conflict_over_many_fields(victim: Any) -> None:
    spec = {"type": "object", "additionalProperties": {"type": "string"}}
    victim.establish(definition("applies", spec))
    where = f"{path('applies')}/attack?fieldManager="
    kind = "application/apply-patch+yaml"
    wanted = custom("applies", {f"f{n}": "a" for n in range(30_000)})
    assert victim.call("PATCH", f"{where}one", wanted, kind).status == 201
    with victim.attacked("an apply in conflict over 30,000 fields", allowance=200 << 20):
        answer = victim.call("PATCH", f"{where}two", custom("applies", {f"f{n}": "b" for n in range(30_000)}), kind)
    assert answer.status == 409


def test_a_map_of_many_items(victim: Any) -> None:
    items = {"type": "object", "required": ["k"], "properties": {"k": {"type": "string"}}}
    lists = {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"], "items": items}
    victim.establish(definition("keyeds", {"type": "object", "properties": {"items": lists}}))
    with victim.attacked("a map of 50,000 items"):
        answer = victim.call(
            "POST", path("keyeds"), custom("keyeds", {"items": [{"k": f"k{n}"} for n in range(50_000)]})
        )
    assert answer.status == 201


def columns(count: int) -> dict[str, Any]:
    return {
        "additionalPrinterColumns": [
            {"name": f"c{n}", "type": "string", "jsonPath": f".spec.f{n}"} for n in range(count)
        ]
    }


def versions(count: int) -> dict[str, Any]:
    made = definition("versioneds", {"type": "object"})
    first = made["spec"]["versions"][0]
    made["spec"]["versions"] = [{**first, "name": f"v{n + 1}", "storage": n == 0} for n in range(count)]
    return made


def rules(count: int, message: str) -> dict[str, Any]:
    found = [{"rule": f"self.a != 'x{n}'", "message": message} for n in range(count)]
    return {"type": "object", "properties": {"a": {"type": "string"}}, "x-kubernetes-validations": found}


def nested(depth: int) -> dict[str, Any]:
    schema: dict[str, Any] = {"type": "object"}
    for _ in range(depth):
        schema = {"type": "object", "properties": {"a": schema}}
    return schema


def pattern(text: str) -> dict[str, Any]:
    return {"type": "object", "properties": {"a": {"type": "string", "pattern": text}}}


@pytest.mark.parametrize(
    ("what", "made"),
    [
        ("10,000 columns", definition("columneds", {"type": "object"}, **columns(10_000))),
        ("1,500 versions", versions(1_500)),
        ("2,000 rules", definition("ruleds", rules(2_000, "m"))),
        ("rules with messages of 1 MB", definition("toldrules", rules(2, "m" * 1_000_000))),
        ("a pattern of nested repetitions", definition("patterns1", pattern("((a{1,100}){1,100}){1,100}"))),
        ("a pattern of 500,000 alternatives", definition("patterns2", pattern("a|" * 500_000 + "b"))),
        ("a pattern of nested groups", definition("patterns3", pattern("(" * 100_000 + ")" * 100_000))),
        (
            "an expression of nested parentheses",
            definition(
                "deeprules",
                {"type": "object", "x-kubernetes-validations": [{"rule": "(" * 50_000 + "true" + ")" * 50_000}]},
            ),
        ),
        (
            "a long chain of operators",
            definition(
                "longrules", {"type": "object", "x-kubernetes-validations": [{"rule": "true" + " && true" * 100_000}]}
            ),
        ),
        (
            "10,000 short names",
            {
                **(named := definition("nameds", {"type": "object"})),
                "spec": {
                    **named["spec"],
                    "names": {**named["spec"]["names"], "shortNames": [f"s{n}" for n in range(10_000)]},
                },
            },
        ),
        ("schemas nested 120 deep", definition("deeps", nested(120))),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_definitions(victim: Any, what: str, made: dict[str, Any]) -> None:
    where = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
    name = made["metadata"]["name"]
    longest_wait = 0.5 if "versions" in what else 0.07  # an APIService is written for each of them meanwhile
    with victim.attacked(f"a definition with {what}", allowance=200 << 20, longest_wait=longest_wait):
        assert victim.call("POST", where, made).status in (201, 400, 413, 422, 500)
        plural = name.partition(".")[0]
        table = "application/json;as=Table;g=meta.k8s.io;v=v1"
        victim.call("POST", path(plural), custom(plural, {"a": "a" * 50_000}))
        victim.call("GET", path(plural), accept=table)
    assert victim.call("DELETE", f"{where}/{name}").status in (200, 404)


LONG_SCHEMAS: dict[str, dict[str, Any]] = {
    "alternatives": {"type": "object", "oneOf": [{}] * 100_000},
    "required": {"type": "object", "required": [f"f{number}" for number in range(60_000)]},
    "listed": {"type": "object", "properties": {"a": {"type": "string", "enum": [f"v{n}" for n in range(60_000)]}}},
}


@pytest.mark.parametrize("plural", LONG_SCHEMAS)
def test_short_objects_of_long_schemas(victim: Any, plural: str) -> None:
    """To say why a few bytes do not fit takes as long as the schema is."""
    victim.establish(definition(plural, LONG_SCHEMAS[plural]))
    assert victim.call("POST", path(plural), custom(plural, {"a": "x"}, "first")).status == 422
    with victim.attacked(f"short objects of a long schema: {plural}"):
        for _ in range(3):
            assert victim.call("POST", path(plural), custom(plural, {"a": "x"})).status == 422
