"""Killed at each step of its start and its stop that the log tells of: the next start is as good as the first."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pilothouse.testing.ports import free_port

PATIENCE_SECONDS = 120.0
MAPS = "/api/v1/namespaces/default/configmaps"
STARTING = (
    "starting: opening the store",
    "starting: reading what decides about requests",
    "starting: listening, not ready yet",
    "starting: all post-start hooks are done",
)
STOPPING = (
    "stopping: not ready any more",
    "stopping: ending watches",
    "stopping: all requests are answered",
)
Launch = Callable[..., Any]


def begin(data: Path, number: int) -> tuple[subprocess.Popen[bytes], Path]:
    """Start the real command without waiting for anything."""
    log = data.with_name(f"phase-{number}.log")
    command = [sys.executable, "-m", "pilothouse", "serve", "--controllers=-*", "--bind-address=127.0.0.1"]
    with log.open("wb") as output:
        flags = [f"--data-dir={data}", f"--secure-port={free_port()}"]
        return subprocess.Popen([*command, *flags], stdout=output, stderr=subprocess.STDOUT), log


def wait_for(process: subprocess.Popen[bytes], log: Path, line: str) -> None:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while line not in log.read_text(errors="replace"):
        assert time.monotonic() < deadline, f"{line!r} was not reached:\n{log.read_text()[-3000:]}"
        assert process.poll() is None, log.read_text()[-3000:]
        time.sleep(0.002)


def strike(data: Path, number: int, line: str, blow: signal.Signals) -> int:
    """Begin a server, and stop it if need be; strike when the line is there. The exit code."""
    process, log = begin(data, number)
    try:
        if line in STOPPING:
            wait_for(process, log, STARTING[-1])
            process.send_signal(signal.SIGTERM)
        wait_for(process, log, line)
        process.send_signal(blow)
        return process.wait(PATIENCE_SECONDS)
    finally:
        process.kill()
        process.wait()


def check(launch: Launch, data: Path) -> None:
    """Start, look whether all that a fresh cluster has is there, write and read."""
    server = launch(data)
    for path in ("/api/v1/namespaces/default", "/api/v1/namespaces/default/services/kubernetes"):
        assert server.call("GET", path)[0] == 200, "it is ready, and so this must be there"
    assert server.call("POST", MAPS, {"metadata": {"generateName": "after-"}})[0] == 201
    assert "Traceback" not in server.log.read_text()


@pytest.mark.parametrize(
    "lines",
    [
        pytest.param((STARTING[2],), id="one"),
        pytest.param((*STARTING, *STOPPING), id="all", marks=pytest.mark.soak),
    ],
)
def test_the_next_start_is_good_wherever_it_was_killed(launch: Launch, tmp_path: Path, lines: tuple[str, ...]) -> None:
    data = tmp_path / "data"
    for number, line in enumerate(lines):
        assert strike(data, number, line, signal.SIGKILL) == -signal.SIGKILL
    check(launch, data)


@pytest.mark.soak
@pytest.mark.parametrize("line", STARTING)
def test_told_to_stop_while_it_starts_it_stops_properly(launch: Launch, tmp_path: Path, line: str) -> None:
    data = tmp_path / "data"
    assert strike(data, 0, line, signal.SIGTERM) == 0
    check(launch, data)
