"""The folder works as controller-runtime's envtest uses it: the same flags, health checks and signals."""

from __future__ import annotations

import os
import signal
import ssl
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from pilothouse.cli.envtest.assets import make_assets
from pilothouse.cli.main import main
from pilothouse.credentials.issuing import issue_client
from pilothouse.credentials.pki import Pki, ensure_pki
from pilothouse.testing.calling import Caller
from pilothouse.testing.client import Client
from pilothouse.testing.ports import free_port


@contextmanager
def running(*words: str, ready: Callable[[], bool]) -> Iterator[None]:
    """As envtest runs a binary: start it, poll its health, and end it by SIGTERM."""
    process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    try:
        deadline = time.monotonic() + 60
        while not _is(ready):
            assert process.poll() is None and time.monotonic() < deadline, process.communicate(timeout=120)[0]
            time.sleep(0.05)
        yield
    finally:
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=120)
    assert process.returncode == 0


def _is(ready: Callable[[], bool]) -> bool:
    try:
        return ready()
    except urllib.error.HTTPError as answer:
        answer.close()
        return False
    except OSError:
        return False


def test_the_binaries_work_as_envtest_starts_them(tmp_path: Path) -> None:
    assets = make_assets(tmp_path / "bin")
    # CheckFlag of envtest looks through --help for flags that come and go with versions.
    shown = subprocess.run([assets / "kube-apiserver", "--help"], capture_output=True, text=True, check=True).stdout
    assert "--insecure-port" not in shown
    assert "--unsafe-no-fsync" in subprocess.run([assets / "etcd", "--help"], capture_output=True, text=True).stdout
    # The test suite makes authorities, certificates and the signing key itself.
    pki = ensure_pki(tmp_path / "certs", dns_names=["localhost"], ip_addresses=["127.0.0.1"])
    etcd, port = f"http://127.0.0.1:{free_port()}", free_port()
    etcd_flags = (
        f"--advertise-client-urls={etcd}",
        f"--data-dir={tmp_path}/etcd",
        f"--listen-client-urls={etcd}",
        f"--listen-peer-urls=http://127.0.0.1:{free_port()}",
        "--unsafe-no-fsync=true",
    )
    server_flags = (
        "--allow-privileged=true",
        "--authorization-mode=RBAC",
        "--bind-address=127.0.0.1",
        f"--cert-dir={_cert_dir(tmp_path, pki)}",
        f"--client-ca-file={pki.ca_cert}",
        "--disable-admission-plugins=ServiceAccount",
        f"--etcd-servers={etcd}",
        f"--secure-port={port}",
        f"--service-account-issuer=https://127.0.0.1:{port}/",
        f"--service-account-key-file={pki.service_account_public_key}",
        f"--service-account-signing-key-file={pki.service_account_key}",
        "--service-cluster-ip-range=10.0.0.0/24",
    )
    trusting = ssl.create_default_context(cafile=str(pki.ca_cert))

    def healthy() -> bool:
        with urllib.request.urlopen(f"https://127.0.0.1:{port}/readyz", context=trusting) as answer:
            return bool(answer.status == 200)

    def etcd_healthy() -> bool:
        with urllib.request.urlopen(f"{etcd}/health") as answer:
            return bool(answer.status == 200)

    client = Client(Caller(f"https://127.0.0.1:{port}", _as_admin(tmp_path, pki)))
    pod = {"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    with running(str(assets / "etcd"), *etcd_flags, ready=etcd_healthy):
        with running(str(assets / "kube-apiserver"), *server_flags, ready=healthy):
            created = client.create({"apiVersion": "v1", "kind": "Pod", **pod})
        with running(str(assets / "kube-apiserver"), *server_flags, ready=healthy):
            assert client.get("v1/Pod", "p") == created
    assert (tmp_path / "etcd" / "store.db").exists()


def _cert_dir(tmp_path: Path, pki: Pki) -> Path:
    folder = tmp_path / "serving"
    folder.mkdir()
    (folder / "apiserver.crt").write_bytes(pki.serving_cert.read_bytes())
    (folder / "apiserver.key").write_bytes(pki.serving_key.read_bytes())
    return folder


def _as_admin(tmp_path: Path, pki: Pki) -> ssl.SSLContext:
    cert, key = issue_client(pki, "admin", ["system:masters"], 3600, time.time())
    (tmp_path / "admin.crt").write_bytes(cert)
    (tmp_path / "admin.key").write_bytes(key)
    context = ssl.create_default_context(cafile=str(pki.ca_cert))
    context.load_cert_chain(tmp_path / "admin.crt", tmp_path / "admin.key")
    return context


def test_it_answers_as_setup_envtest_does(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["envtest", "use", "1.36.x", "-p", "path", f"--bin-dir={tmp_path}"], "pilothouse") == 0
    folder = Path(capsys.readouterr().out)
    assert sorted(os.listdir(folder)) == ["etcd", "kube-apiserver", "kubectl"]
    assert all(os.access(folder / name, os.X_OK) for name in os.listdir(folder))
    main(["envtest", "use", "-i", "-p", "env", f"--bin-dir={tmp_path}"], "pilothouse")
    assert capsys.readouterr().out == f"export KUBEBUILDER_ASSETS={folder}\n"
    main(["envtest", "use", f"--bin-dir={tmp_path}"], "pilothouse")
    assert f"Path: {folder}\n" in capsys.readouterr().out
    assert main(["envtest", "list"], "pilothouse") == 0
    assert "v1.37.0" in capsys.readouterr().out
