import pytest
from hypothesis import given
from hypothesis import strategies as st

from pilothouse.authz.rbac.rules import break_down, compact, rules_covered


def r(verbs, groups=(), resources=(), names=(), urls=()):
    given = {"apiGroups": groups, "resources": resources, "resourceNames": names, "nonResourceURLs": urls}
    return {"verbs": verbs.split(), **{key: list(value) for key, value in given.items() if value}}


@pytest.mark.parametrize(
    ("owned", "wanted", "missing"),
    [
        ([], [r("get", [""], ["pods"])], [r("get", [""], ["pods"])]),
        ([r("*", ["*"], ["*"])], [r("get list", ["", "apps"], ["pods", "pods/log"], ["a"])], []),
        ([r("get", [""], ["pods"], ["a"])], [r("get", [""], ["pods"])], [r("get", [""], ["pods"])]),
        ([r("get", [""], ["pods"], ["a", "b"])], [r("get", [""], ["pods"], ["b"])], []),
        ([r("get", [""], ["pods"])], [r("get", [""], ["pods"], ["b"])], []),
        ([r("get", [""], ["*/scale"])], [r("get", [""], ["x/scale", "x"])], [r("get", [""], ["x"])]),
        ([r("get", urls=["/a/*"])], [r("get", urls=["/a/b", "/a/*", "/a"])], [r("get", urls=["/a"])]),
        ([r("get", [""], ["pods"])], [r("get", urls=["/a"])], [r("get", urls=["/a"])]),
        ([r("get", urls=["*"])], [r("get", [""], ["pods"])], [r("get", [""], ["pods"])]),
        ([r("get", [""], ["pods"]), r("list", [""], ["pods"])], [r("get list", [""], ["pods"])], []),
    ],
)
def test_covered(owned, wanted, missing):
    assert rules_covered(owned, wanted) == missing


values = st.lists(st.sampled_from(["a", "b", "*"]), max_size=2)
rules = st.one_of(
    st.fixed_dictionaries({"verbs": values, "apiGroups": values, "resources": values, "resourceNames": values}),
    st.fixed_dictionaries({"verbs": values, "nonResourceURLs": values}),
)


@given(st.lists(rules, max_size=3))
def test_rules_cover_themselves_and_what_they_break_down_to(held):
    assert rules_covered(held, held) == []
    parts = [part for rule in held for part in break_down(rule)]
    assert rules_covered(parts, held) == []
    assert rules_covered(compact(parts), held) == []


def test_compact_joins_verbs():
    assert compact(break_down(r("get list", [""], ["pods"])) + break_down(r("get", urls=["/x"]))) == [
        r("get", urls=["/x"]),
        r("get list", [""], ["pods"]),
    ]
