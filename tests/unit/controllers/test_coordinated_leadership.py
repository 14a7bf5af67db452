"""Who is elected, when candidates are asked, and that a server does it."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from pilothouse.controllers.coordinated_leadership import NoElection, Step, next_step, pick_leader, pick_strategy
from pilothouse.machinery.times import Instant, format_micro_time, format_time
from pilothouse.testing.in_process import InProcessServer

NOW = 1_000_000
OLDEST = "OldestEmulationVersion"
GROUP = "/apis/coordination.k8s.io"


def candidate(name: str, emulated: str = "1.36.0", binary: str = "1.37.0", **moments: int) -> dict[str, Any]:
    """``moments`` are seconds before now, by the name of the field."""
    spec = {"leaseName": "led", "emulationVersion": emulated, "binaryVersion": binary, "strategy": OLDEST}
    times = {f"{field}Time": format_micro_time(Instant(NOW - ago)) for field, ago in moments.items()}
    return {"metadata": {"name": name, "creationTimestamp": format_time(Instant(0))}, "spec": {**spec, **times}}


def lease(holder: str, renewed: int = 0) -> dict[str, Any]:
    at = format_micro_time(Instant(NOW - renewed))
    return {"spec": {"holderIdentity": holder, "renewTime": at, "leaseDurationSeconds": 5}}


def step(found: dict[str, Any] | None, *candidates: dict[str, Any]) -> Step:
    return next_step(found, candidates, Instant(NOW))


def test_the_oldest_emulated_version_leads() -> None:
    old = candidate("old", "1.35.0", renew=1)
    assert step(None, candidate("new", renew=1), old) == Step(strategy=OLDEST, elected="old")
    assert pick_leader([candidate("a", binary="1.37.1"), candidate("b", binary="1.37.0")]) == candidate("b")
    assert pick_leader([candidate("a", "what"), candidate("b", "1.36.0")]) == candidate("b", "1.36.0")
    assert pick_leader([candidate("a", "what")]) is None


def test_nothing_happens_while_the_best_one_leads() -> None:
    assert step(lease("a"), candidate("a", renew=60), candidate("b", "1.37.0", renew=60)) == Step()
    assert step(None) == Step(again=False)


def test_candidates_are_asked_first() -> None:
    silent, heard = candidate("silent", renew=60), candidate("heard", renew=1)
    assert step(lease("b"), silent, heard) == Step((silent,))
    assert step(None, candidate("asked", renew=60, ping=2), heard) == Step()
    assert step(None, candidate("mute", "1.35.0", renew=60, ping=6), heard).elected == "heard"
    assert step(None, candidate("again", renew=50, ping=60)).pinged == (candidate("again", renew=50, ping=60),)


def test_all_are_asked_now_and_then() -> None:
    quiet = candidate("b", "1.37.0", renew=1000)
    assert step(lease("a"), candidate("a", renew=1), quiet) == Step((quiet,))


@pytest.mark.parametrize("found", [None, lease(""), lease("gone", renewed=6), {"spec": {"holderIdentity": "x"}}])
def test_leases_that_nobody_has(found: dict[str, Any] | None) -> None:
    assert step(found, candidate("a", renew=0)).elected == "a"


def test_strategies() -> None:
    other = candidate("b", binary="1.38.0", renew=0)
    other["spec"]["strategy"] = "example.com/mine"
    assert pick_strategy([candidate("a"), other]) == "example.com/mine"
    assert step(None, candidate("a", renew=0), other) == Step(strategy="example.com/mine")
    other["spec"]["binaryVersion"] = "1.37.0"
    with pytest.raises(NoElection, match="differing strategies"):
        pick_strategy([candidate("a"), other])
    with pytest.raises(NoElection, match="no available candidates"):
        step(None, candidate("a", renew=60, ping=30))


async def test_a_server_elects() -> None:
    """A first candidate gets the lease; a better one is preferred, and told to the one who has it."""
    flags = ("--feature-gates=CoordinatedLeaderElection=true", "--runtime-config=coordination.k8s.io/v1beta1=true")
    times = ("--coordinated-leadership-renew-deadline=9s", "--coordinated-leadership-lease-duration=12s")
    async with InProcessServer(*flags, *times) as server:

        async def stand(name: str, emulated: str) -> None:
            made = candidate(name, emulated)
            made["metadata"] = {"name": name}
            made["spec"]["renewTime"] = format_micro_time(server.process.shared.clock.now())
            answer = await server.request("POST", f"{GROUP}/v1beta1/namespaces/default/leasecandidates", made)
            assert answer.status == 201, answer.json

        async def wait_for(path: str, **wanted: Any) -> dict[str, Any]:
            while True:
                answer = await server.request("GET", f"{GROUP}/v1/namespaces/{path}")
                spec: dict[str, Any] = answer.json.get("spec") or {}
                if answer.status == 200 and wanted.items() <= spec.items():
                    return spec
                await asyncio.sleep(0.01)

        await wait_for("kube-system/leases/leader-election-controller", leaseDurationSeconds=12)
        await stand("new", "1.37.0")
        given = await wait_for("default/leases/led", holderIdentity="new", strategy=OLDEST)
        assert given["leaseDurationSeconds"] == 5
        await stand("old", "1.36.0")
        await wait_for("default/leases/led", preferredHolder="old")
        ready = await server.request("GET", "/readyz?verbose")
        assert b"start-kube-apiserver-coordinated-leader-election-controller ok" in ready.body
