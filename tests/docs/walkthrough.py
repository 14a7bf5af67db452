"""Walks through a page of the documentation as its reader does: writes its files, types its commands, compares.

    ```yaml boats.yaml      a file, with the block as its content
    ```console              ``$ `` begins a command, a trailing backslash continues it; the rest is what it prints
    ```console server       a command that goes on until the walk ends; waited for until it says that it is ready
    ```console NAME         any other name: not done here (what is to be installed, what needs another machine)

In what is printed ``...`` stands for anything, a line of ``...`` for any lines, and runs of spaces are equal; a command
with nothing below it may print what it likes. ``kubectl get`` is typed again until it shows what it is to show, as a
reader looks again whom it does not surprise that a cluster takes its time. Commands share a folder and a shell's
variables. The ports that pages name are free ones in truth; a server that names none gets ``--secure-port``.
"""

from __future__ import annotations

import os
import re
import shlex
import signal
import subprocess
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from pilothouse.testing.ports import free_port

_BLOCK = re.compile(r"^```(\w+)(?: (\S+))?\n(.*?)^```$", re.DOTALL | re.MULTILINE)
_PORTS = ("6443", "7443", "2379", "2380")
_READY = re.compile("is ready|ready to serve client requests")
_END = "--walked--"
_PATIENCE = 90.0


@dataclass(frozen=True)
class Command:
    """What is typed, and what the page says it prints."""

    typed: str
    printed: str


@dataclass
class Walk:
    """One reader with a folder, a shell and the servers they started."""

    folder: Path
    path: Sequence[Path] = ()
    _ports: dict[str, str] = field(default_factory=lambda: {port: str(free_port()) for port in _PORTS})
    _servers: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)
    _shell: subprocess.Popen[str] | None = None

    def __enter__(self) -> Walk:
        self._shell = subprocess.Popen(
            ["bash", "--norc", "--noprofile"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            cwd=self.folder,
            env=self._environment(),
        )
        return self

    def __exit__(self, *_: object) -> None:
        for server in reversed(self._servers.values()):
            server.send_signal(signal.SIGTERM)
            server.wait(_PATIENCE)
        assert self._shell is not None
        self._shell.communicate(timeout=_PATIENCE)

    def read(self, page: Path) -> int:
        """Do what the page says; how many commands there were. A server that runs already is not started again."""
        write_files(page, self.folder)
        count = 0
        for language, name, body in _BLOCK.findall(page.read_text()):
            if language != "console" or name not in ("", "server"):
                continue
            for command in commands(body):
                if name:
                    self._serve(command)
                else:
                    self._type(command)
                count += 1
        return count

    def _environment(self) -> dict[str, str]:
        path = os.pathsep.join([*map(str, self.path), os.environ["PATH"]])
        kept = {name: value for name, value in os.environ.items() if name not in ("KUBECONFIG", "PYTHONPATH")}
        return {**kept, "PATH": path, "HOME": str(self.folder), "TERM": "dumb"}

    def _serve(self, command: Command) -> None:
        if command.typed in self._servers:
            return
        log = self.folder / f"server-{len(self._servers)}.log"
        words = shlex.split(self._meant(command.typed))
        if words[0] == "pilothouse" and "--secure-port" not in command.typed:
            words.append(f"--secure-port={self._ports[_PORTS[0]]}")
        with log.open("wb") as output:
            server = subprocess.Popen(
                words, cwd=self.folder, env=self._environment(), stdout=output, stderr=subprocess.STDOUT
            )
        self._servers[command.typed] = server
        deadline = time.monotonic() + _PATIENCE
        while not _READY.search(log.read_text()) and time.monotonic() < deadline and server.poll() is None:
            time.sleep(0.02)
        seen = self._shown(log.read_text())
        assert _READY.search(seen), _difference(command, seen)
        assert not command.printed or matches(command.printed, seen), _difference(command, seen)

    def _type(self, command: Command) -> None:
        deadline = time.monotonic() + (_PATIENCE if re.match("kubectl .*get ", command.typed) else 0)
        while True:
            seen = self._shown(self._typed(self._meant(command.typed)))
            if not command.printed or matches(command.printed, seen):
                return
            if time.monotonic() > deadline:
                raise AssertionError(_difference(command, seen))
            time.sleep(0.05)

    def _typed(self, text: str) -> str:
        assert self._shell is not None and self._shell.stdin is not None and self._shell.stdout is not None
        self._shell.stdin.write(f"{text}\necho {_END}\n")
        self._shell.stdin.flush()
        lines = []
        for line in self._shell.stdout:
            lines.append(line)
            if line.endswith(f"{_END}\n"):
                break
        return "".join(lines).removesuffix(f"{_END}\n")

    def _meant(self, text: str) -> str:
        for named, free in self._ports.items():
            text = text.replace(named, free)
        return text

    def _shown(self, text: str) -> str:
        for named, free in self._ports.items():
            text = text.replace(free, named)
        return text


def write_files(page: Path, folder: Path) -> None:
    """Make the files that a page shows."""
    for language, name, body in _BLOCK.findall(page.read_text()):
        if language != "console" and "." in name:
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text(body)


def commands(block: str) -> list[Command]:
    """The commands of a block of kind ``console``."""
    found: list[tuple[str, list[str]]] = []
    continued = False
    for line in block.splitlines():
        if continued:
            found[-1] = (f"{found[-1][0]}\n{line}", found[-1][1])
        elif line.startswith("$ "):
            found.append((line[2:], []))
        else:
            assert found, f"a console block begins with a command, not with {line!r}"
            found[-1][1].append(line)
        continued = line.endswith("\\") and not found[-1][1]
    return [Command(typed, "\n".join(printed)) for typed, printed in found]


def matches(wanted: str, seen: str) -> bool:
    """Whether what was printed is what a page shows."""
    pattern = "".join(_patterns(wanted.strip().splitlines()))
    return re.fullmatch(pattern, _normal(seen)) is not None


def _patterns(lines: Sequence[str]) -> Iterator[str]:
    for line in lines:
        if line.strip() == "...":
            yield r"(?:[^\n]*\n)*?"
        else:
            yield r"[^\n]*?".join(re.escape(part) for part in _normal(line).split("..."))


def _normal(text: str) -> str:
    lines = [" ".join(line.split()) for line in text.strip().splitlines()]
    return "".join(f"{line}\n" for line in lines)


def _difference(command: Command, seen: str) -> str:
    return f"$ {command.typed}\nis to print\n{command.printed}\nbut printed\n{seen}"
