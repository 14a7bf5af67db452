"""What a kubelet does when it is asked to execute something."""

from __future__ import annotations

import asyncio
import os
from asyncio.subprocess import DEVNULL, PIPE
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Final

_PIECE: Final = 64 * 1024
Read = Callable[[], Awaitable[bytes]]
Write = Callable[[bytes], Awaitable[None]]


async def _nothing() -> bytes:
    return b""


async def _nowhere(_: bytes) -> None:
    return None


@dataclass(frozen=True, slots=True)
class Process:
    """A command and its streams. ``stdin`` gives nothing at the end."""

    command: list[str]
    stdin: Read = _nothing
    stdout: Write = _nowhere
    stderr: Write = _nowhere
    resize: Read = _nothing
    tty: bool = False
    folder: str = ""
    container: tuple[str, str, str] = ("", "", "")
    """Namespace, pod and container that it is to run in."""
    environment: dict[str, str] = field(default_factory=dict)


Command = Callable[[Process], Awaitable[int]]
"""Runs a process and gives its exit code."""


async def run_locally(process: Process) -> int:
    """As a process of this machine."""
    try:
        running = await asyncio.create_subprocess_exec(
            *process.command,
            stdin=DEVNULL if process.stdin is _nothing else PIPE,
            stdout=PIPE,
            stderr=PIPE,
            cwd=process.folder or None,
            env={**os.environ, **process.environment},
        )
    except OSError as error:
        await process.stderr(f"{error}\n".encode())
        return 126
    feeding = asyncio.ensure_future(_feed(process.stdin, running))
    try:
        await asyncio.gather(_drain(running.stdout, process.stdout), _drain(running.stderr, process.stderr))
        return await running.wait()
    finally:
        feeding.cancel()
        with suppress(asyncio.CancelledError):
            await feeding
        if running.returncode is None:
            running.kill()
            await running.wait()


async def _feed(read: Read, running: asyncio.subprocess.Process) -> None:
    if running.stdin is None:
        return
    with suppress(ConnectionError):
        while piece := await read():
            running.stdin.write(piece)
            await running.stdin.drain()
    running.stdin.close()


async def _drain(source: asyncio.StreamReader | None, write: Write) -> None:
    while source is not None and (piece := await source.read(_PIECE)):
        await write(piece)
