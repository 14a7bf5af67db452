"""The system's clock is set while a server runs, as by hand or by a machine that wakes up: hours ahead, years back.

Objects bear the time that the clock tells. What lasts for a while, or is tried again after one, does so by a clock that
nobody sets; and what was refused because of a wrong clock is good again when the clock is.
"""

from __future__ import annotations

import shutil
import struct
import subprocess
from collections.abc import Callable, Iterator
from contextlib import closing
from http.client import HTTPSConnection
from pathlib import Path
from typing import Any

import orjson
import pytest

HOUR = 3600
YEAR = 365 * 24 * HOUR
CORE = "/api/v1/namespaces/default"
LIBRARY = Path(__file__).with_name("system_clock.c")


class Settable:
    """A server whose clock goes ``ahead`` seconds before the machine's."""

    def __init__(self, running: Any, file: Path) -> None:
        self.server, self._file = running, file
        self._held = HTTPSConnection("127.0.0.1", running.port, timeout=120, context=running.tls())

    def close(self) -> None:
        self._held.close()

    def set_ahead(self, seconds: int) -> None:
        with self._file.open("r+b") as file:
            file.write(struct.pack("<q", seconds))

    def status(self, method: str, path: str, body: Any = None) -> tuple[int, int]:
        """Of one request on a connection that has been there all the time, and of the same one on a new one."""
        self._held.request(method, path, body and orjson.dumps(body), {"Content-Type": "application/json"})
        answer = self._held.getresponse()
        answer.read()
        return answer.status, self.server.call(method, path, body)[0]


@pytest.fixture
def settable(launch: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Settable]:
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("there is no C compiler to build the clock with")
    library, file = tmp_path / "clock.so", tmp_path / "ahead"
    subprocess.run([compiler, "-shared", "-fPIC", "-O1", "-o", library, LIBRARY, "-ldl"], check=True)
    file.write_bytes(struct.pack("<q", 0))
    monkeypatch.setenv("LD_PRELOAD", str(library))
    monkeypatch.setenv("SYSTEM_CLOCK", str(file))
    with closing(Settable(launch(tmp_path / "data", "--event-ttl=1h"), file)) as settable:
        yield settable


def test_clients_are_served_again_when_the_clock_is_right_again(settable: Settable) -> None:
    event = {"apiVersion": "v1", "kind": "Event", "metadata": {"name": "e"}, "involvedObject": {"namespace": "default"}}
    assert settable.server.call("POST", f"{CORE}/events", event)[0] == 201
    account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "a"}}
    assert settable.server.call("POST", f"{CORE}/serviceaccounts", account)[0] == 201
    asked = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {"expirationSeconds": 600}}
    _, _, made = settable.server.call("POST", f"{CORE}/serviceaccounts/a/token", asked)
    review = {
        "apiVersion": "authentication.k8s.io/v1",
        "kind": "TokenReview",
        "spec": {"token": made["status"]["token"]},
    }

    def is_good() -> bool:
        answer = settable.server.call("POST", "/apis/authentication.k8s.io/v1/tokenreviews", review)[2]
        return bool(answer["status"].get("authenticated"))

    for ahead in (2 * HOUR, -HOUR // 2):
        settable.set_ahead(ahead)
        assert settable.status("GET", f"{CORE}/events/e") == (200, 200)
        assert settable.status("GET", "/readyz") == (200, 200)
    for ahead in (3 * YEAR, -3 * YEAR):
        settable.set_ahead(ahead)
        assert settable.status("GET", CORE) == (401, 401)
        settable.set_ahead(0)
        assert settable.status("GET", CORE) == (200, 200)
    assert is_good()
    settable.server.process.terminate()
    assert settable.server.process.wait(120) == 0
