"""Short patterns that become long programs: RE2 compiles each in one call that keeps the interpreter's lock."""

from __future__ import annotations

from typing import Any

from tests.robustness.attacks.conftest import MEGABYTE
from tests.robustness.attacks.test_admission import MAPS, enforced, policy

RULE = {"operations": ["CREATE"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"]}
CLAIMS = "/apis/resource.k8s.io/v1/namespaces/default/resourceclaims"
LARGE = r"\pL{100}"
MANY = 40


def test_selectors_of_devices(fresh: Any) -> None:
    """An editor may write a thousand such expressions into one claim."""
    pattern = LARGE.replace("\\", "\\\\")
    matches = [f"'a'.matches('{pattern}x{each}')" for each in range(MANY)]
    selectors = [{"cel": {"expression": " || ".join(matches[at : at + 10])}} for at in range(0, MANY, 10)]
    requests = [{"name": "r", "exactly": {"deviceClassName": "any", "selectors": selectors}}]
    body = {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": {"name": "large"},
        "spec": {"devices": {"requests": requests}},
    }
    with fresh.attacked("selectors with 40 large patterns", allowance=32 * MEGABYTE):
        assert fresh.call("POST", CLAIMS, body).status == 201


def test_patterns_that_objects_bring(fresh: Any) -> None:
    """A policy looks for what a config map says, as often as that says."""
    text = "object.data.s.split(',').all(x, 'abc'.matches(object.data.t + x + '|c'))"
    validations = ["object.metadata.name != 'probe'", f"object.metadata.name != 'attack' || {text}"]
    made = policy("patterns", conditions=[], validations=validations, rule=RULE)

    def create(name: str, data: dict[str, str]) -> Any:
        body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data}
        return fresh.call("POST", f"{MAPS}?dryRun=All", body)

    data = {"s": ",".join(map(str, range(MANY))), "t": f"({LARGE})?"}
    with (
        enforced(fresh, made, lambda: create("probe", data).status == 422),
        fresh.attacked("40 large patterns of an object", allowance=32 * MEGABYTE),
    ):
        assert create("attack", data).status == 201


def test_a_definition_of_large_patterns(fresh: Any) -> None:
    """Each is compiled when it is checked, and when the first object comes."""
    fields = {f"f{each}": {"type": "string", "pattern": f"^{LARGE}?{each}$"} for each in range(MANY)}
    schema = {"type": "object", "properties": {"spec": {"type": "object", "properties": fields}}}
    definition = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "larges.example.com"},
        "spec": {
            "group": "example.com",
            "scope": "Namespaced",
            "names": {"plural": "larges", "singular": "large", "kind": "Large", "listKind": "LargeList"},
            "versions": [{"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}],
        },
    }
    body = {
        "apiVersion": "example.com/v1",
        "kind": "Large",
        "metadata": {"name": "a"},
        "spec": dict.fromkeys(fields, "x"),
    }
    with fresh.attacked("a definition with 40 large patterns", allowance=32 * MEGABYTE):
        fresh.establish(definition)
        answer = fresh.call("POST", "/apis/example.com/v1/namespaces/default/larges", body)
    assert answer.status == 422
    assert answer.body.count(b"should match") >= MANY
