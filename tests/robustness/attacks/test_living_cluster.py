"""Objects that cost whenever something else changes, in a server with all controllers, a scheduler and a node.

Somebody who may edit one namespace has them all, but for Endpoints and the status of jobs.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from tests.robustness.attacks.conftest import Victim

CORE = "/api/v1/namespaces"
MERGE = "application/merge-patch+json"
VALUES = [f"v{number}" for number in range(5_000)]
UNMATCHED = {"matchExpressions": [{"key": "x", "operator": "In", "values": VALUES}]}
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
TEMPLATE = {"metadata": {"labels": {"a": "b", "x": "v1"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
HOST = "kubernetes.io/hostname"


@pytest.fixture(scope="module")
def living(launch_victim: Callable[..., Victim]) -> Victim:
    """A server whose cluster has run a pod: what is imported for the first one is no part of an attack."""
    started = launch_victim("--controllers=*", "--scheduler", "--simulate-nodes=1")
    run_pod(started, settle_in(started, "warm"), "first")
    return started


@pytest.fixture
def namespace(living: Victim, request: pytest.FixtureRequest) -> str:
    """A namespace of the test's own."""
    return settle_in(living, request.node.name.replace("_", "-"))


def settle_in(victim: Victim, name: str) -> str:
    """A namespace with an account for its pods."""
    victim.server.namespace(name)
    while victim.call("GET", f"{CORE}/{name}/serviceaccounts/default").status != 200:
        assert victim.server.process.poll() is None
    return name


def create(victim: Victim, path: str, version: str, kind: str, name: str, **fields: Any) -> None:
    body = {"apiVersion": version, "kind": kind, "metadata": {"name": name, "labels": {"a": "b"}}, **fields}
    answer = victim.call("POST", path, body)
    assert answer.status == 201, answer.body[:500]


def run_pod(victim: Victim, namespace: str, name: str, **spec: Any) -> None:
    """Create a pod, and wait until it is scheduled and runs."""
    given = {"containers": [{"name": "c", "image": "i"}], **spec}
    create(victim, f"{CORE}/{namespace}/pods", "v1", "Pod", name, spec=given)
    while victim.call("GET", f"{CORE}/{namespace}/pods/{name}").json["status"].get("phase") != "Running":
        assert victim.server.process.poll() is None


def test_budgets_of_many_values(living: Victim, namespace: str) -> None:
    for number in range(30):
        path = f"/apis/policy/v1/namespaces/{namespace}/poddisruptionbudgets"
        spec = {"minAvailable": 1, "selector": UNMATCHED}
        create(living, path, "policy/v1", "PodDisruptionBudget", f"b{number}", spec=spec)
    with living.attacked("pods beside 30 budgets of 5,000 values"):
        for number in range(3):
            run_pod(living, namespace, f"p{number}")


def test_replica_sets_of_many_values(living: Victim, namespace: str) -> None:
    for number in range(30):
        path = f"/apis/apps/v1/namespaces/{namespace}/replicasets"
        spec = {"replicas": 0, "selector": UNMATCHED, "template": TEMPLATE}
        create(living, path, "apps/v1", "ReplicaSet", f"r{number}", spec=spec)
    with living.attacked("pods beside 30 replica sets of 5,000 values"):
        for number in range(3):
            run_pod(living, namespace, f"p{number}")


def test_services_of_many_labels(living: Victim, namespace: str) -> None:
    selector = {"a": "b", **{f"x{number}": "y" for number in range(3_000)}}
    with living.attacked("10 services that select by 3,000 labels"):
        for number in range(10):
            spec = {"ports": [{"port": 80}], "selector": selector}
            create(living, f"{CORE}/{namespace}/services", "v1", "Service", f"s{number}", spec=spec)
        run_pod(living, namespace, "p")


def test_mirrored_endpoints_of_many_ports(living: Victim, namespace: str) -> None:
    spec = {"ports": [{"port": 80}]}
    create(living, f"{CORE}/{namespace}/services", "v1", "Service", "mirrored", spec=spec)
    addresses = [{"ip": f"10.0.{number >> 8}.{number & 255}"} for number in range(1_000)]
    ports = [{"name": f"p{number}", "port": number + 1} for number in range(1_000)]
    subsets = [{"addresses": addresses, "ports": ports}]
    slices = f"/apis/discovery.k8s.io/v1/namespaces/{namespace}/endpointslices"
    with living.attacked("1,000 addresses with 1,000 ports"):
        create(living, f"{CORE}/{namespace}/endpoints", "v1", "Endpoints", "mirrored", subsets=subsets)
        while sum(len(each["endpoints"]) for each in living.call("GET", slices).json["items"]) < len(addresses):
            assert living.server.process.poll() is None


