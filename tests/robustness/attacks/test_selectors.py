"""Selectors with thousands of requirements, by those who may list and by those who may not."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from urllib.parse import quote

import pytest

MAPS = "/api/v1/namespaces/selected/configmaps"
OBJECTS = 1_000


@pytest.fixture(scope="module", autouse=True)
def objects(crowd: Callable[[str, int], None]) -> None:
    crowd("selected", OBJECTS)


def unequal(count: int, key: str = "app") -> str:
    return quote(",".join(f"{key}!=v{number}" for number in range(count)))


def distinct(count: int) -> str:
    return quote(",".join(f"k{number}!=v" for number in range(count)))


@pytest.mark.parametrize(
    ("make", "count"), [(unequal, 2_000), (unequal, 10_000), (distinct, 10_000), (unequal, 50_000)]
)
def test_list_with_many_requirements(victim: Any, make: Callable[[int], str], count: int) -> None:
    selector = make(count)
    with victim.attacked(f"list, selector of {len(selector)} bytes"):
        answer = victim.call("GET", f"{MAPS}?labelSelector={selector}&limit=5")
    assert (answer.status, len(answer.json["items"])) == (200, 5)


def test_required_keys_that_nobody_has(victim: Any) -> None:
    selector = quote(",".join(f"k{number}" for number in range(20_000)))
    with victim.attacked("list, 20,000 required keys"):
        answer = victim.call("GET", f"{MAPS}?labelSelector={selector}")
    assert (answer.status, answer.json["items"]) == (200, [])


def test_one_set_of_many_values(victim: Any) -> None:
    values = ",".join(f"v{number}" for number in range(50_000))
    with victim.attacked("list, In with 50,000 values"):
        answer = victim.call("GET", f"{MAPS}?labelSelector={quote(f'app in ({values},a1)')}&limit=3")
    assert (answer.status, len(answer.json["items"])) == (200, 3)


def test_list_with_many_fields(victim: Any) -> None:
    selector = quote(",".join(f"metadata.name!=v{number}" for number in range(20_000)))
    with victim.attacked("list, 20,000 field requirements"):
        answer = victim.call("GET", f"{MAPS}?fieldSelector={selector}&limit=5")
    assert (answer.status, len(answer.json["items"])) == (200, 5)


def test_watch_with_many_requirements(victim: Any) -> None:
    selector = distinct(40_000)
    with victim.attacked("watch, 40,000 requirements"):
        victim.call("GET", f"{MAPS}?watch=1&timeoutSeconds=1&labelSelector={selector}")


def absent(count: int) -> str:
    return quote("a,!" * count)


def zeroes(count: int) -> str:
    return "%00" * count


@pytest.mark.parametrize(
    ("make", "count"), [(distinct, 50_000), (unequal, 50_000), (absent, 150_000), (zeroes, 300_000)]
)
def test_anonymous_selector(victim: Any, make: Callable[[int], str], count: int) -> None:
    selector = make(count)
    with victim.attacked("anonymous selector"):
        for _ in range(3):
            answer = victim.call("GET", f"{MAPS}?labelSelector={selector}", anonymous=True)
            assert answer.status == 403


def test_selector_in_a_collection_delete(victim: Any) -> None:
    selector = quote(",".join(f"k{number}=v" for number in range(20_000)))
    with victim.attacked("collection delete, 20,000 requirements"):
        answer = victim.call("DELETE", f"{MAPS}?labelSelector={selector}")
    assert answer.status == 200
