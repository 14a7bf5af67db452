"""Several servers on one etcd that do not serve the same APIs: what only one serves is asked of it."""

import asyncio
import json
import shutil
from contextlib import contextmanager
from http.client import HTTPSConnection

import pytest

from pilothouse.credentials.pki import ensure_pki
from pilothouse.storage.backends.etcd import EtcdBackend, Transport
from pilothouse.testing.etcd_process import EtcdCluster, find_etcd
from pilothouse.testing.in_process import InProcessServer
from pilothouse.testing.ports import free_port
from pilothouse.testing.waiting import until

pytestmark = pytest.mark.skipif(find_etcd() is None, reason="there is no etcd")

PATIENCE_SECONDS = 120.0
JOBS = "/apis/batch/v1/namespaces/default/jobs"
ALL = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
LABELS = {"batch.example.com/kind": "peer"}


@pytest.fixture(scope="module")
def etcd():
    with EtcdCluster() as cluster:
        yield cluster


@pytest.fixture(scope="module")
def certificates(tmp_path_factory):
    """What all servers of a cluster have in common."""
    folder = tmp_path_factory.mktemp("certificates")
    ensure_pki(folder, dns_names=["localhost", "kubernetes.default.svc"], ip_addresses=["127.0.0.1", "10.0.0.1"])
    return folder / "pki"


@pytest.fixture(scope="module")
def start(etcd, certificates, tmp_path_factory):
    @contextmanager
    def starting(name, *flags):
        folder, port = tmp_path_factory.mktemp(name), free_port()
        shutil.copytree(certificates, folder / "pki")
        with InProcessServer(
            f"--etcd-servers={','.join(etcd.urls)}",
            f"--hostname-override={name}",
            f"--peer-ca-file={certificates / 'ca.crt'}",
            "--peer-advertise-ip=127.0.0.1",
            f"--peer-advertise-port={port}",
            f"--secure-port={port}",
            *flags,
            data_dir=folder,
        ) as server:
            yield server

    return starting


@pytest.fixture(scope="module")
def full(start):
    with start("full") as server:
        yield server


@pytest.fixture(scope="module")
def lacking(start, full):
    """A server without Jobs, which has found its peer."""
    with start("lacking", "--runtime-config=batch/v1=false") as server:
        until(lambda: server.call("GET", JOBS).status == 200)
        yield server


def job(name):
    template = {"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]}}
    return {"metadata": {"name": name, "labels": LABELS}, "spec": {"template": template}}


def groups(server, accept=ALL):
    document = server.call("GET", "/apis", headers={"Accept": accept}).json
    return {item["metadata"]["name"]: item for item in document["items"]}


def test_what_a_peer_serves_is_asked_of_it(full, lacking):
    created = lacking.call("POST", JOBS, job("made"))
    assert created.status == 201, created.body
    assert full.call("GET", f"{JOBS}/made").json == created.json
    patch = {"metadata": {"annotations": {"a": "b"}}}
    merge = {"Content-Type": "application/merge-patch+json"}
    patched = lacking.call("PATCH", f"{JOBS}/made", json.dumps(patch), merge)
    assert patched.json["metadata"]["annotations"] == {"a": "b"}
    assert lacking.call("GET", "/apis/batch/v1/jobs").json["items"]
    assert lacking.call("DELETE", f"{JOBS}/made").status == 200


def test_a_watch_goes_through(full, lacking):
    version = lacking.call("GET", JOBS).json["metadata"]["resourceVersion"]
    connection = HTTPSConnection("127.0.0.1", lacking.port, timeout=PATIENCE_SECONDS, context=lacking.ssl_context())
    connection.request("GET", f"{JOBS}?watch=1&resourceVersion={version}")
    answer = connection.getresponse()
    full.call("POST", JOBS, job("watched"))
    event = json.loads(answer.readline())
    connection.close()
    assert (event["type"], event["object"]["metadata"]["name"]) == ("ADDED", "watched")


def test_the_peer_knows_who_asks(full, lacking):
    refused = lacking.call("GET", JOBS, headers={"Impersonate-User": "nobody"})
    assert refused.status == 403
    lacking.call("POST", JOBS, job("mine"))
    managers = full.call("GET", f"{JOBS}/mine").json["metadata"]["managedFields"]
    assert len(managers) == 1
    review = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}
    own = lacking.call("POST", "/apis/authentication.k8s.io/v1/selfsubjectreviews", review)
    assert "system:masters" in own.json["status"]["userInfo"]["groups"]