def test_a_job_of_many_indexes(living: Victim, namespace: str) -> None:
    jobs = f"/apis/batch/v1/namespaces/{namespace}/jobs"
    template = {"spec": {**TEMPLATE["spec"], "restartPolicy": "Never", "schedulerName": "nobody"}}
    spec = {"completions": 100_000, "parallelism": 1, "completionMode": "Indexed", "template": template}
    create(living, jobs, "batch/v1", "Job", "indexed", spec=spec)
    status = {"completedIndexes": ",".join(map(str, range(1, 99_999, 2))), "succeeded": 49_999}
    with living.attacked("a job of which every second index has ended"):
        assert living.call("PATCH", f"{jobs}/indexed/status", {"status": status}, MERGE).status == 200
        for parallelism in (2, 3):
            patch = {"spec": {"parallelism": parallelism}}
            assert living.call("PATCH", f"{jobs}/indexed", patch, MERGE).status == 200
            while living.call("GET", f"{jobs}/indexed").json["status"].get("active") != parallelism:
                assert living.server.process.poll() is None


def terms(count: int) -> list[dict[str, Any]]:
    return [{"topologyKey": HOST, "labelSelector": {"matchLabels": {"z": f"v{number}"}}} for number in range(count)]


def test_pods_of_many_terms(living: Victim, namespace: str) -> None:
    for number in range(40):
        run_pod(living, namespace, f"p{number}")
    preferred = [{"weight": 1, "podAffinityTerm": term} for term in terms(8_000)]
    with living.attacked("pods of 8,000 terms beside 40 others", allowance=160 << 20):
        run_pod(living, namespace, "far", affinity={"podAntiAffinity": {PREFERRED: preferred}})
        run_pod(living, namespace, "further", affinity={"podAntiAffinity": {REQUIRED: terms(8_000)}})
        run_pod(living, namespace, "plain")


def test_a_pod_of_many_containers(living: Victim, namespace: str) -> None:
    containers = [{"name": f"c{number}", "image": "i"} for number in range(2_000)]
    with living.attacked("a pod of 2,000 containers runs", allowance=160 << 20):
        run_pod(living, namespace, "crowded", containers=containers)


def long_template() -> dict[str, Any]:
    """The template of pods that nobody schedules, half a megabyte."""
    variables = [{"name": f"V{number}", "value": "x"} for number in range(11_000)]
    spec = {"containers": [{"name": "c", "image": "i", "env": variables}], "schedulerName": "nobody"}
    return {"metadata": {"labels": {"a": "b"}}, "spec": spec}


def test_workloads_of_long_templates(living: Victim, namespace: str) -> None:
    """They are compared, named and written down, and no copy is made for each of many pods."""
    apps, spec = f"/apis/apps/v1/namespaces/{namespace}", {"selector": {"matchLabels": {"a": "b"}}}
    template, kinds = long_template(), ("Deployment", "StatefulSet", "DaemonSet")
    with living.attacked("workloads of half a megabyte", allowance=256 << 20):
        for kind, more in zip(kinds, ({"replicas": 0}, {"replicas": 30, "serviceName": "s"}, {}), strict=True):
            given = {**spec, **more, "template": template}
            create(living, f"{apps}/{kind.lower()}s", "apps/v1", kind, "long", spec=given)
        for kind in kinds:
            path = f"{apps}/{kind.lower()}s/long"
            while living.call("GET", path).json["status"].get("observedGeneration") != 1:
                assert living.server.process.poll() is None
        for kind in kinds:
            assert living.call("DELETE", f"{apps}/{kind.lower()}s/long").status == 200


def devices(count: int, name: str = "pool") -> dict[str, Any]:
    pool = {"name": name, "generation": 1, "resourceSliceCount": 1}
    made = [{"name": f"d{number}", "attributes": {"k": {"int": number}}} for number in range(count)]
    return {"driver": "example.com", "allNodes": True, "pool": pool, "devices": made}


def test_a_claim_that_nothing_meets(living: Victim, namespace: str) -> None:
    """All combinations of sixteen devices of 64 are in vain, if there is nothing for the second request."""
    group, version = "/apis/resource.k8s.io/v1", "resource.k8s.io/v1"
    create(living, f"{group}/resourceslices", version, "ResourceSlice", "slice", spec=devices(64))
    create(living, f"{group}/deviceclasses", version, "DeviceClass", "any", spec={})
    many = {"name": "many", "exactly": {"deviceClassName": "any", "count": 16}}
    selector = {"cel": {"expression": "device.attributes['example.com'].k == 99"}}
    none = {"name": "none", "exactly": {"deviceClassName": "any", "selectors": [selector]}}
    path = f"{group}/namespaces/{namespace}/resourceclaims"
    with living.attacked("a claim that nothing meets", allowance=96 << 20):
        create(living, path, version, "ResourceClaim", "vain", spec={"devices": {"requests": [many, none]}})
        asked = [{"name": "x", "resourceClaimName": "vain"}]
        spec = {"containers": [{"name": "c", "image": "i"}], "resourceClaims": asked}
        create(living, f"{CORE}/{namespace}/pods", "v1", "Pod", "waiting", spec=spec)
        conditions: Any = ()
        while "timed out" not in str(conditions) and "cannot allocate" not in str(conditions):
            assert living.server.process.poll() is None
            told = living.call("GET", f"{CORE}/{namespace}/pods/waiting").json["status"]
            conditions = told.get("conditions", ())
        run_pod(living, namespace, "other")


