import pytest
from hypothesis import given
from hypothesis import strategies as st

from pilothouse.authz.rbac.coverage import MOST_MISSING, count_parts, rules_covered
from pilothouse.authz.rbac.rules import CompiledRules, compact


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


def break_down(rule):
    """One verb, and one resource (and at most one name) or one path each, as kube-apiserver makes them first."""
    parts = []
    for group in rule.get("apiGroups") or ():
        for resource in rule.get("resources") or ():
            for verb in rule["verbs"]:
                part = {"apiGroups": [group], "resources": [resource], "verbs": [verb]}
                parts += [{**part, "resourceNames": [name]} for name in rule.get("resourceNames") or ()]
                if not rule.get("resourceNames"):
                    parts.append(part)
    for path in rule.get("nonResourceURLs") or ():
        parts += [{"nonResourceURLs": [path], "verbs": [verb]} for verb in rule["verbs"]]
    return parts


def covers(owner, part):
    """Whether one rule covers such a part."""

    def has(field, wanted):
        return "*" in (owner.get(field) or ()) or set(owner.get(field) or ()) >= set(wanted)

    names, wanted = owner.get("resourceNames"), part.get("resourceNames", ())
    if not has("verbs", part["verbs"]) or (names and not (wanted and set(names) >= set(wanted))):
        return False
    if paths := part.get("nonResourceURLs"):
        held = owner.get("nonResourceURLs") or ()
        return any(one == paths[0] or (one[-1:] == "*" and paths[0].startswith(one.rstrip("*"))) for one in held)
    resource = part["resources"][0]
    by_subresource = "/" in resource and f"*/{resource.partition('/')[2]}" in (owner.get("resources") or ())
    return has("apiGroups", part["apiGroups"]) and (has("resources", [resource]) or by_subresource)


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


many = st.lists(st.sampled_from(["a", "b", "c", "a/s", "*/s", "*"]), max_size=4)
wild = st.fixed_dictionaries(
    {"verbs": many, "apiGroups": many, "resources": many, "resourceNames": many, "nonResourceURLs": many}
)


@given(st.lists(wild, max_size=4), st.lists(wild, max_size=2))
def test_boxes_are_covered_where_all_their_parts_are(held, wanted):
    parts = [part for rule in wanted for part in break_down(rule)]
    assert sum(map(count_parts, wanted)) == len(parts)
    assert rules_covered(held, wanted) == [part for part in parts if not any(covers(owner, part) for owner in held)]


def test_eight_thousand_million_parts():
    many = [f"x{number}" for number in range(300)]
    wanted = r(" ".join(many), many, many, many)
    assert count_parts(wanted) == 300**4
    assert len(rules_covered([r("get", ["a"], ["b"])], [wanted])) == MOST_MISSING
    assert rules_covered([r("*", ["*"], ["*"])], [wanted]) == []
    halves = [r(" ".join(many), many[:150], many, many), r(" ".join(many), many[150:], many, many)]
    assert rules_covered(halves, [wanted]) == []
    assert rules_covered([r(" ".join(many), many, many, many[1:])], [wanted], most=2) == [
        r("x0", ["x0"], ["x0"], ["x0"]),
        r("x1", ["x0"], ["x0"], ["x0"]),
    ]


@given(many, many, many, many, st.sampled_from(["a", "b", "c", "d"]), st.sampled_from(["", "s"]))
def test_rules_of_many_pairs_allow_what_others_do(verbs, groups, resources, names, asked, subresource):
    rule = r(" ".join(verbs), groups, resources, names)
    more = [f"x{number}" for number in range(80)]
    wide = {**rule, "apiGroups": groups + more, "resources": resources + more}
    question = (asked, asked, asked, subresource)
    assert CompiledRules([wide]).names_for(*question) == CompiledRules([rule]).names_for(*question)


def test_a_rule_of_a_thousand_million_pairs():
    many = [f"x{number}" for number in range(30_000)]
    assert CompiledRules([r("get", many, many)]).names_for("get", "x7", "x29999", "") == (True, frozenset())
