from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest

from pilothouse.simulation.scheduler.long_choices import LongChoices
from pilothouse.simulation.scheduler.pod_info import PodInfo
from pilothouse.simulation.scheduler.snapshot import Snapshot

KIND = "requiredDuringSchedulingIgnoredDuringExecution"


def pod(terms: int) -> PodInfo:
    term = {"topologyKey": "zone", "labelSelector": {"matchLabels": {"a": "b"}}}
    spec: dict[str, Any] = {"containers": [{"name": "c"}], "affinity": {"podAntiAffinity": {KIND: [term] * terms}}}
    return PodInfo.read({"metadata": {"name": f"p{terms}", "namespace": "n", "uid": f"u{terms}"}, "spec": spec})


async def test_usual_choices_are_made_here_and_now() -> None:
    choices = LongChoices(Snapshot())
    assert await choices.make(pod(1), threading.get_ident) == threading.get_ident()


async def test_changes_wait_for_a_long_choice_and_keep_their_order() -> None:
    choices, told, may_end = LongChoices(Snapshot()), list[str](), threading.Event()

    def choose() -> str:
        may_end.wait(60)
        told.append("chosen")
        return threading.current_thread().name

    making = asyncio.ensure_future(choices.make(pod(20_000), choose))
    await asyncio.sleep(0)
    choices.take(lambda: told.append("first"))
    choices.take(lambda: choices.take(lambda: told.append("third")))
    choices.take(lambda: told.append("second"))
    assert not told
    may_end.set()
    assert await making != threading.current_thread().name
    assert told == ["chosen", "first", "second", "third"]
    choices.take(lambda: told.append("at once"))
    assert told[-1] == "at once"


async def test_a_choice_that_fails_and_a_change_that_does_hold_up_nothing(caplog: pytest.LogCaptureFixture) -> None:
    choices, told, may_end = LongChoices(Snapshot()), list[str](), threading.Event()

    def fail() -> None:
        may_end.wait(60)
        raise LookupError

    making = asyncio.ensure_future(choices.make(pod(20_000), fail))
    await asyncio.sleep(0)
    choices.take(lambda: told.remove("what is not there"))
    choices.take(lambda: told.append("told"))
    may_end.set()
    with pytest.raises(LookupError):
        await making
    assert told == ["told"]
    assert "lost to the scheduler" in caplog.text


async def test_pods_of_many_terms_make_the_choices_of_others_long() -> None:
    snapshot = Snapshot()
    choices = LongChoices(snapshot)
    snapshot.add_pod(pod(20_000), "node")
    assert await choices.make(pod(1), threading.get_ident) != threading.get_ident()
    snapshot.remove_pod("u20000")
    assert (snapshot.terms, snapshot.pod_count) == (0, 0)
    assert await choices.make(pod(1), threading.get_ident) == threading.get_ident()
