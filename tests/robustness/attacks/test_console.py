"""What the console keeps and does for those who look, while others send what is long; and whom it signs out."""

from __future__ import annotations

import ssl
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest
from tests.robustness.attacks.conftest import MEGABYTE, Victim
from tests.robustness.attacks.test_floods import connected, head

MAPS = "/api/v1/namespaces/default/configmaps"
MERGE = "application/merge-patch+json"


@pytest.fixture(scope="module")
def shown(launch_victim: Callable[..., Victim]) -> Iterator[Victim]:
    """A server with a console; whatever is done to it leaves no traceback."""
    victim = launch_victim("--console")
    with looking(victim, 1):
        pass
    yield victim
    assert "Traceback" not in victim.server.log.read_text(errors="replace")


def looking(victim: Victim, count: int) -> ExitStack:
    """So many look at requests, and read nothing but the first line."""
    stack = ExitStack()
    for _ in range(count):
        viewer: ssl.SSLSocket = stack.enter_context(connected(victim))
        viewer.sendall(head("/console/requests"))
        assert viewer.recv(4) == b"HTTP"
    return stack


def ask(victim: Victim, said: bytes, *, anonymous: bool = True) -> None:
    with connected(victim, victim.contexts[anonymous]) as each:
        each.sendall(said)
        assert each.recv(1) == b"H"


@pytest.mark.parametrize(
    "said",
    [head(f"{MAPS}/{'a' * 900_000}"), head("/version", f"Audit-ID: {'a' * 900_000}\r\n")],
    ids=["names", "ids"],
)
def test_long_requests_that_are_looked_at(shown: Victim, said: bytes) -> None:
    with shown.attacked("requests of 900 KB with eight looking", allowance=32 * MEGABYTE), looking(shown, 8):
        for _ in range(50):
            ask(shown, said)


def test_many_addresses(shown: Victim) -> None:
    said = head("/version", f"X-Forwarded-For: {','.join(['10.1.2.3'] * 90_000)}\r\n")
    with shown.attacked("90,000 addresses with one looking"), looking(shown, 1):
        for _ in range(3):
            ask(shown, said)


def test_the_past_of_what_is_large(shown: Victim) -> None:
    data = {f"k{number:06d}": "v" * 20 for number in range(15_000)}
    made: dict[str, Any] = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "large"}, "data": data}
    assert shown.call("POST", MAPS, made).status == 201
    for number in range(7):
        assert shown.call("PATCH", f"{MAPS}/large", {"data": {"k000000": str(number)}}, MERGE).status == 200
    with shown.attacked("the history of an object of 500 KB", allowance=48 * MEGABYTE):
        page = shown.call("GET", f"/console/history{MAPS}/large").json
    assert len(page["versions"]) < 8 and page["end"] == ""
    versions = page["versions"]
    while page["end"] == "":
        page = shown.call("GET", f"/console/history{MAPS}/large?before={versions[-1]['resourceVersion']}").json
        versions += page["versions"]
    assert len(versions) == 8 and page["end"] == "created"
