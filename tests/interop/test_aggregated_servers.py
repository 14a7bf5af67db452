"""Aggregated servers of Go behind ours, and ours behind kube-apiserver: the same kubectl session in each pairing.

    SAMPLE_APISERVER    Kubernetes' sample-apiserver, which goes behind Pilothouse
    KUBE_APISERVER      goes in front of examples/wardle

Both want ETCD; each test is left out where what it needs is not named.
"""

import json
import os
import signal
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.conftest import Kubectl, find_client

from pilothouse.credentials.pki import Pki
from pilothouse.testing.aggregated_servers import (
    API_SERVICES,
    SERVICES,
    aggregated_flags,
    api_service,
    front_proxy_flags,
    loopback_service,
    write_kubeconfig,
)
from pilothouse.testing.etcd_process import EtcdCluster
from pilothouse.testing.waiting import until

sys.path.insert(0, str(Path(__file__).parent))
from servers import KUBE_APISERVER, PILOTHOUSE, ApiServer, free_port

SAMPLE_APISERVER = os.environ.get("SAMPLE_APISERVER", "")
ROOT = Path(__file__).parents[2]
GROUP = "wardle.example.com"
pytestmark = pytest.mark.skipif(not os.environ.get("ETCD"), reason="ETCD names no binary")


@pytest.fixture
def etcd():
    with EtcdCluster(1) as cluster:
        yield [member.url for member in cluster.members]


@contextmanager
def main_server(binary, folder, etcd):
    pki = Pki(folder / "pki")
    with ApiServer(binary, folder, etcd, *front_proxy_flags(pki)) as server:
        url = f"https://127.0.0.1:{server.port}"
        yield server, write_kubeconfig(folder / "main.kubeconfig", url, pki, "admintoken")


@contextmanager
def aggregated_server(command, folder, kubeconfig):
    port = free_port()
    with (folder / "aggregated.log").open("wb") as log:
        process = subprocess.Popen([*command, *aggregated_flags(port, kubeconfig)], stdout=log, stderr=log, cwd=ROOT)
    try:
        yield port
    finally:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(30)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def register(server, port):
    assert server.call("POST", SERVICES, loopback_service("api", port))[0] == 201
    for version, priority in (("v1alpha1", 15), ("v1beta1", 20)):
        document = api_service(GROUP, version, "api", port, priority=priority)
        name = document["metadata"]["name"]
        assert server.call("POST", API_SERVICES, document)[0] == 201
        until(lambda name=name: is_available(server, name))


def is_available(server, name):
    found = server.call("GET", f"{API_SERVICES}/{name}")[1]
    conditions = found.get("status", {}).get("conditions") or ()
    return any(each["type"] == "Available" and each["status"] == "True" for each in conditions)


def flunder(name, **spec):
    head = {"apiVersion": f"{GROUP}/v1alpha1", "kind": "Flunder", "metadata": {"name": name, "labels": {"a": "b"}}}
    return json.dumps({**head, "spec": spec})


def session(server, kubectl):
    """What a user does with flunders."""
    # Both versions: the newer one is shown once it is known, and kubectl keeps what it saw then.
    until(lambda: f"{GROUP}/v1beta1" in kubectl("api-resources", f"--api-group={GROUP}"))
    kubectl("apply", "-f", "-", stdin=flunder("one", reference="two"))
    kubectl("apply", "-f", "-", stdin=flunder("one", reference="three"))
    kubectl("apply", "--server-side", "-f", "-", stdin=flunder("two", reference="one"))
    beta = json.loads(kubectl("get", f"flunders.v1beta1.{GROUP}", "one", "-o", "json"))
    assert beta["spec"] == {"flunderReference": "three", "referenceType": "Flunder"}
    alpha = json.loads(kubectl("get", f"flunders.v1alpha1.{GROUP}", "one", "-o", "json"))
    assert alpha["spec"] == {"reference": "three", "referenceType": "Flunder"}
    assert kubectl("get", "flunders", "-l", "a=b", "-o", "name").split() == [
        f"flunder.{GROUP}/one",
        f"flunder.{GROUP}/two",
    ]
    assert "one" in kubectl("get", "flunders")
    until(lambda: f"apis/{GROUP}/v1beta1" in server.call("GET", "/openapi/v3")[1]["paths"])
    assert "flunderReference" in kubectl("explain", "flunder.spec", f"--api-version={GROUP}/v1beta1")
    fischer = {"apiVersion": f"{GROUP}/v1alpha1", "kind": "Fischer", "metadata": {"name": "f"}}
    kubectl("create", "-f", "-", stdin=json.dumps({**fischer, "disallowedFlunders": ["banned"]}))
    until(lambda: "may not be used" in kubectl("create", "-f", "-", stdin=flunder("banned"), fails=True))
    refused = kubectl("create", "-f", "-", stdin=flunder("wrong", referenceType="Fischer"), fails=True)
    assert "spec.fischerReference: Invalid value" in refused
    watching = kubectl.popen("get", "flunders", "--watch", "-o", "name")
    seen = [watching.stdout.readline().strip() for _ in range(2)]
    kubectl("create", "-f", "-", stdin=flunder("three", reference="one"))
    seen.append(watching.stdout.readline().strip())
    watching.kill()
    watching.communicate()
    assert seen == [f"flunder.{GROUP}/{name}" for name in ("one", "two", "three")]
    assert "forbidden" in kubectl("get", "flunders", "--as=jane", fails=True)
    until(lambda: any(GROUP in path for path in server.call("GET", "/openapi/v2")[1]["paths"]))
    kubectl("delete", "flunders", "--all")
    assert kubectl("get", "flunders", "-o", "name") == ""


@pytest.mark.skipif(not SAMPLE_APISERVER, reason="SAMPLE_APISERVER names no binary")
def test_a_server_of_go_behind_ours(tmp_path, etcd):
    command = [SAMPLE_APISERVER, f"--etcd-servers={','.join(etcd)}", f"--cert-dir={tmp_path}/certs"]
    with (
        main_server(PILOTHOUSE, tmp_path, etcd) as (server, kubeconfig),
        aggregated_server(command, tmp_path, kubeconfig) as port,
    ):
        register(server, port)
        session(server, Kubectl(find_client("kubectl", "KUBECTL"), kubeconfig))


@pytest.mark.skipif(not KUBE_APISERVER, reason="KUBE_APISERVER names no binary")
@pytest.mark.parametrize("store", ["embedded", "etcd"])
def test_ours_behind_kube_apiserver(tmp_path, etcd, store):
    command = [sys.executable, "-m", "examples.wardle", f"--data-dir={tmp_path}/wardle"]
    if store == "etcd":
        command.append(f"--etcd-servers={','.join(etcd)}")
    with (
        main_server(KUBE_APISERVER, tmp_path, etcd) as (server, kubeconfig),
        aggregated_server(command, tmp_path, kubeconfig) as port,
    ):
        register(server, port)
        session(server, Kubectl(find_client("kubectl", "KUBECTL"), kubeconfig))