def test_selectors_that_cost_as_much_as_they_may(living: Victim, namespace: str) -> None:
    """Ten of them for each request, asked about each device: the scheduler was busy for hours with one claim."""
    group, version = "/apis/resource.k8s.io/v1", "resource.k8s.io/v1"
    create(living, f"{group}/resourceslices", version, "ResourceSlice", "costly", spec=devices(128, "costly"))
    create(living, f"{group}/deviceclasses", version, "DeviceClass", "costly", spec={})
    digits = "[1, 2, 3, 4, 5, 6, 7, 8, 9, 10]"
    text = f"{digits}.all(a, {digits}.all(b, {digits}.all(c, {digits}.all(d, a + b + c + d < 99))))"
    costly = [{"cel": {"expression": f"{text.replace('99', str(100 + number))}"}} for number in range(10)]
    last = {"cel": {"expression": "device.attributes['example.com'].k == 9999"}}
    asked = {"deviceClassName": "costly", "selectors": [*costly, last]}
    requests = [{"name": f"r{number}", "exactly": asked} for number in range(32)]
    path = f"{group}/namespaces/{namespace}/resourceclaims"
    with living.attacked("selectors that cost as much as they may", allowance=96 << 20):
        create(living, path, version, "ResourceClaim", "costly", spec={"devices": {"requests": requests}})
        claims = [{"name": "x", "resourceClaimName": "costly"}]
        spec = {"containers": [{"name": "c", "image": "i"}], "resourceClaims": claims}
        create(living, f"{CORE}/{namespace}/pods", "v1", "Pod", "waiting", spec=spec)
        conditions: Any = ()
        while "timed out" not in str(conditions):
            assert living.server.process.poll() is None
            told = living.call("GET", f"{CORE}/{namespace}/pods/waiting").json["status"]
            conditions = told.get("conditions", ())
        run_pod(living, namespace, "other")


def test_pods_of_many_ports_on_the_host(living: Victim, namespace: str) -> None:
    """Each of one pod was held against each of the pods that are there."""
    with living.attacked("pods of 6,000 ports on the host", allowance=96 << 20):
        for name, address in (("one", "10.0.0.1"), ("two", "10.0.0.2")):
            numbers = range(1, 6_001)
            ports = [{"containerPort": number, "hostPort": number, "hostIP": address} for number in numbers]
            run_pod(living, namespace, name, containers=[{"name": "c", "image": "i", "ports": ports}])


def test_very_many_pods_that_fit_nowhere(living: Victim, namespace: str) -> None:
    """Each was tried before the pods of others, and again whenever any pod went; the log had a line of each try."""
    path = f"/apis/apps/v1/namespaces/{namespace}/deployments"
    template = {**TEMPLATE, "spec": {**TEMPLATE["spec"], "nodeSelector": {"no": "where"}}}
    spec = {"replicas": 2_000_000_000, "selector": {"matchLabels": {"a": "b"}}, "template": template}
    other = settle_in(living, "beside-pods-that-fit-nowhere")
    with living.attacked("two thousand million replicas that fit nowhere", allowance=192 << 20):
        create(living, path, "apps/v1", "Deployment", "many", spec=spec)
        for number in range(10):
            run_pod(living, other, f"p{number}")
            assert living.call("DELETE", f"{CORE}/{other}/pods/p{number}?gracePeriodSeconds=0").status == 200
    assert living.call("DELETE", f"{path}/many?propagationPolicy=Background").status == 200


def test_services_that_select_the_same_pods(living: Victim, namespace: str) -> None:
    """All were held against each pod that changed, for both kinds of endpoints."""
    for number in range(600):
        spec = {"ports": [{"port": 80}], "selector": {"a": "b"}, "clusterIP": "None"}
        create(living, f"{CORE}/{namespace}/services", "v1", "Service", f"s{number}", spec=spec)
    with living.attacked("600 services of the same pods", allowance=96 << 20):
        for number in range(5):
            run_pod(living, namespace, f"p{number}")
