"""Logs, exec, attach and port-forward of simulated pods.

A log tells when its container began and ended, and what a command that only prints would print. Commands run in a pod
are answered as its setting ``answers`` says, else from a short list of what can be known without a container; anything
else is repeated, and ends well. With
``run_commands`` they are processes of this machine instead. Ports say what they are told.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from typing import Final

from pilothouse.machinery.objects import Object
from pilothouse.simulation.kubelet_api.commands import Process, run_locally
from pilothouse.simulation.kubelet_api.logs import Log
from pilothouse.simulation.nodes.behaviour import Behaviour

_ECHO: Final = re.compile(r"(?:^|[;&\n])[^\S\n]*+echo\s+([^;&|\n]*)")
_PLAIN: Final = Behaviour()
_MOST_LOGS: Final = 10_000
Key = tuple[str, str, str]


class SimulatedStreams:
    """What clients read from, and run in, simulated containers; by namespace, pod and container."""

    def __init__(self, *, run_commands: bool = False) -> None:
        self._run_commands = run_commands
        self._logs: dict[Key, Log] = {}
        self._answers: dict[Key, Mapping[str, str]] = {}
        self._pods: dict[tuple[str, str], Object] = {}

    def log_of(self, namespace: str, pod: str, container: str) -> Log | None:
        """The log of a container that has run."""
        return self._logs.get((namespace, pod, container))

    def started(self, pod: Object, container: str, behaviour: Behaviour = _PLAIN) -> None:
        """A container has begun."""
        metadata = pod["metadata"]
        self._pods[(metadata["namespace"], metadata["name"])] = pod
        key = (metadata["namespace"], metadata["name"], container)
        if key not in self._logs and len(self._logs) < _MOST_LOGS:
            self._logs[key] = Log()
        self._answers[key] = behaviour.answers
        log = self._logs.get(key)
        if log is not None and not behaviour.run:
            for line in behaviour.log.splitlines() or printed_lines(pod, container):
                log.write(f"{line}\n".encode())

    def gone(self, pod: Object) -> None:
        """A pod has gone, and its logs with it."""
        metadata = pod["metadata"]
        where = (metadata["namespace"], metadata["name"])
        self._pods.pop(where, None)
        for key in [key for key in self._answers if key[:2] == where]:
            del self._answers[key]
        for key in [key for key in self._logs if key[:2] == where]:
            self._logs.pop(key).end()

    async def run(self, process: Process) -> int:
        """Run a command in a container; its exit code."""
        if self._run_commands:
            return await run_locally(process)
        given = self._answers.get(process.container, {}).get(" ".join(process.command))
        if given is not None:
            await process.stdout(given.encode())
            return 0
        name, *rest = process.command or [""]
        base = name.rpartition("/")[2]
        if (base == "cat" and not rest) or base == "" or (base in ("sh", "bash", "ash") and not rest):
            while piece := await process.stdin():
                await process.stdout(piece)
            return 0
        if base == "false":
            return 1
        output = self._answer(base, rest, process.container)
        if output:
            await process.stdout(output.encode())
        return 0

    def _answer(self, base: str, rest: list[str], container: Key) -> str:
        if base == "echo":
            return " ".join(rest) + "\n"
        if base == "hostname":
            return f"{container[1]}\n"
        if base in ("env", "printenv"):
            return "".join(f"{name}={value}\n" for name, value in self._environment(container).items())
        if base in ("true", "sleep", "test"):
            return ""
        if base in ("sh", "bash", "ash") and len(rest) > 1 and rest[0] == "-c":
            return "".join(f"{line}\n" for line in _echoes(rest[1]))
        return f"simulated container {container[2]}: {shlex.join([base, *rest])}\n"

    def _environment(self, container: Key) -> dict[str, str]:
        pod = self._pods.get(container[:2])
        found = {"HOSTNAME": container[1], "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"}
        for spec in (pod or {}).get("spec", {}).get("containers") or ():
            if spec["name"] == container[2]:
                found |= {each["name"]: each["value"] for each in spec.get("env") or () if "value" in each}
        return found


def printed_lines(pod: Object, container: str) -> list[str]:
    """What a container says when it begins: the words of its ``echo`` statements, else that it is simulated."""
    spec = pod["spec"]
    every = (*spec["containers"], *(spec.get("initContainers") or ()), *(spec.get("ephemeralContainers") or ()))
    found = next((each for each in every if each["name"] == container), None)
    if found is None:
        return []
    command = [*(found.get("command") or ()), *(found.get("args") or ())]
    if command and command[0].rpartition("/")[2] == "echo":
        return [" ".join(command[1:])]
    lines = _echoes(command[2]) if len(command) > 2 and command[1].endswith("c") else []
    return lines or [f"simulated container {container} of image {found.get('image') or ''} started"]


def _echoes(script: str) -> list[str]:
    lines = []
    for words in _ECHO.findall(script):
        try:
            lines.append(" ".join(shlex.split(words)))
        except ValueError:
            lines.append(words.strip())
    return lines
