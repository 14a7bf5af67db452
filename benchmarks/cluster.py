"""The load of a large cluster, made smaller by a factor: ``cluster.py [--factor 0.02] [--rate 1] [--seconds 60]``.

With a factor of 1 there are 10,000 nodes that renew their lease and report their status every 10 s, 150,000 pods,
20,000 services and as many slices of endpoints, 1,000 custom resource definitions, 10,000 watches (pods of a node,
services, slices), and a restart of 2,000 pods a minute. Clients behave as kubelets and controllers do: leases are
replaced, statuses patched, a restart deletes a pod, creates the next, binds it and reports that it runs. Half way all
watches are cut off and come back at once, from where they were. In the end the server is started again on what it has.
With a rate below 1 all that is there, and changes come so much more slowly than they would.

Printed are latencies against the objectives of Kubernetes (99 of 100 writes within 1 s, reads in a namespace within
1 s, in a cluster within 30 s), how late a probe is answered, how long the event loop was held, memory and processor
time. The exit code is 1 when an objective is missed or a request failed.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import re
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterable
from pathlib import Path

import crds
import processor
import subjects
import uvloop
from kube_client import Api, Latencies

from pilothouse.machinery.objects import Object

CORE = "/api/v1"
LEASES = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases"
SLICES = "/apis/discovery.k8s.io/v1/namespaces/{}/endpointslices"
MERGE, STRATEGIC = "application/merge-patch+json", "application/strategic-merge-patch+json"
OBJECTIVES = {"write": 1.0, "read": 1.0, "list of a namespace": 1.0, "list of the cluster": 30.0}
PERIOD_SECONDS = 10.0
OPEN_SECONDS = 1_200
"""By then all watches are open, however busy the machine is."""


class Size:
    """How many there are of everything."""

    def __init__(self, factor: float, rate: float = 1.0) -> None:
        def scaled(number: int) -> int:
            return max(1, round(number * factor))

        self.nodes, self.pods, self.services = scaled(10_000), scaled(150_000), scaled(20_000)
        self.definitions, self.watches = scaled(1_000), scaled(10_000)
        self.restarts_a_second = 2_000 / 60 * factor * rate
        self.reports_a_second = self.nodes / PERIOD_SECONDS * rate
        """Leases renewed a second, and statuses of nodes reported."""
        self.namespaces = max(2, round(500 * factor))

    def __str__(self) -> str:
        return (
            f"{self.nodes:,} nodes, {self.pods:,} pods, {self.services:,} services and slices, "
            f"{self.definitions:,} definitions, {self.watches:,} watches, "
            f"{self.restarts_a_second * 60:,.0f} restarts a minute, {self.reports_a_second:,.0f} reports a second"
        )


class Cluster:
    """The clients of one cluster."""

    def __init__(self, api: Api, size: Size) -> None:
        self._api, self._size = api, size
        self._leases: list[Object] = []
        self._renewing: set[int] = set()
        self._pods: list[tuple[str, str]] = []
        self._made = 0
        self._watches: list[asyncio.Task[None]] = []
        self._open = 0
        self._slices_updated = 0
        self.events = 0

    # What there is

    async def populate(self) -> float:
        """Create everything; objects a second."""
        size, started = self._size, time.perf_counter()
        await self._all(self._definition(number) for number in range(size.definitions))
        await self._all(self._namespace(number) for number in range(size.namespaces))
        await self._all(self._node(number) for number in range(size.nodes))
        await self._all(self._service(number) for number in range(size.services))
        await self._all(self._new_pod(number % size.nodes) for number in range(size.pods))
        made = size.definitions + size.namespaces * 2 + size.nodes * 2 + size.services * 2 + size.pods
        return made / (time.perf_counter() - started)

    async def find(self) -> float:
        """Take over what an earlier run has created; objects a second."""
        started = time.perf_counter()
        self._leases = [lease async for lease in self._api.items("lists at the start", LEASES)]
        pods = self._api.items("lists at the start", f"{CORE}/pods")
        self._pods = [(pod["metadata"]["namespace"], pod["metadata"]["name"]) async for pod in pods]
        self._made = max(int(name.rpartition("-")[2]) for _, name in self._pods)
        return (len(self._leases) + len(self._pods)) / (time.perf_counter() - started)

    async def _all(self, steps: Iterable[Awaitable[None]]) -> None:
        """All steps, some hundred at a time."""
        waiting: set[asyncio.Future[None]] = set()
        for step in steps:
            waiting.add(asyncio.ensure_future(step))
            if len(waiting) >= 200:
                done, waiting = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
                for each in done:
                    each.result()
        await asyncio.gather(*waiting)

    async def _create(self, path: str, obj: Object) -> Object:
        status, answer = await self._api.call("creation at the start", "POST", path, obj)
        if status != 201:
            raise SystemExit(f"POST {path}: {status} {answer}")
        found: Object = answer
        return found

    async def _definition(self, number: int) -> None:
        await self._create(crds.CRDS, crds.definition(number))

    async def _namespace(self, number: int) -> None:
        await self._create(f"{CORE}/namespaces", {"metadata": {"name": f"ns-{number}"}})
        await self._create(f"{CORE}/namespaces/ns-{number}/serviceaccounts", {"metadata": {"name": "default"}})

    async def _node(self, number: int) -> None:
        labels = {"kubernetes.io/hostname": f"node-{number}", "topology.kubernetes.io/zone": f"zone-{number % 3}"}
        await self._create(f"{CORE}/nodes", {"metadata": {"name": f"node-{number}", "labels": labels}})
        spec = {"holderIdentity": f"node-{number}", "leaseDurationSeconds": 40, "renewTime": _now()}
        self._leases.append(await self._create(LEASES, {"metadata": {"name": f"node-{number}"}, "spec": spec}))

    async def _service(self, number: int) -> None:
        space, name = f"ns-{number % self._size.namespaces}", f"service-{number}"
        service = {"metadata": {"name": name}, "spec": {"selector": {"app": name}, "ports": [{"port": 80}]}}
        await self._create(f"{CORE}/namespaces/{space}/services", service)
        endpoints = [{"addresses": [f"10.1.{at}.1"], "nodeName": f"node-{at}"} for at in range(5)]
        metadata = {"name": name, "labels": {"kubernetes.io/service-name": name}}
        ports = [{"port": 8080, "name": "http"}]
        slice_ = {"metadata": metadata, "addressType": "IPv4", "endpoints": endpoints, "ports": ports}
        await self._create(SLICES.format(space), slice_)

    async def _new_pod(self, node: int) -> None:
        self._made += 1
        space, name = f"ns-{self._made % self._size.namespaces}", f"pod-{self._made}"
        pod = a_pod(name, f"app-{self._made % 500}")
        pod["spec"]["nodeName"] = f"node-{node}"
        await self._create(f"{CORE}/namespaces/{space}/pods", pod)
        self._pods.append((space, name))

    # Watches

    async def open_watches(self) -> float:
        """Open all at once; seconds until all are."""
        started, wanted = time.perf_counter(), self._size.watches
        version = (await self._api.call("read", "GET", f"{CORE}/nodes?limit=1"))[1]["metadata"]["resourceVersion"]
        self._open, everybody = 0, asyncio.Event()

        def opened() -> None:
            self._open += 1
            if self._open == wanted:
                everybody.set()

        for number in range(wanted):
            path = f"{self._watched(number)}watch=1&resourceVersion={version}&allowWatchBookmarks=true"
            self._watches.append(asyncio.ensure_future(self._api.watch(path, self._count, opened)))
        await asyncio.wait_for(everybody.wait(), OPEN_SECONDS)
        return time.perf_counter() - started

    def _watched(self, number: int) -> str:
        """Most watch the pods of a node; services and slices are watched by everybody's proxy."""
        if number % 5 == 3:
            return f"{CORE}/services?"
        if number % 5 == 4:
            return "/apis/discovery.k8s.io/v1/endpointslices?"
        return f"{CORE}/pods?fieldSelector=spec.nodeName%3Dnode-{number % self._size.nodes}&"

    def _count(self, events: int) -> None:
        self.events += events

    async def cut_watches(self) -> None:
        """End all watches from this side."""
        for watch in self._watches:
            watch.cancel()
        await asyncio.gather(*self._watches, return_exceptions=True)
        self._watches.clear()

    # What goes on

    async def run(self, seconds: float) -> None:
        """Everything that happens in a cluster at rest, and a restart, for so long."""
        size = self._size
        await asyncio.gather(
            _paced(seconds, size.reports_a_second, self._renew),
            _paced(seconds, size.reports_a_second, self._report),
            _paced(seconds, size.restarts_a_second, self._restart),
            _paced(seconds, size.restarts_a_second, self._update_slice),
            _paced(seconds, 1.0, self._read_namespace),
            _paced(seconds, 0.2, self._read_cluster),
            _paced(seconds, 10.0, self._probe),
        )

    async def _renew(self, turn: int) -> None:
        number = turn % len(self._leases)
        if number in self._renewing:  # a kubelet waits for its own request
            return
        self._renewing.add(number)
        lease = self._leases[number]
        lease["spec"]["renewTime"] = _now()
        name = lease["metadata"]["name"]
        status, answer = await self._api.call("write", "PUT", f"{LEASES}/{name}", lease)
        if status == 200:
            self._leases[number] = answer
        self._renewing.discard(number)

    async def _report(self, turn: int) -> None:
        ready = {"type": "Ready", "status": "True", "reason": "KubeletReady", "lastHeartbeatTime": _now()[:19] + "Z"}
        path = f"{CORE}/nodes/node-{turn % self._size.nodes}/status"
        await self._api.call("write", "PATCH", path, {"status": {"conditions": [ready]}}, STRATEGIC)

    async def _restart(self, turn: int) -> None:
        space, name = self._pods.pop(turn % len(self._pods))
        await self._api.call("write", "DELETE", f"{CORE}/namespaces/{space}/pods/{name}?gracePeriodSeconds=0")
        self._made += 1
        name = f"pod-{self._made}"
        path = f"{CORE}/namespaces/{space}/pods"
        await self._api.call("write", "POST", path, a_pod(name, f"app-{self._made % 500}"))
        target = {"target": {"kind": "Node", "name": f"node-{turn % self._size.nodes}"}, "metadata": {"name": name}}
        await self._api.call("write", "POST", f"{path}/{name}/binding", target)
        running = {
            "status": {"phase": "Running", "podIP": "10.1.2.3", "conditions": [{"type": "Ready", "status": "True"}]}
        }
        await self._api.call("write", "PATCH", f"{path}/{name}/status", running, STRATEGIC)
        await self._api.call("read", "GET", f"{path}/{name}")
        self._pods.append((space, name))

    async def _update_slice(self, _turn: int) -> None:
        self._slices_updated += 1  # turns begin anew half way, and what is written twice changes nothing
        number = self._slices_updated % self._size.services
        space = f"ns-{number % self._size.namespaces}"
        change = {"metadata": {"annotations": {"turn": str(self._slices_updated)}}}
        await self._api.call("write", "PATCH", f"{SLICES.format(space)}/service-{number}", change, MERGE)

    async def _read_namespace(self, turn: int) -> None:
        space = f"ns-{turn % self._size.namespaces}"
        await self._api.call("list of a namespace", "GET", f"{CORE}/namespaces/{space}/pods")

    async def _read_cluster(self, turn: int) -> None:
        await self._api.call(
            "list of the cluster", "GET", f"{CORE}/{'nodes' if turn % 2 else 'pods'}?resourceVersion=0"
        )

    async def _probe(self, turn: int) -> None:
        await self._api.call("probe", "GET", "/livez/ping")


