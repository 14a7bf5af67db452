"""Expressions that kube-apiserver counts as next to nothing, and texts of objects that they make much of.

An administrator has written the policy without harm in mind; whoever writes config maps decides what it costs.
"""

from __future__ import annotations

from typing import Any

import pytest
from tests.robustness.attacks.conftest import MEGABYTE
from tests.robustness.attacks.test_admission import MAPS, enforced, policy

RULE = {"operations": ["CREATE"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"]}
NUMBERS = ",".join(map(str, range(1_500)))

LETTERS = "a" * 300_000

EXPRESSIONS = {
    "an empty pattern that is found everywhere": (
        "object.data.s.findAll(object.data.t).size() > 0",
        {"s": LETTERS * 3, "t": ""},
    ),
    "a text shown 300 times": (
        "'%s'.format([lists.range(300).map(i, object.data.s)]) != ''",
        {"s": LETTERS},
    ),
    "a template with 200 places": (
        "object.data.t.format(lists.range(200).map(i, object.data.s)) != ''",
        {"s": LETTERS, "t": "%s" * 200},
    ),
    "a long list, 300 times, made flat": (
        "[object.data.s.split('')].map(l, lists.range(300).map(i, l)).all(x, x.flatten() != [])",
        {"s": LETTERS},
    ),
    "1,500 patterns that grow": (
        "object.data.s.split(',').all(x, 'abc'.matches(object.data.t + x + '|c'))",
        {"s": NUMBERS, "t": "([a-z]{1,30}){1,30}"},
    ),
    "20,000 classes of Unicode": (
        "'abc'.matches(object.data.t)",
        {"t": r"\pL" * 20_000},
    ),
}


@pytest.mark.parametrize("what", EXPRESSIONS)
def test_texts_that_expressions_make_much_of(victim: Any, what: str) -> None:
    text, data = EXPRESSIONS[what]
    validations = ["object.metadata.name != 'probe'", f"object.metadata.name != 'attack' || ({text})"]
    made = policy("texts", conditions=[], validations=validations, rule=RULE)

    def create(name: str, data: dict[str, str]) -> Any:
        body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data}
        return victim.call("POST", f"{MAPS}?dryRun=All", body)

    def refused() -> bool:
        return bool(create("probe", {}).status == 422)

    with enforced(victim, made, refused), victim.attacked(what, allowance=32 * MEGABYTE):
        assert create("attack", data).status in (201, 422)
