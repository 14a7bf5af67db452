"""Many clients who each do little: what all of them together make the server keep is bounded too."""

from __future__ import annotations

import random
import socket
import threading
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from typing import Any

from tests.robustness.attacks.conftest import MEGABYTE, Victim

MAPS = "/api/v1/namespaces/default/configmaps"
AT_ONCE = 16
PATIENCE = 60


@contextmanager
def crowd_of(victim: Victim, count: int, said: bytes, *, anonymous: bool, answered: bool = False) -> Iterator[None]:
    """So many clients have said this, as far as they were let; then each stays, or is gone."""
    with ExitStack() as stack:

        def join(first: int) -> None:
            for _ in range(first, count, AT_ONCE):
                with suppress(OSError):
                    plain = socket.create_connection(("127.0.0.1", victim.port), timeout=PATIENCE)
                    client = victim.contexts[anonymous].wrap_socket(plain, server_hostname="127.0.0.1")
                    stack.enter_context(closing(client))
                    client.sendall(said)
                    if answered:
                        assert client.recv(12) == b"HTTP/1.1 200"

        at_work = [threading.Thread(target=join, args=(number,)) for number in range(AT_ONCE)]
        for thread in at_work:
            thread.start()
        for thread in at_work:
            thread.join()
        yield


def head(method: str, path: str, *lines: str) -> bytes:
    return "\r\n".join((f"{method} {path} HTTP/1.1", "Host: x", *lines, "", "")).encode()


def config_map(name: str, size: int) -> dict[str, Any]:
    text = "".join(random.Random(name).choices("abcdefghijklmnop", k=size))
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"x": text}}


def test_bodies_that_do_not_end(fresh: Victim) -> None:
    """Somebody else's body of a megabyte is taken meanwhile, though it came last."""
    length = 3_000_000
    said = head("POST", MAPS, "Content-Type: application/json", f"Content-Length: {length}") + b" " * (length - 1)
    with (
        fresh.attacked("150 bodies of 3 MB without an end", allowance=224 * MEGABYTE),
        crowd_of(fresh, 150, said, anonymous=False),
    ):
        assert fresh.call("POST", MAPS, config_map("honest", 900_000)).status == 201


def test_heads_that_do_not_end(fresh: Victim) -> None:
    said = head("GET", "/api")[:-2] + b"X-Long: " + b"a" * 1_000_000
    with (
        fresh.attacked("400 heads of 1 MB without an end, by anybody", allowance=256 * MEGABYTE),
        crowd_of(fresh, 400, said, anonymous=True),
    ):
        assert fresh.call("GET", MAPS).status == 200


def test_what_was_said_is_forgotten(fresh: Victim) -> None:
    said = head("GET", "/version", "X-Long: " + "a" * 250_000)
    with (
        fresh.attacked("500 connections that stay after a head of 250 KB", allowance=160 * MEGABYTE),
        crowd_of(fresh, 500, said, anonymous=True, answered=True),
    ):
        assert fresh.call("GET", MAPS).status == 200


def test_watches_that_nobody_reads(fresh: Victim) -> None:
    """All of them wait for the same few objects of a megabyte, which change meanwhile."""
    for number in range(4):
        assert fresh.call("POST", MAPS, config_map(f"large-{number}", 900_000)).status == 201
    patch = "application/merge-patch+json"
    with (
        fresh.attacked("150 watches of objects of 900 KB, unread", allowance=128 * MEGABYTE),
        crowd_of(fresh, 150, head("GET", f"{MAPS}?watch=1"), anonymous=False, answered=True),
    ):
        for number in range(12):
            body = {"metadata": {"labels": {"now": str(number)}}}
            assert fresh.call("PATCH", f"{MAPS}/large-{number % 4}", body, patch).status == 200


def test_compressed_lists_that_nobody_reads(fresh: Victim) -> None:
    """Of each, no more is made than is being sent."""
    for number in range(8):
        assert fresh.call("POST", MAPS, config_map(f"large-{number}", 900_000)).status == 201
    said = head("GET", MAPS, "Accept-Encoding: gzip")
    with (
        fresh.attacked("60 compressed lists of 7 MB, unread", allowance=96 * MEGABYTE),
        crowd_of(fresh, 60, said, anonymous=False, answered=True),
    ):
        assert fresh.call("GET", f"{MAPS}/large-1").status == 200


def test_bodies_that_trickle_take_nobodys_seat(fresh: Victim) -> None:
    """Users without a role share the seats of their priority level; none is held while a body is on its way."""
    review = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
    spec = {"nonResourceAttributes": {"path": "/", "verb": "get"}}
    body = {"apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview", "spec": spec}
    lines = ["Content-Type: application/json", "Content-Length: 300000", "Impersonate-User: "]
    with fresh.attacked("700 bodies that trickle, by users without a role"), ExitStack() as stack:
        for number in range(7):
            said = head("POST", review, *lines[:-1], f"{lines[-1]}slow-{number}") + b"{"
            stack.enter_context(crowd_of(fresh, 100, said, anonymous=False))
        assert fresh.call("POST", review, body, user="honest").status == 201
