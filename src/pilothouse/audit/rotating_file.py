"""A file that is put aside when it gets too large, and the care for those put aside: compressed, and not too many.

A file put aside is named after the time: ``audit-2026-01-31T10-00-00.000.log``. Old ones go by number and by age; that
and the compression happen in a thread of their own.
"""

from __future__ import annotations

import calendar
import contextlib
import fcntl
import gzip
import logging
import os
import re
import shutil
import threading
import time
from collections.abc import Callable
from typing import Final

logger = logging.getLogger(__name__)
_MEGABYTE: Final = 1024 * 1024
DEFAULT_MEGABYTES: Final = 100
_DAY: Final = 24 * 3600
_STAMP: Final = re.compile(r"(\d{4}-\d\d-\d\dT\d\d-\d\d-\d\d)\.(\d{3})")


class RotatingFile:
    """Appends lines. A line is never divided between two files."""

    def __init__(
        self,
        path: str,
        max_megabytes: int = DEFAULT_MEGABYTES,
        max_backups: int = 0,
        max_days: int = 0,
        *,
        compress: bool = False,
        shared: bool = False,
        clock: Callable[[], float] = time.time,
    ) -> None:
        """``shared`` with other processes: they take turns at writing, and whoever finds it too large puts it aside."""
        self.path = path
        self._limit = (max_megabytes or DEFAULT_MEGABYTES) * _MEGABYTE
        self._max_backups, self._max_days, self._compress = max_backups, max_days, compress
        self._clock, self._shared = clock, shared
        self._fd = -1
        self._size = 0
        self._tidying: threading.Thread | None = None
        self._lock = threading.Lock()

    def write(self, data: bytes) -> None:
        """Append, after putting the file aside if it would get too large. Raises ``OSError``."""
        with self._lock:
            if len(data) > self._limit:
                raise OSError(f"write length {len(data)} exceeds maximum file size {self._limit}")
            if self._fd < 0:
                self._open()
            if self._shared:
                self._take_turn()
            try:
                self._append(data)
            finally:
                if self._shared and self._fd >= 0:
                    fcntl.flock(self._fd, fcntl.LOCK_UN)

    def _append(self, data: bytes) -> None:
        if self._size and self._size + len(data) > self._limit:
            self._rotate()
        rest = memoryview(data)
        try:
            while rest:
                rest = rest[os.write(self._fd, rest) :]
        except OSError:
            if written := len(data) - len(rest):
                self._take_back(written)
            raise
        self._size += len(data)

    def _take_back(self, written: int) -> None:
        """Cut off the beginning of a line that did not fit: the next one would continue it, and be lost as well."""
        with contextlib.suppress(OSError):  # a pipe keeps what it was given
            os.ftruncate(self._fd, os.fstat(self._fd).st_size - written)

    def close(self) -> None:
        """Close the file and wait for the tidying."""
        with self._lock:
            self._close()
        if self._tidying is not None:
            self._tidying.join()

    def _close(self) -> None:
        """Forget the descriptor before anything else can fail: its number may be a connection's by the next attempt."""
        if self._fd >= 0:
            fd, self._fd = self._fd, -1
            os.close(fd)

    def _open(self) -> None:
        folder = os.path.dirname(self.path)
        if folder:
            os.makedirs(folder, 0o755, exist_ok=True)
        self._fd = os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
        self._size = os.fstat(self._fd).st_size
        self._tidy()

    def _take_turn(self) -> None:
        """Lock the file that has the name now, which may be another than we have open."""
        while True:
            fcntl.flock(self._fd, fcntl.LOCK_EX)
            ours = os.fstat(self._fd)
            try:
                if os.stat(self.path).st_ino == ours.st_ino:
                    self._size = ours.st_size
                    return
            except FileNotFoundError:
                pass
            self._close()
            self._open()

    def _rotate(self) -> None:
        os.replace(self.path, self._backup_name())
        self._close()
        self._open()
        if self._shared:
            self._take_turn()

    def _backup_name(self) -> str:
        stem, ending = os.path.splitext(self.path)
        now = self._clock()
        while True:
            stamp = time.strftime("%Y-%m-%dT%H-%M-%S", time.gmtime(now)) + f".{int(now * 1000) % 1000:03d}"
            name = f"{stem}-{stamp}{ending}"
            if not os.path.exists(name):
                return name
            now += 0.001

    def _tidy(self) -> None:
        if not (self._max_backups or self._max_days or self._compress):
            return
        if self._tidying is not None and self._tidying.is_alive():
            return
        self._tidying = threading.Thread(target=self._tidy_up, name="audit log tidying", daemon=True)
        self._tidying.start()

    def _tidy_up(self) -> None:
        try:
            kept = self._backups()
            if self._max_backups and len(kept) > self._max_backups:
                self._remove(kept[self._max_backups :])
                kept = kept[: self._max_backups]
            if self._max_days:
                oldest = self._clock() - self._max_days * _DAY
                self._remove([each for each in kept if each[0] < oldest])
                kept = [each for each in kept if each[0] >= oldest]
            if self._compress:
                for _, name in kept:
                    if not name.endswith(".gz"):
                        _compress(name)
        except OSError as error:
            logger.error("old audit logs cannot be tidied up: %s", error)

    def _remove(self, backups: list[tuple[float, str]]) -> None:
        for _, name in backups:
            with contextlib.suppress(FileNotFoundError):
                os.remove(name)

    def _backups(self) -> list[tuple[float, str]]:
        """Files put aside, newest first, with their times."""
        folder = os.path.dirname(self.path) or "."
        stem, ending = os.path.splitext(os.path.basename(self.path))
        found: list[tuple[float, str]] = []
        for name in os.listdir(folder):
            plain = name.removesuffix(".gz")
            if not plain.startswith(stem + "-") or not plain.endswith(ending):
                continue
            match = _STAMP.fullmatch(plain[len(stem) + 1 : len(plain) - len(ending)])
            if match is not None:
                moment = _seconds(match[1]) + int(match[2]) / 1000
                found.append((moment, os.path.join(folder, name)))
        return sorted(found, reverse=True)


def _seconds(stamp: str) -> float:
    return float(calendar.timegm(time.strptime(stamp, "%Y-%m-%dT%H-%M-%S")))


def _compress(name: str) -> None:
    partial = name + ".gz.partial"
    mode = os.stat(name).st_mode & 0o777
    target = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, mode)
    with open(name, "rb") as plain, open(target, "wb") as raw, gzip.GzipFile(fileobj=raw, mode="wb") as packed:
        shutil.copyfileobj(plain, packed)
    os.replace(partial, name + ".gz")
    os.remove(name)
