"""``python -m pilothouse.testing.model.soak``: one server under steady load for long, and a picture of what it takes.

The clients are those of the model checker, and the history is checked in the end. In the first quarter the server is
killed some times and started again; then it is left alone, so that what one life of it takes can be seen. Once a second
memory, open descriptors, the size of the database, the time that a health check takes and the longest turn of the
event loop so far are noted. It fails where the history is wrong, or where descriptors or memory grow without end: the
last quarter must not need half as much again as the second.
"""

from __future__ import annotations

import argparse
import os
import random
import re
import ssl
import tempfile
import threading
import time
from http.client import HTTPException, HTTPSConnection
from pathlib import Path

from pilothouse.testing.model.clients import Client, Lister, Watching, Writer
from pilothouse.testing.model.history import History
from pilothouse.testing.model.model import violations
from pilothouse.testing.model.pictures import Series, draw
from pilothouse.testing.model.runner import ServerProcess, await_sight, begin, tls_of
from pilothouse.testing.ports import free_port

_MEMORY = re.compile(r"VmRSS:\s+(\d+)")
_HOLD = re.compile(r"^pilothouse_event_loop_longest_hold_seconds (\S+)$", re.MULTILINE)
_GROWTH = 1.5


class Meter:
    """Looks at a server once a second, whichever process it is just then."""

    def __init__(self, server: ServerProcess, data: Path, tls: ssl.SSLContext) -> None:
        self._server, self._data, self._tls = server, data, tls
        self._began = time.monotonic()
        self.memory = Series("memory", "MB")
        self.descriptors = Series("open descriptors", "")
        self.size = Series("database", "MB")
        self.wait = Series("health check", "ms")
        self.hold = Series("longest turn of the loop so far", "ms")

    @property
    def series(self) -> list[Series]:
        """All there is."""
        return [self.memory, self.descriptors, self.size, self.wait, self.hold]

    def look(self) -> None:
        """Note the figures of this moment."""
        now = time.monotonic() - self._began
        pid = self._server.pid
        found = _MEMORY.search(Path(f"/proc/{pid}/status").read_text())
        self.memory.points.append((now, int(found[1]) / 1024 if found else 0.0))
        self.descriptors.points.append((now, len(os.listdir(f"/proc/{pid}/fd"))))
        files = (self._data / name for name in ("store.db", "store.db-wal"))
        self.size.points.append((now, sum(file.stat().st_size for file in files if file.exists()) / (1 << 20)))
        started = time.monotonic()
        self._ask("/livez")
        self.wait.points.append((now, (time.monotonic() - started) * 1000))
        held = _HOLD.search(self._ask("/metrics"))
        self.hold.points.append((now, float(held[1]) * 1000 if held else 0.0))

    def _ask(self, path: str) -> str:
        connection = HTTPSConnection(*self._server.address, timeout=60, context=self._tls)
        try:
            connection.request("GET", path)
            return connection.getresponse().read().decode()
        except (OSError, HTTPException):
            return ""
        finally:
            connection.close()


def growths(series: list[Series]) -> list[str]:
    """Those whose last quarter is well above their second."""
    found = []
    for each in series:
        values = [value for _, value in each.points]
        quarter = len(values) // 4
        if quarter and max(values[-quarter:]) > _GROWTH * max(values[quarter : 2 * quarter]):
            found.append(
                f"{each.title} grows: {max(values[quarter : 2 * quarter]):.1f}, then {max(values[-quarter:]):.1f}"
            )
    return found


def run(data: Path, seconds: float, seed: int, kills: int) -> tuple[Meter, History, list[str]]:
    """The figures, what happened, and what is wrong with it."""
    server = ServerProcess(data, free_port())
    server.start()
    try:
        tls = tls_of(data)
        server.wait_ready(tls)
        history, over, done = History(), threading.Event(), threading.Event()
        choice, servers = random.Random(seed), [server.address]
        start = begin(server.address, tls)
        watchers = [Watching(servers, tls, history, done, choice.randrange(1 << 30), after=start) for _ in range(3)]
        others: list[Client] = [Lister(servers, tls, history, over, choice.randrange(1 << 30)) for _ in range(2)]
        others += [
            Writer(servers, tls, history, over, choice.randrange(1 << 30), name=f"w{number}", objects=8)
            for number in range(4)
        ]
        meter = Meter(server, data, tls)
        for client in (*watchers, *others):
            client.start()
        began = time.monotonic()
        moments = [began + seconds / 4 * (number + 1) / (kills + 1) for number in range(kills)]
        while time.monotonic() < began + seconds:
            if moments and time.monotonic() >= moments[0]:
                moments.pop(0)
                server.kill()
                server.start()
                server.wait_ready(tls)
            meter.look()
            time.sleep(1.0)
        over.set()
        for client in others:
            client.join()
        await_sight(watchers, max((write.version for write in history.written), default=0))
        done.set()
        for client in watchers:
            client.join()
    finally:
        server.kill()
    return meter, history, violations(history) + growths([meter.memory, meter.descriptors])


def main() -> int:
    """Run, draw, and say what is wrong."""
    parser = argparse.ArgumentParser(prog="python -m pilothouse.testing.model.soak", description=__doc__)
    parser.add_argument("--seconds", type=float, default=3600, help="how long")
    parser.add_argument("--picture", default="soak.svg", help="where to draw memory, descriptors, size and waits")
    parser.add_argument("--kills", type=int, default=3, help="how often the server is killed in the first quarter")
    parser.add_argument("--seed", type=int, default=1, help="of the clients")
    flags = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="pilothouse-soak-") as folder:
        meter, history, wrong = run(Path(folder) / "data", flags.seconds, flags.seed, flags.kills)
    written, listed = len(history.written), len(history.listed)
    heading = f"{written:,} writes and {listed:,} lists in {flags.seconds:,.0f} s, {flags.kills} kills"
    Path(flags.picture).write_text(draw(heading, meter.series))
    print(f"{heading}; {flags.picture}")
    for each in meter.series:
        print(f"  {each.title}: at most {each.largest:,.1f} {each.unit}, {each.points[-1][1]:,.1f} at the end")
    for violation in wrong:
        print(f"  wrong: {violation}")
    return 1 if wrong else 0


if __name__ == "__main__":
    raise SystemExit(main())
