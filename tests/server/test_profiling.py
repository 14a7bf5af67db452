"""Looking inside a running server: profiles, memory, threads, verbosity."""

from __future__ import annotations

import gzip
import logging
from collections.abc import Iterator

import pytest

from pilothouse.machinery.verbosity import set_verbosity
from pilothouse.testing.in_process import InProcessServer


@pytest.fixture(scope="module")
def server() -> Iterator[InProcessServer]:
    with InProcessServer() as server:
        yield server
    set_verbosity(0)


def test_profiles(server: InProcessServer) -> None:
    profile = server.call("GET", "/debug/pprof/profile?seconds=1")
    assert profile.headers["content-type"] == "application/octet-stream"
    assert b"nanoseconds" in gzip.decompress(profile.body)
    assert b"builtins.dict" in server.call("GET", "/debug/pprof/heap").body
    assert b"thread " in server.call("GET", "/debug/pprof/goroutine?debug=2").body
    assert server.call("GET", "/debug/pprof/").body.startswith(b"profile ")
    assert server.call("GET", "/debug/pprof/nothing").status == 404


def test_verbosity(server: InProcessServer) -> None:
    answer = server.call("PUT", "/debug/flags/v", b"4")
    assert (answer.status, answer.body) == (200, b"successfully set klog.logging.verbosity to 4")
    assert logging.getLogger("pilothouse").level == logging.DEBUG
    assert server.call("PUT", "/debug/flags/v", b"0").status == 200
    assert logging.getLogger("pilothouse").level == logging.INFO
    wrong = server.call("PUT", "/debug/flags/v", b"much")
    assert (wrong.status, wrong.body) == (400, b'strconv.ParseUint: parsing "much": invalid syntax')
    assert server.call("GET", "/debug/flags/v").status == 406
    assert b"<tr>v<br>" in server.call("GET", "/debug/flags").body


def test_switched_off() -> None:
    with InProcessServer("--profiling=false") as server:
        assert server.call("GET", "/debug/pprof/heap").status == 404