def test_what_came_from_a_peer_is_not_passed_on(lacking):
    assert lacking.call("GET", JOBS, headers={"X-Kubernetes-Peer-Proxied": "true"}).status == 404


def test_what_nobody_serves_is_not_found(lacking):
    assert lacking.call("GET", "/apis/batch/v9/jobs").status == 404


def test_discovery_lists_what_all_serve(full, lacking):
    resources = {each["resource"] for version in groups(lacking)["batch"]["versions"] for each in version["resources"]}
    assert {"jobs", "cronjobs"} <= resources
    assert "batch" not in groups(lacking, f"{ALL};profile=nopeer")
    assert groups(lacking) == groups(full)
    legacy = lacking.call("GET", "/apis").json
    assert "batch" not in {group["name"] for group in legacy["groups"]}


def test_what_is_defined_is_served_by_each(full, lacking):
    group = "peers.example.com"
    schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    full.establish(
        {
            "metadata": {"name": f"sails.{group}"},
            "spec": {
                "group": group,
                "scope": "Namespaced",
                "names": {"plural": "sails", "kind": "Sail"},
                "versions": [{"name": "v1", "served": True, "storage": True, "schema": schema}],
            },
        }
    )
    sails = f"/apis/{group}/v1/namespaces/default/sails"
    until(lambda: lacking.call("GET", sails).status == 200)
    assert lacking.call("GET", sails, headers={"X-Kubernetes-Peer-Proxied": "true"}).status == 200
    assert group in groups(lacking)


def test_metrics_and_health(lacking):
    page = lacking.call("GET", "/metrics").body.decode()
    for words in (
        'apiserver_rerouted_request_total{code="201",group="batch",version="v1",resource="jobs"}',
        'apiserver_rerouted_request_total{code="200",group="",version="",resource=""} ',
        "aggregator_discovery_peer_aggregated_cache_misses_total ",
        "aggregator_discovery_nopeer_requests_total ",
    ):
        assert words in page
    checks = lacking.call("GET", "/readyz?verbose").body.decode()
    for name in ("mixed-version-proxy-handler", "local-discovery-cache-sync", "peer-discovery-workers"):
        assert f"[+]poststarthook/{name} ok" in checks


def test_a_peer_that_leaves_is_forgotten(start, lacking):
    """Of two peers that serve Jobs one remains; with an API that only the leaving one serves, nobody serves it."""
    group, alpha = "internal.apiserver.k8s.io", "/apis/internal.apiserver.k8s.io/v1alpha1/storageversions"
    with start("third", "--runtime-config=api/all=true"):
        until(lambda: lacking.call("GET", alpha).status == 200)
        assert group in groups(lacking)
    until(lambda: lacking.call("GET", alpha).status == 404)
    assert group not in groups(lacking)
    assert lacking.call("GET", JOBS).status == 200


def test_a_peer_that_died_is_told_of(full, lacking, etcd):
    """Its Lease lasts for an hour, its address for seconds: until somebody collects it, nobody can answer."""
    leases = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases"
    labels = {"apiserver.kubernetes.io/identity": "kube-apiserver"}
    ghost = {"metadata": {"name": "apiserver-ghost", "labels": labels}, "spec": {"holderIdentity": "ghost"}}
    assert full.call("POST", leases, ghost).status == 201
    until(lambda: b'sync_errors_total{type="hostport_resolution"}' in lacking.call("GET", "/metrics").body)
    assert lacking.call("GET", JOBS).status == 200


def test_a_peer_without_an_address_cannot_be_asked(full, lacking, etcd):
    """The last test: the address comes back only when it is renewed."""

    async def drop():
        backend = EtcdBackend(Transport(etcd.urls))
        await backend.open()
        try:
            for item in (await backend.list("/registry/peerserverleases/")).items:
                await backend.delete(item.key, item.revision)
        finally:
            await backend.close()

    def refused():
        asyncio.run(drop())
        answer = lacking.call("GET", JOBS)
        return answer.json if answer.status == 503 else None

    status = until(refused)
    assert (status["kind"], status["reason"]) == ("Status", "ServiceUnavailable")
    assert status["message"] == "Error getting ip and port info of the remote server while proxying"
