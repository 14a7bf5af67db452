"""One server a data folder: who starts claims it before anything is written, and holds it until the process ends.

The store itself could be shared, but the folder also has the kubeconfig, the certificates and the address of one
server: a second one would overwrite the first, and take its endpoints away when it stops. Several servers of one
cluster share an etcd instead. The claim is a lock of the operating system on ``server.lock``, so that a server that was
killed leaves no claim behind; what is written in the file only says who has it.
"""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

NAME = "server.lock"


@dataclass(frozen=True)
class Holder:
    """The server that a folder belongs to. Nothing is known of one that has not written it down yet."""

    pid: int = 0
    url: str = ""
    since: float = 0.0
    workers: int = 1
    """Processes that serve, of which ``pid`` is the first."""

    def __str__(self) -> str:
        return f"pid {self.pid}, {self.url}" if self.pid else "which is just starting"


class FolderTaken(Exception):
    """Another server works in the folder; the message names it and says what to do."""

    def __init__(self, folder: Path, holder: Holder) -> None:
        self.folder, self.holder = folder, holder
        super().__init__(
            f"another server ({holder}) works in {folder}: stop it, or give this one a folder of its own with "
            "--data-dir. Several servers of one cluster share an etcd (--etcd-servers)"
        )


@contextmanager
def claimed(folder: Path, holder: Holder) -> Iterator[None]:
    """The folder, which must exist, is this server's within the block. Raises FolderTaken."""
    descriptor = os.open(folder / NAME, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise FolderTaken(folder, _read(descriptor)) from None
        text = json.dumps({"pid": holder.pid, "url": holder.url, "since": holder.since, "workers": holder.workers})
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, text.encode() + b"\n", 0)
        yield
        os.ftruncate(descriptor, 0)
    finally:
        os.close(descriptor)


def holder_of(folder: Path) -> Holder | None:
    """The server that works in the folder now, if any."""
    try:
        descriptor = os.open(folder / NAME, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return _read(descriptor)
    finally:
        os.close(descriptor)
    return None


def _read(descriptor: int) -> Holder:
    try:
        return Holder(**json.loads(os.pread(descriptor, 4096, 0)))
    except (ValueError, TypeError):
        return Holder()
