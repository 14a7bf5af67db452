"""The static pod of contrib/ in a cluster of kubeadm: its files, its flags, its etcd, and what it does after the start.

Runs where there is a kubeadm (named by ``KUBEADM``, or on the path): it makes certificates and kubeconfigs, the
manifest that ours replaces, and everything that ``kubeadm init`` puts into a cluster once its API server answers.
"""

from __future__ import annotations

import http.client
import os
import shutil
import socket
import ssl
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.conftest import find_client
from tests.docs.confinement import Confined, require_confinement
from tests.docs.test_packaging import CONTRIB, VENV

from pilothouse.testing.etcd_process import EtcdMember, find_etcd
from pilothouse.testing.ports import free_port

KUBEADM = os.environ.get("KUBEADM") or shutil.which("kubeadm")
ADDRESS = "192.0.2.10"
CONFIGURATION = """
apiVersion: kubeadm.k8s.io/v1beta4
kind: InitConfiguration
localAPIEndpoint: {{advertiseAddress: 192.0.2.10, bindPort: 6443}}
nodeRegistration: {{name: node-1, criSocket: "unix:///run/containerd/containerd.sock"}}
bootstrapTokens:
- token: abcdef.0123456789abcdef
---
apiVersion: kubeadm.k8s.io/v1beta4
kind: ClusterConfiguration
kubernetesVersion: v1.37.0
certificatesDir: {folder}/pki
apiServer: {{certSANs: [127.0.0.1]}}
"""


def flags_of(manifest: dict[str, Any]) -> list[str]:
    """The command of the API server."""
    found: list[str] = manifest["spec"]["containers"][0]["command"]
    return found


@dataclass
class Node:
    """A folder like /etc/kubernetes of a control-plane node."""

    folder: Path

    def kubeadm(self, *words: str) -> str:
        """Run a phase of ``kubeadm init``; what it prints."""
        assert KUBEADM is not None
        command = [KUBEADM, "init", "phase", *words, f"--config={self.folder}/config.yaml"]
        environment = {**os.environ, "KUBEADM_INIT_DRYRUN_DIR": str(self.folder / "dry")}
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=180)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def ours(self) -> dict[str, Any]:
        """The manifest of contrib, with the files of this node."""
        text = (CONTRIB / "kube-apiserver.yaml").read_text()
        found: dict[str, Any] = yaml.safe_load(text.replace("/etc/kubernetes", str(self.folder)))
        return found

    def point_to(self, port: int) -> None:
        """Have the kubeconfigs name a port of this machine."""
        for path in self.folder.glob("*.conf"):
            path.write_text(path.read_text().replace(f"{ADDRESS}:6443", f"127.0.0.1:{port}"))

    def kubectl(self, *words: str, config: str = "super-admin.conf") -> str:
        """What kubectl prints."""
        command = [find_client("kubectl", "KUBECTL"), f"--kubeconfig={self.folder}/{config}", *words]
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout.strip()


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Node:
    if KUBEADM is None:
        pytest.skip("there is no kubeadm")
    folder = tmp_path_factory.mktemp("kubernetes")
    for name in ("dry", "etcd"):
        (folder / name).mkdir()
    (folder / "config.yaml").write_text(CONFIGURATION.format(folder=folder))
    made = Node(folder)
    made.kubeadm("certs", "all")
    made.kubeadm("kubeconfig", "all", f"--kubeconfig-dir={folder}")
    return made


@pytest.fixture(scope="module")
def port(node: Node) -> Iterator[int]:
    """The API server of the manifest, on etcd with kubeadm's certificates."""
    require_confinement()
    if find_etcd() is None:
        pytest.skip("there is no etcd")
    authority, pki = node.folder / "pki" / "etcd", node.folder / "pki"
    options = [
        f"--cert-file={authority}/server.crt",
        f"--key-file={authority}/server.key",
        f"--trusted-ca-file={authority}/ca.crt",
        "--client-cert-auth=true",
    ]
    etcd = EtcdMember("node-1", node.folder / "etcd", free_port(), free_port(), options)
    etcd.start()
    try:
        wait_for_port(etcd.client_port)
        port = free_port()
        flags = [flag.replace("127.0.0.1:2379", f"127.0.0.1:{etcd.client_port}") for flag in flags_of(node.ours())]
        command = [str(VENV / "bin" / flags[0]), *flags[1:], f"--secure-port={port}", "--bind-address=127.0.0.1"]
        pod = Confined(user=0, emptied=("/tmp",), shown={str(pki): pki})
        served = pod.serve(command, node.folder / "log")
        try:
            node.point_to(port)
            yield port
        finally:
            code = served.stop()
        assert code == 0, served.log.read_text()
    finally:
        etcd.kill()


def wait_for_port(port: int) -> None:
    deadline = time.monotonic() + 60
    while True:
        try:
            socket.create_connection(("127.0.0.1", port)).close()
            return
        except OSError:
            assert time.monotonic() < deadline, "etcd does not listen"
            time.sleep(0.05)


def test_the_flags_are_those_of_kubeadm(node: Node) -> None:
    node.kubeadm("control-plane", "apiserver", "--dry-run")
    (written,) = node.folder.glob("dry/**/kube-apiserver.yaml")
    theirs, ours = yaml.safe_load(written.read_text()), node.ours()
    assert set(flags_of(ours)) - set(flags_of(theirs)) == {"--data-dir=/tmp/pilothouse"}
    assert set(flags_of(theirs)) <= set(flags_of(ours))
    for key in ("name", "namespace", "labels"):
        assert ours["metadata"][key] == theirs["metadata"][key]
    for probe in ("startupProbe", "livenessProbe", "readinessProbe"):
        asked = ours["spec"]["containers"][0][probe]["httpGet"]
        assert asked == {**theirs["spec"]["containers"][0][probe]["httpGet"], "port": 6443}


def test_the_probes_are_answered(node: Node, port: int) -> None:
    context = ssl.create_default_context(cafile=str(node.folder / "pki" / "ca.crt"))
    for path in ("/livez", "/readyz"):
        connection = http.client.HTTPSConnection("127.0.0.1", port, context=context, timeout=60)
        connection.request("GET", path)
        assert connection.getresponse().status == 200
        connection.close()


def test_what_kubeadm_does_after_the_start(node: Node, port: int) -> None:
    """Its configuration, tokens for those who join, and the addons."""
    config = f"--kubeconfig={node.folder}/super-admin.conf"
    node.kubeadm("upload-config", "kubeadm", config)
    node.kubeadm("bootstrap-token", config)
    node.kubeadm("addon", "all", config)
    assert "kubernetesVersion: v1.37.0" in node.kubectl(
        "get", "cm", "-n", "kube-system", "kubeadm-config", "-o", "yaml"
    )
    assert node.kubectl("get", "ds,deploy", "-n", "kube-system", "-o", "name") == (
        "daemonset.apps/kube-proxy\ndeployment.apps/coredns"
    )
    who = node.kubectl("auth", "whoami", "-o", "jsonpath={.status.userInfo.username}", config="controller-manager.conf")
    assert who == "system:kube-controller-manager"
