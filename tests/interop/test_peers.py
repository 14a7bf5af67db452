"""kube-apiserver and Pilothouse as peers on one etcd: each is asked for what the other one does not serve."""

import os
import sys
from pathlib import Path

import pytest

from pilothouse.credentials.pki import Pki, ensure_pki
from pilothouse.testing.etcd_process import EtcdCluster
from pilothouse.testing.waiting import until

sys.path.insert(0, str(Path(__file__).parent))
from servers import KUBE_APISERVER, PILOTHOUSE, ApiServer, free_port

pytestmark = pytest.mark.skipif(
    not (KUBE_APISERVER and os.environ.get("ETCD")), reason="KUBE_APISERVER and ETCD name no binaries"
)

NAMES = ["localhost", "kubernetes.default.svc"]
AGGREGATED = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"


def peer(binary, folder, etcd, off, *flags):
    """A server that serves one group version less."""
    pki, port = Pki(folder / "pki"), free_port()
    return ApiServer(
        binary,
        folder,
        etcd.urls,
        f"--runtime-config={off}=false",
        f"--peer-ca-file={pki.ca_cert}",
        "--advertise-address=127.0.0.1",  # kube-apiserver 1.37 does not look at --peer-advertise-ip
        "--endpoint-reconciler-type=none",
        f"--proxy-client-cert-file={pki.front_proxy_client_cert}",
        f"--proxy-client-key-file={pki.front_proxy_client_key}",
        f"--requestheader-client-ca-file={pki.front_proxy_ca_cert}",
        "--requestheader-allowed-names=front-proxy-client",
        "--requestheader-username-headers=X-Remote-User",
        "--requestheader-group-headers=X-Remote-Group",
        "--requestheader-extra-headers-prefix=X-Remote-Extra-",
        *flags,
        port=port,
    )


def groups(server):
    return {item["metadata"]["name"] for item in server.call("GET", "/apis", accept=AGGREGATED)[1]["items"]}


def test_each_is_asked_for_what_the_other_does_not_serve(tmp_path):
    ensure_pki(tmp_path, dns_names=NAMES, ip_addresses=["127.0.0.1", "10.0.0.1"])
    budgets = "/apis/policy/v1/namespaces/default/poddisruptionbudgets"
    jobs = "/apis/batch/v1/namespaces/default/cronjobs"
    template = {"spec": {"template": {"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]}}}}
    job = {"metadata": {"name": "j"}, "spec": {"schedule": "1 1 1 1 *", "jobTemplate": template}}
    budget = {"metadata": {"name": "b"}, "spec": {"minAvailable": 1}}
    with (
        EtcdCluster() as etcd,
        peer(KUBE_APISERVER, tmp_path, etcd, "policy/v1") as theirs,
        peer(PILOTHOUSE, tmp_path, etcd, "batch/v1", "--hostname-override=another") as ours,
    ):
        until(lambda: ours.call("GET", jobs)[0] == 200)
        until(lambda: theirs.call("GET", budgets)[0] == 200)
        status, made = ours.call("POST", jobs, job)
        assert (status, theirs.call("GET", f"{jobs}/j")[1]) == (201, made)
        status, made = theirs.call("POST", budgets, budget)
        assert (status, ours.call("GET", f"{budgets}/b")[1]) == (201, made)
        until(lambda: groups(ours) == groups(theirs))
        assert {"batch", "policy"} <= groups(ours)
