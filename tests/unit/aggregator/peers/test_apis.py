"""What only peers serve."""

from typing import Any

from pilothouse.aggregator.peers.apis import PeerApis, PeerEntry
from pilothouse.aggregator.peers.metrics import PeerMetrics
from pilothouse.machinery.gvk import GroupVersion, GroupVersionResource

JOBS, PODS = GroupVersionResource("batch", "v1", "jobs"), GroupVersionResource("", "v1", "pods")
SAILS = GroupVersionResource("example.com", "v1", "sails")


def group(name: str, *versions: str) -> dict[str, Any]:
    return {"metadata": {"name": name}, "versions": [{"version": each, "resources": []} for each in versions]}


class Told:
    """Peers of the server ``me``, which serves pods; counts what listeners hear."""

    def __init__(self) -> None:
        self.apis = PeerApis("me", {PODS}, PeerMetrics())
        self.times = 0
        self.apis.tell(self._count)

    def _count(self) -> None:
        self.times += 1


def test_what_is_served_here_stays_here() -> None:
    told = Told()
    told.apis.set_peer("b", PeerEntry(frozenset({PODS, JOBS})))
    told.apis.set_peer("a", PeerEntry(frozenset({JOBS})))
    assert told.apis.found == {JOBS: ("a", "b")}
    told.apis.set_peer("b", None)
    assert told.apis.found == {JOBS: ("a",)}
    told.apis.set_peer("a", PeerEntry())
    assert told.apis.found == {}
    assert told.times == 4


def test_nobody_is_told_twice() -> None:
    told = Told()
    entry = PeerEntry(frozenset({JOBS}), (group("batch", "v1"),))
    told.apis.set_peer("a", entry)
    told.apis.set_peer("a", PeerEntry(frozenset({JOBS}), (group("batch", "v1"),)))
    told.apis.set_peer("unknown", None)
    told.apis.exclude(set())
    assert told.times == 1


def test_what_is_excluded_is_neither_asked_for_nor_listed() -> None:
    told = Told()
    groups = (group("batch", "v1"), group("example.com", "v1", "v2"), group("other.com", "v1"))
    told.apis.set_peer("a", PeerEntry(frozenset({JOBS, SAILS}), groups))
    told.apis.exclude({GroupVersion("example.com", "v1"), GroupVersion("other.com", "v1")})
    assert told.apis.found == {JOBS: ("a",)}
    assert told.apis.merge([]) == [group("batch", "v1"), group("example.com", "v2")]
    told.apis.exclude(set())
    assert SAILS in told.apis.found


def test_without_peers_discovery_is_as_it_is() -> None:
    assert Told().apis.merge([group("apps", "v1")]) == [group("apps", "v1")]


def test_the_health_check_finds_what_is_served_here_and_sent_away() -> None:
    told = Told()
    told.apis.set_peer("a", PeerEntry(frozenset({JOBS, PODS})))
    assert told.apis.misrouted({PODS}) == ""
    assert told.apis.misrouted({PODS, JOBS}) == "served here but sent to peers: batch/v1/jobs"
