"""Objects that are easy to write and hard to work on, in a server that runs the controllers itself."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest
from tests.robustness.attacks.conftest import Victim

CRON_JOBS = "/apis/batch/v1/namespaces/default/cronjobs"
CORE = "/api/v1/namespaces/default"
SLICES = "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices"
MERGE = "application/merge-patch+json"
PORTS = 90
PODS = 150
DEPENDENTS = 60
OWNERS = 300


@pytest.fixture(scope="module")
def managed(launch_victim: Callable[..., Victim]) -> Victim:
    """A server with the controllers that are attacked."""
    controllers = "cronjob,endpoints-controller,endpointslice-controller,garbage-collector-controller"
    return launch_victim(f"--controllers={controllers}")


def worked_on(victim: Victim) -> int:
    """How many cron jobs the controller has looked at."""
    page = victim.call("GET", "/metrics").body.decode()
    found = re.search(r'^workqueue_work_duration_seconds_count\{name="cronjob\S*"\} (\d+)', page, re.MULTILINE)
    return int(found[1]) if found else 0


def test_a_schedule_of_many_times(managed: Victim) -> None:
    job = {"template": {"spec": {"containers": [{"name": "c", "image": "i"}], "restartPolicy": "Never"}}}
    spec = {"schedule": ",".join(["1-59/2"] * 75_000) + " 1 1 1 *", "jobTemplate": {"spec": job}}
    cron_job = {"apiVersion": "batch/v1", "kind": "CronJob", "metadata": {"name": "often"}, "spec": spec}
    with managed.attacked("a schedule of 75,000 times"):
        assert managed.call("POST", CRON_JOBS, cron_job).status == 201
        while not worked_on(managed):
            assert managed.server.process.poll() is None


def test_a_service_that_names_many_ports(managed: Victim) -> None:
    """Each of its ports is looked for among those of each pod, and all of that again whenever a pod changes."""
    managed.server.namespace("default")
    named = [{"name": f"p{number}", "containerPort": 1000 + number} for number in range(PORTS)]
    spec = {"nodeName": "somewhere", "containers": [{"name": "c", "image": "i", "ports": named}]}
    for number in range(PODS):
        pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": f"p{number}", "labels": {"a": "b"}}}
        assert managed.call("POST", f"{CORE}/pods", {**pod, "spec": spec}).status == 201
        address = f"10.1.{number >> 8}.{number & 255}"
        status = {"phase": "Running", "podIP": address, "podIPs": [{"ip": address}]}
        assert managed.call("PATCH", f"{CORE}/pods/p{number}/status", {"status": status}, MERGE).status == 200
    ports = [{"name": f"p{number}", "port": number + 1, "targetPort": f"p{number}"} for number in range(PORTS)]
    service = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "named"}}
    made = {**service, "spec": {"selector": {"a": "b"}, "ports": ports}}
    with managed.attacked(f"a service of {PORTS} named ports for {PODS} pods"):
        assert managed.call("POST", f"{CORE}/services", made).status == 201
        await_endpoints(managed, PODS)
        assert managed.call("DELETE", f"{CORE}/pods/p0?gracePeriodSeconds=0").status == 200
        await_endpoints(managed, PODS - 1)


def await_endpoints(victim: Victim, count: int) -> None:
    """Wait until both controllers have told of so many."""
    while True:
        assert victim.server.process.poll() is None
        told = victim.call("GET", f"{CORE}/endpoints/named")
        subsets = told.json.get("subsets") or [] if told.status == 200 else []
        slices = victim.call("GET", f"{SLICES}?labelSelector=kubernetes.io/service-name%3Dnamed").json["items"]
        found = [sum(len(each.get("notReadyAddresses") or ()) for each in subsets)]
        found.append(sum(len(each.get("endpoints") or ()) for each in slices))
        if found == [count, count]:
            assert [len(each["ports"]) for each in (*subsets, *slices)] == [PORTS] * (1 + len(slices))
            return


def owned_map(name: str, owners: int) -> dict[str, Any]:
    """A config map of owners that do not exist."""
    references = [
        {"apiVersion": "v1", "kind": "ConfigMap", "name": f"o{number}", "uid": f"{name}-{number}"}
        for number in range(owners)
    ]
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "ownerReferences": references}}


def reads(victim: Victim) -> int:
    """How many config maps were asked for and not found."""
    page = victim.call("GET", "/metrics").body.decode()
    counted = r'^apiserver_request_total\{verb="GET",.*resource="configmaps",.*code="404"\} (\d+)'
    return sum(map(int, re.findall(counted, page, re.MULTILINE)))


def test_owners_that_do_not_exist(managed: Victim) -> None:
    """Each is asked for, at a pace; what has one such owner is not behind all that have many."""
    before = reads(managed)
    with managed.attacked(f"{DEPENDENTS} dependents of {OWNERS} owners that do not exist"):
        for number in range(DEPENDENTS):
            assert managed.call("POST", f"{CORE}/configmaps", owned_map(f"many{number}", OWNERS)).status == 201
        assert managed.call("POST", f"{CORE}/configmaps", owned_map("one", 1)).status == 201
        while managed.call("GET", f"{CORE}/configmaps/one").status == 200:
            assert managed.server.process.poll() is None
    assert reads(managed) - before < DEPENDENTS * OWNERS / 2
    assert managed.call("GET", f"{CORE}/configmaps/many{DEPENDENTS - 1}").status == 200
    assert managed.call("DELETE", f"{CORE}/configmaps").status == 200
