"""Commands of pods as processes of this machine, for those who allow it.

A process has the environment that its container states, nothing else of the server's but the search path, and writes to
the container's log. It is told to stop by SIGTERM, and killed with all its children when its time is over, when its pod
is gone, and when the server stops.
"""

from __future__ import annotations

import asyncio
import os
import signal
from asyncio.subprocess import DEVNULL, PIPE, STDOUT, Process
from collections.abc import Callable
from contextlib import suppress
from typing import Final

from pilothouse.controllers.runtime.clock import Clock
from pilothouse.machinery.objects import Object
from pilothouse.machinery.supervision import Supervisor
from pilothouse.simulation.kubelet_api.logs import Log

_PIECE: Final = 64 * 1024
_CANNOT_RUN: Final = 127
_SIGNALLED: Final = 128
Report = Callable[[int], None]
"""Told the exit code."""


class LocalProcesses:
    """The processes of the pods of a node, by uid of the pod and name of the container."""

    def __init__(self, supervisor: Supervisor, clock: Clock) -> None:
        self._supervisor, self._clock = supervisor, clock
        self._running: dict[tuple[str, str], Process] = {}

    def start(self, pod: Object, container: Object, log: Log | None, report: Report) -> None:
        """Run the command of a container; how it ends is reported."""
        key = (pod["metadata"]["uid"], container["name"])
        self._supervisor.spawn(f"process of container {container['name']}", self._run(key, pod, container, log, report))

    async def _run(self, key: tuple[str, str], pod: Object, container: Object, log: Log | None, report: Report) -> None:
        try:
            process = await asyncio.create_subprocess_exec(
                *(container.get("command") or ()),
                *(container.get("args") or ()),
                stdin=DEVNULL,
                stdout=PIPE,
                stderr=STDOUT,
                cwd=container.get("workingDir") or None,
                env=environment(pod, container),
                start_new_session=True,
            )
        except OSError as error:
            if log is not None:
                log.write(f"{error}\n".encode())
            report(_CANNOT_RUN)
            return
        self._running[key] = process
        try:
            assert process.stdout is not None
            while piece := await process.stdout.read(_PIECE):
                if log is not None:
                    log.write(piece)
            code = await process.wait()
        finally:
            self._running.pop(key, None)
            _signal(process, signal.SIGKILL)
        report(code if code >= 0 else _SIGNALLED - code)

    def stop(self, uid: str, container: str, grace_seconds: float) -> None:
        """Ask the process to end, and end it when the time is over."""
        process = self._running.get((uid, container))
        if process is not None:
            _signal(process, signal.SIGTERM)
            self._clock.delay(grace_seconds, lambda: _signal(process, signal.SIGKILL))

    def forget(self, uid: str) -> None:
        """The pod is gone."""
        for key in [key for key in self._running if key[0] == uid]:
            _signal(self._running[key], signal.SIGKILL)


def environment(pod: Object, container: Object) -> dict[str, str]:
    """What the container states, with references to what stands before it, and what every container has."""
    metadata = pod["metadata"]
    found = {"PATH": os.environ.get("PATH", os.defpath), "HOSTNAME": metadata["name"]}
    fields = {"metadata.name": metadata["name"], "metadata.namespace": metadata["namespace"]}
    for each in container.get("env") or ():
        reference = (each.get("valueFrom") or {}).get("fieldRef") or {}
        value = each.get("value") or fields.get(reference.get("fieldPath", ""), "")
        for name, known in found.items():
            value = value.replace(f"$({name})", known)
        found[each["name"]] = value
    return found


def _signal(process: Process, number: signal.Signals) -> None:
    """Tell the process and its children; those of one that has ended are ended too."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, number)
