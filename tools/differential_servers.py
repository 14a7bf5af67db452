"""Starts the kube-apiserver that Pilothouse is compared with, on an etcd of its own, and stops both again."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from differential_answers import TOKEN, Peer, Request
from launching import free_port

READY_SECONDS = 120.0
_GARBAGE_PERCENT = "400"
"""How far their heaps may grow before garbage is collected: memory for processor time."""


@contextmanager
def etcd(program: str, folder: Path) -> Iterator[str]:
    """Run an etcd that forgets all when the block ends; its address."""
    client, peer = free_port(), free_port()
    store = f"http://127.0.0.1:{client}"
    command = (program, "--data-dir", str(folder / "etcd"), "--listen-client-urls", store, "--advertise-client-urls",
               store, "--listen-peer-urls", f"http://127.0.0.1:{peer}", "--log-level", "error", "--unsafe-no-fsync",
               "--backend-batch-interval", "1s", "--backend-batch-limit", "100000")  # fmt: skip
    with _running(command, folder / "peer0.log"):
        yield store


@contextmanager
def _running(command: Sequence[str], log: Path) -> Iterator[None]:
    with log.open("wb") as out:
        process = subprocess.Popen(command, stdout=out, stderr=out, env={**os.environ, "GOGC": _GARBAGE_PERCENT})
        try:
            yield
        finally:
            process.terminate()
            process.wait()


@contextmanager
def kube_apiserver(
    program: str, etcd_program: str, folder: Path, port: int, token: str, flags: Sequence[str]
) -> Iterator[None]:
    """Run both until the block ends."""
    with etcd(etcd_program, folder) as store:
        command = (program, "--etcd-servers", store, "--secure-port", str(port), *flags)
        with _running(command, folder / "peer1.log"):
            _wait(folder, port, token)
            yield


def _wait(folder: Path, port: int, token: str) -> None:
    deadline = time.monotonic() + READY_SECONDS
    while Peer(port, token).say(Request("GET", "/readyz")).status != 200:
        if time.monotonic() > deadline:
            raise SystemExit((folder / "peer1.log").read_text()[-2000:])
        time.sleep(0.2)


@contextmanager
def plain_kube_apiserver(
    program: str, etcd_program: str, folder: Path, tokens: Path, more: Sequence[str] = ()
) -> Iterator[int]:
    """The same with few flags and all rights for the token, until the block ends; the port."""
    port, key = free_port(), folder / "sa.key"
    subprocess.run(["openssl", "genrsa", "-out", str(key), "2048"], check=True, capture_output=True)
    flags = [
        "--bind-address=127.0.0.1",
        f"--token-auth-file={tokens}",
        "--service-account-issuer=https://x",
        f"--service-account-key-file={key}",
        f"--service-account-signing-key-file={key}",
        f"--cert-dir={folder / 'certs'}",
        "--disable-admission-plugins=ServiceAccount",
        "--authorization-mode=RBAC",
        *more,
    ]
    with kube_apiserver(program, etcd_program, folder, port, TOKEN, flags):
        yield port
