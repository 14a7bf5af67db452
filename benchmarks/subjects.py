"""What is measured: a fresh Pilothouse, or a fresh kube-apiserver on an etcd, each in a folder of its own."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent / "tools"))

from launching import await_ready, free_port, running_server, stop  # noqa: E402 (after the path is known)
from pilothouse.credentials.pki import Pki, ensure_pki  # noqa: E402
from pilothouse.testing.etcd_process import EtcdCluster  # noqa: E402

TOKEN = "benchtoken"
BINARY = str(Path(sys.executable).with_name("kube-apiserver"))


@dataclass(frozen=True)
class Subject:
    """A server that is ready."""

    name: str
    url: str
    pids: Sequence[int]
    """Its processes, the server itself first, those of its store included."""
    seconds_to_ready: float


def _tokens(folder: Path) -> Path:
    tokens = folder / "tokens.csv"
    tokens.write_text(f'{TOKEN},bench,bench-uid,"system:masters"\n')
    return tokens


@contextmanager
def pilothouse(
    folder: Path, flags: Sequence[str] = (), *, etcd: bool = False, etcd_binary: str = ""
) -> Iterator[Subject]:
    """Ours, on the embedded store or on an etcd: one on memory, which does not count, or the given one, which does."""
    port = free_port()
    words = [
        f"--data-dir={folder}/data",
        f"--secure-port={port}",
        "--bind-address=127.0.0.1",
        f"--token-auth-file={_tokens(folder)}",
        *flags,
    ]
    with ExitStack() as stack:
        counted: list[int] = []
        if etcd and etcd_binary:
            store, client = stack.enter_context(_etcd(folder, etcd_binary))
            counted.append(store.pid)
            words.append(f"--etcd-servers={client}")
        elif etcd:
            words.append(f"--etcd-servers={','.join(stack.enter_context(EtcdCluster()).urls)}")
        server = stack.enter_context(running_server(words, port, TOKEN, folder / "server.log"))
        yield Subject("pilothouse", server.url, [server.pid, *counted], server.seconds_to_ready)


@contextmanager
def _etcd(folder: Path, binary: str) -> Iterator[tuple[subprocess.Popen[bytes], str]]:
    """An etcd that syncs to disk, and where it listens."""
    client, peer = f"http://127.0.0.1:{free_port()}", f"http://127.0.0.1:{free_port()}"
    words = [
        binary, f"--data-dir={folder}/etcd", f"--listen-client-urls={client}", f"--advertise-client-urls={client}",
        f"--listen-peer-urls={peer}", f"--initial-advertise-peer-urls={peer}", f"--initial-cluster=default={peer}",
        "--log-level=error",
    ]  # fmt: skip
    with (folder / "etcd.log").open("wb") as log:
        running = subprocess.Popen(words, stdout=log, stderr=log)
        try:
            yield running, client
        finally:
            stop(running)


@contextmanager
def kube_apiserver(folder: Path, binary: str, etcd: str) -> Iterator[Subject]:
    """A kube-apiserver on an etcd that syncs to disk, as ours does."""
    ensure_pki(folder, dns_names=["localhost"], ip_addresses=["127.0.0.1", "10.0.0.1"])
    pki, port = Pki(folder / "pki"), free_port()
    server = [
        binary, f"--secure-port={port}", "--bind-address=127.0.0.1",
        "--advertise-address=192.0.2.2", f"--tls-cert-file={pki.serving_cert}",
        f"--tls-private-key-file={pki.serving_key}", f"--token-auth-file={_tokens(folder)}",
        f"--service-account-key-file={pki.service_account_public_key}",
        f"--service-account-signing-key-file={pki.service_account_key}",
        "--service-account-issuer=https://kubernetes.default.svc", "--authorization-mode=Node,RBAC",
        "--service-cluster-ip-range=10.0.0.0/16", "--allow-privileged=true",
    ]  # fmt: skip
    with _etcd(folder, etcd) as (store, client), (folder / "server.log").open("wb") as log:
        started = time.monotonic()
        running = subprocess.Popen([*server, f"--etcd-servers={client}"], stdout=log, stderr=log)
        try:
            await_ready(running, port, TOKEN, folder / "server.log")
            seconds = time.monotonic() - started
            yield Subject("kube-apiserver", f"https://127.0.0.1:{port}", [running.pid, store.pid], seconds)
        finally:
            stop(running)