async def _paced(seconds: float, rate: float, step: Callable[[int], Awaitable[None]]) -> None:
    """Begin steps at a rate, whether or not those before have ended, as independent clients do."""
    started = time.perf_counter()
    running: set[asyncio.Future[None]] = set()
    for turn in range(max(1, int(seconds * rate))):
        await asyncio.sleep(max(0.0, started + turn / rate - time.perf_counter()))
        task = asyncio.ensure_future(step(turn))
        running.add(task)
        task.add_done_callback(running.discard)
    await asyncio.gather(*running)


def _now() -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime()) + ".000000Z"


def a_pod(name: str, app: str) -> Object:
    """A pod with one container that reads a config map."""
    container = {
        "name": "main",
        "image": "registry.example.com/team/application:1.27.3",
        "ports": [{"containerPort": 8080}],
        "env": [{"name": f"SETTING_{at}", "value": f"value {at}"} for at in range(8)],
        "resources": {"requests": {"cpu": "100m", "memory": "128Mi"}, "limits": {"cpu": "1", "memory": "256Mi"}},
        "livenessProbe": {"httpGet": {"path": "/healthz", "port": 8080}},
        "volumeMounts": [{"name": "settings", "mountPath": "/etc/settings"}],
    }
    volumes = [{"name": "settings", "configMap": {"name": "settings"}}]
    return {"metadata": {"name": name, "labels": {"app": app}}, "spec": {"containers": [container], "volumes": volumes}}


