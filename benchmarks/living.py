"""How fast a living cluster moves, and what it costs when nothing does.

    python benchmarks/living.py [--replicas 1000] [--nodes 20] [--only replicas,namespace,idle]
    python benchmarks/living.py --kube-controller-manager PATH --kube-scheduler PATH
    python benchmarks/living.py --only large [--large-nodes 1000] [--large-pods 20000]

Each figure is measured on a fresh server: wall time, and processor time of all processes that take part. With the two
paths the same deployment is also made by kube-controller-manager and kube-scheduler, on our API server and with our
simulated nodes. Prints what it finds, and fails where our own cluster misses an aim: a namespace of 1,000 objects gone
in 2 s of processor time, and under 40 MB and 1 % of a core more when idle.
"""

from __future__ import annotations

import argparse
import contextlib
import http.client
import json
import socket
import ssl
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

BARE = ("--controllers=-*", "--scheduler=false", "--simulate-nodes=0")
TICKS = 100.0
PAGE = 4096
IDLE_SECONDS = 30.0


@dataclass
class Cluster:
    """A server, and what runs beside it."""

    port: int
    folder: Path
    processes: list[subprocess.Popen[bytes]]
    connection: http.client.HTTPSConnection | None = None

    def call(self, method: str, path: str, body: Any = None, kind: str = "application/json") -> Any:
        """One request, on a connection that is kept: to look how far things are must not cost much itself."""
        if self.connection is None:
            context = ssl._create_unverified_context()
            self.connection = http.client.HTTPSConnection("127.0.0.1", self.port, timeout=600, context=context)
        headers = {"Authorization": "Bearer admintoken", "Content-Type": kind}
        try:
            self.connection.request(method, path, None if body is None else json.dumps(body), headers)
            answer = self.connection.getresponse()
            data = answer.read()
        except (OSError, http.client.HTTPException):
            self.connection = None
            raise
        return json.loads(data) if answer.status < 300 else None

    def cpu(self) -> float:
        """Processor seconds of all processes so far."""
        total = 0.0
        for process in self.processes:
            fields = Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()
            total += (int(fields[11]) + int(fields[12])) / TICKS
        return total

    def megabytes(self) -> float:
        """Memory of the server itself."""
        return int(Path(f"/proc/{self.processes[0].pid}/statm").read_text().split()[1]) * PAGE / 1e6

    def until(self, test: Callable[[], Any], seconds: float = 3600.0) -> None:
        deadline = time.monotonic() + seconds
        while not test():
            if time.monotonic() > deadline:
                raise TimeoutError
            time.sleep(0.2)


@contextlib.contextmanager
def cluster(*flags: str, beside: tuple[str, ...] = ()) -> Iterator[Cluster]:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        (folder / "tokens.csv").write_text('admintoken,admin,admin-uid,"system:masters"\n')
        pilothouse = str(Path(sys.executable).with_name("pilothouse"))
        words = [pilothouse, "serve", f"--data-dir={folder}/data", f"--secure-port={port}", "--bind-address=127.0.0.1"]
        with (folder / "log").open("wb") as log:
            server = subprocess.Popen(
                [*words, f"--token-auth-file={folder}/tokens.csv", *flags], stdout=log, stderr=log
            )
            made_cluster = Cluster(port, folder, [server])
            try:
                made_cluster.until(lambda: _is_ready(made_cluster))
                for binary in beside:
                    made_cluster.processes.append(_start(binary, made_cluster, log))
                yield made_cluster
            finally:
                for process in reversed(made_cluster.processes):
                    process.terminate()
                    process.wait(120)


def _is_ready(made: Cluster) -> bool:
    try:
        return made.call("GET", "/api/v1/namespaces/default") is not None
    except (OSError, http.client.HTTPException):
        return False


def _start(binary: str, made: Cluster, log: Any) -> subprocess.Popen[bytes]:
    server = {"server": f"https://127.0.0.1:{made.port}", "insecure-skip-tls-verify": True}
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "x",
        "contexts": [{"name": "x", "context": {"cluster": "x", "user": "x"}}],
        "clusters": [{"name": "x", "cluster": server}],
        "users": [{"name": "x", "user": {"token": "admintoken"}}],
    }
    (made.folder / "kubeconfig").write_text(json.dumps(config))
    words = [f"--kubeconfig={made.folder}/kubeconfig", "--leader-elect=false", "--secure-port=0"]
    words += ["--kube-api-qps=1000", "--kube-api-burst=2000"]
    if "controller-manager" in Path(binary).name:
        words += ["--allocate-node-cidrs=true", "--cluster-cidr=10.244.0.0/16"]
    return subprocess.Popen([binary, *words], stdout=log, stderr=log)


def replicas(made: Cluster, count: int, nodes: int) -> tuple[float, float]:
    """Wall and processor seconds until a deployment of so many replicas is ready."""
    made.until(lambda: len([node for node in _items(made, "/api/v1/nodes") if not node["spec"].get("taints")]) == nodes)
    made.until(lambda: made.call("GET", "/api/v1/namespaces/default/serviceaccounts/default"))
    labels = {"app": "web"}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "c", "image": "nginx"}]}}
    spec = {"replicas": count, "selector": {"matchLabels": labels}, "template": template}
    path = "/apis/apps/v1/namespaces/default/deployments"
    began, spent = time.monotonic(), made.cpu()
    made.call("POST", path, {"metadata": {"name": "web"}, "spec": spec})
    made.until(lambda: (made.call("GET", f"{path}/web").get("status") or {}).get("readyReplicas") == count)
    return time.monotonic() - began, made.cpu() - spent


