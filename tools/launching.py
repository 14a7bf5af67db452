"""Starts a Pilothouse for the tools that measure it or talk to it, and stops it again whatever happens."""

from __future__ import annotations

import http.client
import signal
import socket
import ssl
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

READY_WITHIN_SECONDS = 90.0
STOPPED_WITHIN_SECONDS = 20.0


@dataclass(frozen=True)
class RunningServer:
    """A server that has answered /readyz."""

    url: str
    pid: int
    seconds_to_ready: float


def free_port() -> int:
    """A port of the loopback address that nobody listens on now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextmanager
def running_server(flags: Sequence[str], port: int, token: str, log: Path) -> Iterator[RunningServer]:
    """Run ``pilothouse serve`` with the flags until the block ends; its log goes to a file, shown when it fails."""
    command = [str(Path(sys.executable).with_name("kube-apiserver")), *flags]
    with log.open("wb") as output:
        started = time.monotonic()
        process = subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT)
        try:
            await_ready(process, port, token, log)
            yield RunningServer(f"https://127.0.0.1:{port}", process.pid, time.monotonic() - started)
        finally:
            stop(process)


def await_ready(process: subprocess.Popen[bytes], port: int, token: str, log: Path) -> None:
    """Return when the server answers that it is ready; raises with the end of its log when it does not get there."""
    deadline = time.monotonic() + READY_WITHIN_SECONDS
    while process.poll() is None and time.monotonic() < deadline:
        if _is_ready(port, token):
            return
        time.sleep(0.02)
    tail = log.read_text(errors="replace")[-4000:]
    raise SystemExit(f"The server did not get ready (exit code {process.poll()}). The end of its log:\n{tail}")


def _is_ready(port: int, token: str) -> bool:
    unverified = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    unverified.check_hostname = False
    unverified.verify_mode = ssl.CERT_NONE
    connection = http.client.HTTPSConnection("127.0.0.1", port, timeout=5, context=unverified)
    try:
        connection.request("GET", "/readyz", headers={"Authorization": f"Bearer {token}"})
        return connection.getresponse().status == 200
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()


def stop(process: subprocess.Popen[bytes]) -> None:
    """End a process, kindly at first."""
    if process.poll() is None:
        process.send_signal(signal.SIGTERM)
    try:
        process.wait(STOPPED_WITHIN_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
