"""Discovery of several servers as one."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pilothouse.aggregator.peers.merging import merge_groups, merge_order

Document = dict[str, Any]


@pytest.mark.parametrize(
    ("lists", "expected"),
    [
        ([], []),
        ([["a", "b", "c"], ["b", "c"]], ["a", "b", "c"]),
        ([["a", "c"], ["b", "c"]], ["a", "b", "c"]),
        ([["z", "a"], ["z", "m"]], ["z", "a", "m"]),
        ([["b", "a"], ["a", "b"]], ["b", "a"]),
        ([["a", "b", "x"], ["b", "a", "y"]], ["a", "b", "x", "y"]),
    ],
)
def test_orders_are_kept_where_they_agree(lists: list[list[str]], expected: list[str]) -> None:
    assert merge_order(lists) == expected


@given(
    st.lists(st.integers(0, 30), unique=True).flatmap(
        lambda order: st.tuples(st.just(order), st.lists(st.sets(st.sampled_from(order or [0]))))
    )
)
def test_lists_in_one_order_are_merged_into_it(case: tuple[list[int], list[set[int]]]) -> None:
    order, picks = case
    lists = [[f"n{each:02}" for each in order if each in pick] for pick in picks]
    merged = merge_order(lists)
    assert sorted(merged) == sorted({name for names in lists for name in names})
    for names in lists:
        assert [name for name in merged if name in set(names)] == names


def group(name: str, **versions: list[Document]) -> Document:
    listed = [{"version": each, "resources": found, "freshness": "Current"} for each, found in versions.items()]
    return {"metadata": {"name": name}, "versions": listed}


def resource(name: str, *verbs: str, **subresources: list[str]) -> Document:
    found: Document = {"resource": name, "verbs": list(verbs)}
    if subresources:
        found["subresources"] = [{"subresource": each, "verbs": can} for each, can in subresources.items()]
    return found


def test_groups_versions_and_resources_are_united() -> None:
    mine = [group("apps", v1=[resource("a", "get")]), group("batch", v1=[resource("jobs", "get")])]
    other = [group("apps", v2=[resource("b", "get")], v1=[resource("c", "list")]), group("autoscaling", v1=[])]
    assert merge_groups({"m": mine, "o": other}) == [
        group("apps", v2=[resource("b", "get")], v1=[resource("a", "get"), resource("c", "list")]),
        group("autoscaling", v1=[]),
        group("batch", v1=[resource("jobs", "get")]),
    ]


def test_what_is_told_differently_can_do_what_either_says() -> None:
    first = [group("g", v1=[{**resource("a", "get", "list", status=["get"]), "singularResource": "one"}])]
    second = [group("g", v1=[{**resource("a", "create", scale=["get"]), "singularResource": "two"}])]
    united = {**resource("a", "create", "get", "list", scale=["get"], status=["get"]), "singularResource": "one"}
    assert merge_groups({"1": first, "2": second}) == [group("g", v1=[united])]


def test_every_server_makes_the_same_of_it() -> None:
    mine, other = [group("b", v1=[]), group("a", v1=[])], [group("c", v1=[]), group("a", v2=[])]
    assert merge_groups({"m": mine, "o": other}) == merge_groups({"o": other, "m": mine})
