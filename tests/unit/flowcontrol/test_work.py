from __future__ import annotations

from collections.abc import Callable

import pytest

from pilothouse.endpoints.request import APIRequest
from pilothouse.flowcontrol.watch_counts import WatchCounts
from pilothouse.flowcontrol.work import Size, Work, WorkEstimator

Ask = Callable[..., APIRequest]
GATES = frozenset({"SizeBasedListCostEstimate", "WatchList"})
SIZES = {"pods": Size(2000, 1500), "nodes": Size(10, 5000), "secrets": Size(300, 0)}


def estimator(gates: frozenset[str] = GATES, watches: WatchCounts | None = None) -> WorkEstimator:
    return WorkEstimator(lambda group, resource: SIZES.get(resource), watches or WatchCounts(), gates)


@pytest.mark.parametrize(
    ("target", "seats", "by_count"),
    [
        ("/api/v1/pods", 10, 10),  # 3 MB, of which the cache streams
        ("/api/v1/pods?limit=100", 2, 10),
        ("/api/v1/pods?limit=100&continue=x", 2, 2),
        ("/api/v1/pods?limit=500&continue=x&labelSelector=a", 15, 10),
        ("/api/v1/pods?resourceVersion=5&resourceVersionMatch=Exact", 30, 10),
        ("/api/v1/pods?fieldSelector=metadata.name%3Dx", 1, 1),
        ("/api/v1/pods?limit=x", 100, 10),
        ("/api/v1/nodes", 1, 1),
        ("/api/v1/secrets", 10, 3),
        ("/api/v1/services", 1, 1),
        ("/api/v1/pods?watch=1", 10, 10),
        ("/api/v1/pods?watch=1&resourceVersion=5", 1, 1),
        ("/api/v1/pods?watch=1&resourceVersion=5&sendInitialEvents=true", 10, 10),
        ("/api/v1/namespaces/a/pods/p", 1, 1),
    ],
)
def test_reads(ask: Ask, target: str, seats: int, by_count: int) -> None:
    assert estimator().estimate(ask("GET", target), 0).seats == seats
    assert estimator(frozenset({"WatchList"})).estimate(ask("GET", target), 0).seats == by_count
    assert estimator().estimate(ask("GET", target), 3).seats == min(seats, 3)


def test_writes_by_the_watches_they_wake(ask: Ask) -> None:
    watches = WatchCounts()
    ends = [watches.add(ask("GET", "/api/v1/namespaces/a/configmaps?watch=1")) for _ in range(25)]
    ends += [watches.add(ask("GET", "/api/v1/configmaps?watch=1")) for _ in range(10)]
    works = estimator(watches=watches)
    create = ask("POST", "/api/v1/namespaces/a/configmaps")
    work, woken = works.estimate_write(create, 0)
    assert (woken, work.initial_seats, work.final_seats, work.final_seconds) == (35, 1, 4, 0.005)
    narrow, _ = works.estimate_write(create, 2)
    assert (narrow.final_seats, narrow.final_seconds) == (2, 0.01)
    assert narrow.units == work.units
    assert works.estimate_write(ask("POST", "/api/v1/namespaces/b/configmaps"), 0)[1] == 10
    for end in ends:
        end()
        end()
    assert works.estimate_write(create, 0) == (works.estimate(ask("GET", "/version"), 0), 0)


def test_watches_of_one_node_are_not_counted(ask: Ask) -> None:
    watches = WatchCounts()
    watches.add(ask("GET", "/api/v1/pods?watch=1&fieldSelector=spec.nodeName%3Dn1"))
    assert watches.woken_by(ask("POST", "/api/v1/namespaces/a/pods").info) == 0
    watches.add(ask("GET", "/api/v1/pods?watch=1&fieldSelector=spec.nodeName%3D"))
    assert watches.woken_by(ask("POST", "/api/v1/namespaces/a/pods").info) == 1


def test_a_narrower_final_part_is_the_same_work() -> None:
    work = Work(1, 10, 0.005)
    assert work.narrowed(5).final_units == work.final_units
    assert work.narrowed(20) is work