def large(made: Cluster, pods: int, nodes: int) -> tuple[float, float]:
    """Wall and processor seconds until deployments of 1,000 replicas each, a quarter with a service, are ready."""
    path, number = "/apis/apps/v1/namespaces/default/deployments", max(1, pods // 1000)
    made.until(lambda: len([node for node in _items(made, "/api/v1/nodes") if not node["spec"].get("taints")]) == nodes)
    made.until(lambda: made.call("GET", "/api/v1/namespaces/default/serviceaccounts/default"))
    container = {"name": "c", "image": "nginx", "resources": {"requests": {"cpu": "10m", "memory": "16Mi"}}}
    began, spent = time.monotonic(), made.cpu()
    for index in range(number):
        labels, name = {"app": f"web-{index}"}, {"name": f"web-{index}"}
        template = {"metadata": {"labels": labels}, "spec": {"containers": [container]}}
        spec = {"replicas": pods // number, "selector": {"matchLabels": labels}, "template": template}
        made.call("POST", path, {"metadata": name, "spec": spec})
        if index % 4 == 0:
            service = {"metadata": name, "spec": {"selector": labels, "ports": [{"port": 80}]}}
            made.call("POST", "/api/v1/namespaces/default/services", service)

    def ready() -> int:
        return sum((each.get("status") or {}).get("readyReplicas") or 0 for each in _items(made, path))

    made.until(lambda: ready() == pods // number * number)
    return time.monotonic() - began, made.cpu() - spent


def namespace(made: Cluster, count: int) -> tuple[float, float]:
    """Wall and processor seconds until a namespace of so many objects is gone."""
    made.call("POST", "/api/v1/namespaces", {"metadata": {"name": "full"}})
    for number in range(count):
        made.call("POST", "/api/v1/namespaces/full/configmaps", {"metadata": {"name": f"m-{number}"}})
    began, spent = time.monotonic(), made.cpu()
    made.call("DELETE", "/api/v1/namespaces/full")
    made.until(lambda: made.call("GET", "/api/v1/namespaces/full") is None)
    return time.monotonic() - began, made.cpu() - spent


def idle(made: Cluster) -> tuple[float, float]:
    """Megabytes, and the share of a core in hundredths."""
    time.sleep(10.0)
    spent = made.cpu()
    time.sleep(IDLE_SECONDS)
    return made.megabytes(), (made.cpu() - spent) / IDLE_SECONDS * 100


def _items(made: Cluster, path: str) -> list[dict[str, Any]]:
    found = made.call("GET", path)
    items: list[dict[str, Any]] = [] if found is None else found["items"]
    return items


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--replicas", type=int, default=1000)
    parser.add_argument("--nodes", type=int, default=20)
    parser.add_argument("--only", default="replicas,namespace,idle")
    parser.add_argument("--large-nodes", type=int, default=1000)
    parser.add_argument("--large-pods", type=int, default=20000)
    parser.add_argument("--kube-controller-manager", default="")
    parser.add_argument("--kube-scheduler", default="")
    given = parser.parse_args()
    only, missed = given.only.split(","), []
    nodes = f"--simulate-nodes={given.nodes}"
    if "replicas" in only:
        with cluster(nodes) as made:
            wall, spent = replicas(made, given.replicas, given.nodes)
            size = made.megabytes()
            print(f"{given.replicas} replicas ready: {wall:.1f} s, {spent:.1f} s of processor time, {size:.0f} MB")
        beside = (given.kube_controller_manager, given.kube_scheduler)
        if all(beside):
            with cluster("--controllers=-*", "--scheduler=false", nodes, beside=beside) as made:
                wall, spent = replicas(made, given.replicas, given.nodes)
                print(f"  by kube-controller-manager and kube-scheduler: {wall:.1f} s, {spent:.1f} s of processor time")
    if "large" in only:
        with cluster(f"--simulate-nodes={given.large_nodes}", "--cluster-cidr=10.128.0.0/10") as made:
            wall, spent = large(made, given.large_pods, given.large_nodes)
            size = made.megabytes()
            what = f"{given.large_pods} pods on {given.large_nodes} nodes"
            print(f"{what}: {wall:.0f} s, {spent:.0f} s of processor time")
            print(f"  {size:.0f} MB; then idle at {idle(made)[1]:.1f} % of a core")
    if "namespace" in only:
        with cluster() as made:
            wall, spent = namespace(made, 1000)
            print(f"a namespace of 1000 objects gone: {wall:.1f} s, {spent:.1f} s of processor time")
            missed += ["namespace"] * (spent > 2.0)
    if "idle" in only:
        with cluster(*BARE) as made:
            bare = idle(made)
        with cluster() as made:
            living = idle(made)
        more = living[0] - bare[0], living[1] - bare[1]
        print(f"idle: {bare[0]:.0f} MB, {bare[1]:.2f} % alone; living {more[0]:+.0f} MB, {more[1]:+.2f} % of a core")
        missed += ["idle"] * (more[0] > 40.0 or more[1] > 1.0)
    if missed:
        print(f"missed: {', '.join(missed)}")
    return bool(missed)


if __name__ == "__main__":
    sys.exit(main())
