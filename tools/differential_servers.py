"""Starts the kube-apiserver that Pilothouse is compared with, on an etcd of its own, and stops both again."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

from differential_answers import TOKEN, Peer, Request
from launching import free_port

READY_SECONDS = 120.0
_GARBAGE_PERCENT = "400"
"""How far their heaps may grow before garbage is collected: memory for processor time."""


@contextmanager
def kube_apiserver(
    program: str, etcd: str, folder: Path, port: int, token: str, flags: Sequence[str]
) -> Iterator[None]:
    """Run both until the block ends."""
    client, peer = free_port(), free_port()
    store = f"http://127.0.0.1:{client}"
    commands: Sequence[Sequence[str]] = (
        (etcd, "--data-dir", str(folder / "etcd"), "--listen-client-urls", store, "--advertise-client-urls", store,
         "--listen-peer-urls", f"http://127.0.0.1:{peer}", "--log-level", "error", "--unsafe-no-fsync",
         "--backend-batch-interval", "1s", "--backend-batch-limit", "100000"),
        (program, "--etcd-servers", store, "--secure-port", str(port), *flags),
    )  # fmt: skip
    with ExitStack() as undoing:
        for number, command in enumerate(commands):
            log = undoing.enter_context((folder / f"peer{number}.log").open("wb"))
            process = subprocess.Popen(command, stdout=log, stderr=log, env={**os.environ, "GOGC": _GARBAGE_PERCENT})
            undoing.callback(process.wait)
            undoing.callback(process.terminate)
        deadline = time.monotonic() + READY_SECONDS
        while Peer(port, token).say(Request("GET", "/readyz")).status != 200:
            if time.monotonic() > deadline:
                raise SystemExit((folder / "peer1.log").read_text()[-2000:])
            time.sleep(0.2)
        yield


@contextmanager
def plain_kube_apiserver(program: str, etcd: str, folder: Path, tokens: Path) -> Iterator[int]:
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
    ]
    with kube_apiserver(program, etcd, folder, port, TOKEN, flags):
        yield port
