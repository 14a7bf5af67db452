"""Runs a program as its packaging says: on a read-only root, as a user without rights, with folders of its own.

bubblewrap does what systemd, a container engine or a kubelet would do, as far as an ordinary user may: namespaces and
mounts. Filters of system calls and limits are left out.
"""

from __future__ import annotations

import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest

_OWN = (Path(__file__).parents[2], Path(sys.prefix), Path(sys.base_prefix))
"""What a program of this checkout needs wherever it lies, in a folder that is emptied too."""
_READY = re.compile("is ready|ready to serve client requests")
_PATIENCE = 120.0


def require_confinement() -> None:
    """Skip where bubblewrap is not to be had, or not allowed."""
    if shutil.which("bwrap") is None:
        pytest.skip("bubblewrap is not installed")
    if subprocess.run(["bwrap", "--ro-bind", "/", "/", "true"], capture_output=True, check=False).returncode:
        pytest.skip("bubblewrap may not make namespaces here")


@dataclass
class Confined:
    """A program that is confined.

    ``folders`` are what it may write to, by where it sees them, ``shown`` what it may read beside the files of this
    machine. What is ``emptied`` it finds empty, and may use.
    """

    user: int
    folders: Mapping[str, Path] = field(default_factory=dict)
    shown: Mapping[str, Path] = field(default_factory=dict)
    emptied: Sequence[str] = ("/tmp",)
    variables: Mapping[str, str] = field(default_factory=dict)

    def words(self, command: Iterable[str]) -> list[str]:
        """The command line that runs a command so."""
        made = ["bwrap", *_machine(), "--dev", "/dev", "--proc", "/proc", "--die-with-parent", "--new-session"]
        for each in self.emptied:
            made += ["--tmpfs", each]
        for path in _OWN:
            if any(path.is_relative_to(each) for each in self.emptied):
                made += ["--ro-bind", str(path), str(path)]
        for inside, outside in self.shown.items():
            made += ["--ro-bind", str(outside), inside]
        for inside, outside in self.folders.items():
            made += ["--bind", str(outside), inside]
        made += ["--remount-ro", "/"]
        for name, value in self.variables.items():
            made += ["--setenv", name, value]
        made += ["--unshare-user", "--uid", str(self.user), "--gid", str(self.user), "--cap-drop", "ALL"]
        return [*made, "--", *command]

    def serve(self, command: Iterable[str], log: Path) -> Served:
        """Start a server and wait until it says that it is ready."""
        with log.open("wb") as output:
            process = subprocess.Popen(self.words(command), stdout=output, stderr=subprocess.STDOUT, umask=0o077)
        served = Served(process, log)
        deadline = time.monotonic() + _PATIENCE
        while not _READY.search(log.read_text()):
            if process.poll() is not None or time.monotonic() > deadline:
                served.stop()
                raise AssertionError(f"it did not get ready:\n{log.read_text()}")
            time.sleep(0.05)
        return served


@dataclass
class Served:
    """A server that runs confined."""

    process: subprocess.Popen[bytes]
    log: Path

    def stop(self) -> int:
        """Tell it to end as an init system does, and wait; its exit code."""
        for pid in _children(self.process.pid):
            subprocess.run(["kill", f"-{signal.SIGTERM.value}", str(pid)], check=False)
        return self.process.wait(_PATIENCE)


def _machine() -> list[str]:
    """The folders of this machine on a root of its own, so that there is room for others beside them."""
    made: list[str] = []
    for each in sorted(Path("/").iterdir()):
        if each.is_symlink():
            made += ["--symlink", str(each.readlink()), str(each)]
        elif each.is_dir() and each.name not in ("dev", "proc", "tmp"):
            made += ["--ro-bind", str(each), str(each)]
    return made


def _children(pid: int) -> list[int]:
    listed = Path(f"/proc/{pid}/task/{pid}/children")
    return [int(each) for each in listed.read_text().split()] if listed.exists() else []