# Measuring


def memory_of(pids: Iterable[int]) -> float:
    """Megabytes that processes hold."""
    status = (Path(f"/proc/{pid}/status").read_text() for pid in pids)
    return sum(int(found[1]) for text in status if (found := re.search(r"VmRSS:\s+(\d+)", text))) / 1024


async def held_by(api: Api) -> tuple[float, int]:
    """How long the event loop was held at most, in seconds, and how often longer than 20 ms."""
    text = await api.read_text("/metrics")
    longest = re.search(r"^pilothouse_event_loop_longest_hold_seconds (\S+)", text, re.MULTILINE)
    often = re.search(r"^pilothouse_event_loop_hold_seconds_count (\S+)", text, re.MULTILINE)
    return float(longest[1]) if longest else 0.0, int(float(often[1])) if often else 0


async def measure(
    subject: subjects.Subject, size: Size, seconds: float, figures: Object, made: Callable[[], None] | None
) -> None:
    """One cluster's life. ``made`` is called when its objects were created; without it they are there already."""
    latencies = Latencies()
    api = Api(subject.url, subjects.TOKEN, max(64, size.nodes // 5), latencies)  # a kubelet does not wait for others
    cluster = Cluster(api, size)
    pids = processor.with_children(subject.pids)
    figures["memory_empty_MB"] = memory_of(pids)
    if made is not None:
        print(f"made at {await cluster.populate():,.0f} objects/s", flush=True)
        made()
    else:
        print(f"found at {await cluster.find():,.0f} objects/s", flush=True)
    figures["memory_full_MB"] = memory_of(pids)
    figures["watches_open_s"] = await cluster.open_watches()
    figures["hold_before"] = await held_by(api)
    spent, started = processor.seconds_of(pids), time.perf_counter()
    await cluster.run(seconds / 2)
    await cluster.cut_watches()
    figures["storm_s"] = await cluster.open_watches()
    await cluster.run(seconds / 2)
    elapsed = time.perf_counter() - started
    figures["cpu_cores"] = (processor.seconds_of(pids) - spent) / elapsed
    figures["hold"] = await held_by(api)
    figures["memory_busy_MB"] = memory_of(pids)
    figures["events_per_s"] = cluster.events / elapsed
    await cluster.cut_watches()
    api.close()
    figures["failed"] = dict(latencies.failed)
    figures["turned_away"] = latencies.turned_away
    figures["latencies"] = {
        what: {"count": len(found), "p50_s": latencies.share(what, 0.5), "p99_s": latencies.share(what, 0.99)}
        for what, found in latencies.seconds.items()
    }


async def restart(subject: subjects.Subject, figures: Object) -> None:
    """What a start on all these objects takes, until it is ready and until it has answered with all pods."""
    latencies = Latencies()
    api = Api(subject.url, subjects.TOKEN, 2, latencies)
    figures["start_to_ready_s"] = subject.seconds_to_ready
    started = time.perf_counter()
    await api.call("list", "GET", f"{CORE}/pods?limit=500")
    figures["first_page_s"] = time.perf_counter() - started
    await api.call("list", "GET", f"{CORE}/pods?resourceVersion=0")
    figures["first_list_s"] = time.perf_counter() - started
    api.close()


def report(size: Size, figures: Object) -> bool:
    """Print; whether all objectives were met."""
    print(f"\n{size}")
    for what, found in figures["latencies"].items():
        limit = OBJECTIVES.get(what)
        aim = "" if limit is None else f"   objective {limit:.0f} s, {'met' if found['p99_s'] <= limit else 'MISSED'}"
        half, most = found["p50_s"] * 1e3, found["p99_s"] * 1e3
        print(f"{what:26}{found['count']:9,d}   p50 {half:9.1f} ms   p99 {most:9.1f} ms{aim}")
    longest, often = figures["hold"]
    print(
        f"event loop held longest {longest * 1e3:.0f} ms, longer than 20 ms {often - figures['hold_before'][1]} times"
    )
    memory = [f"{figures[f'memory_{when}_MB']:,.0f} MB {when}" for when in ("empty", "full", "busy")]
    print(f"memory {', '.join(memory)}; {figures['cpu_cores']:.2f} cores; {figures['events_per_s']:,.0f} events/s")
    print(
        f"watches open after {figures['watches_open_s']:.1f} s, after all were cut off {figures['storm_s']:.1f} s; "
        f"connections tried again {figures['turned_away']:,d} times"
    )
    print(
        f"started again: ready after {figures['start_to_ready_s']:.2f} s, "
        f"first page of pods {figures['first_page_s']:.2f} s later, all pods {figures['first_list_s']:.2f} s later"
    )
    for what, count in figures["failed"].items():
        print(f"FAILED {what}: {count}")
    found = figures["latencies"]
    met = all(found[what]["p99_s"] <= limit for what, limit in OBJECTIVES.items() if what in found)
    return met and not figures["failed"]


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--factor", type=float, default=0.02)
    parser.add_argument("--rate", type=float, default=1.0, help="of change, as a part of what such a cluster has")
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--json")
    parser.add_argument("--folder", help="where the store is kept, and found by the next run")
    parser.add_argument("--flag", action="append", default=[], help="a flag of the server")
    options = parser.parse_args()
    size = Size(options.factor, options.rate)
    figures: Object = {}
    with tempfile.TemporaryDirectory(prefix="pilothouse-bench-") as name:
        folder = Path(options.folder or name)
        folder.mkdir(exist_ok=True)
        made = folder / f"made-{options.factor}"
        flags = ["--service-cluster-ip-range=10.0.0.0/12", *options.flag]
        with subjects.pilothouse(folder, flags) as subject:
            uvloop.run(measure(subject, size, options.seconds, figures, None if made.exists() else made.touch))
        with subjects.pilothouse(folder, flags) as subject:
            uvloop.run(restart(subject, figures))
    met = report(size, figures)
    if options.json:
        Path(options.json).write_text(json.dumps(figures, indent=1))
    return 0 if met else 1


if __name__ == "__main__":
    sys.exit(main())
