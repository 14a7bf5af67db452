"""Starting and stopping a process."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from pilothouse.options import ServerOptions, complete, parse, provision, validate
from pilothouse.process.process import Process
from pilothouse.testing.ports import free_port


@pytest.fixture
def taken() -> Iterator[socket.socket]:
    """A port that somebody else listens on."""
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        sock.listen()
        yield sock


def options_for(folder: Path, port: int, *flags: str) -> ServerOptions:
    options = complete(parse([f"--data-dir={folder}", "--bind-address=127.0.0.1", f"--secure-port={port}", *flags]))
    assert validate(options) == []
    provision(options)
    return options


async def test_a_start_that_fails_closes_what_it_had_opened(tmp_path: Path, taken: socket.socket) -> None:
    before = asyncio.all_tasks()
    process = Process(options_for(tmp_path, taken.getsockname()[1]))
    with pytest.raises(OSError, match="in use"):
        await process.start()
    assert not process.storage.backend.is_open
    assert asyncio.all_tasks() == before
    assert not process.lifecycle.started.is_set()


async def test_everything_is_closed_although_a_part_fails_to(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    before = asyncio.all_tasks()
    process = Process(options_for(tmp_path, free_port()))
    end = process.cluster.deciders.admission.close

    async def fail() -> None:
        await end()
        raise ValueError("stuck")

    monkeypatch.setattr(process.cluster.deciders.admission, "close", fail)
    await process.start()
    await process.stop()
    assert "cluster: closing admission failed" in caplog.text
    assert not process.storage.backend.is_open
    assert process.lifecycle.closed.is_set()
    assert asyncio.all_tasks() == before


async def test_a_process_that_never_started_can_be_closed(tmp_path: Path) -> None:
    process = Process(options_for(tmp_path, free_port()))
    await process.close()
    assert not process.storage.backend.is_open
