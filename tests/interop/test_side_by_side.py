"""Both servers on one etcd at once, under kube-controller-manager and kube-scheduler that change between them.

Runs where KUBE_CONTROLLER_MANAGER and KUBE_SCHEDULER name binaries too (`go build ./cmd/kube-controller-manager
./cmd/kube-scheduler`). A deployment is rolled while the controllers' connections are moved from one server to the
other; in the end both servers show the same objects, and the deployment has what it asked for.
"""

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from pilothouse.testing.etcd_process import EtcdCluster

sys.path.insert(0, str(Path(__file__).parent))
from servers import KUBE_APISERVER, PILOTHOUSE, ApiServer

CONTROLLERS = [os.environ.get(name, "") for name in ("KUBE_CONTROLLER_MANAGER", "KUBE_SCHEDULER")]
pytestmark = pytest.mark.skipif(
    not (KUBE_APISERVER and os.environ.get("ETCD") and all(CONTROLLERS)), reason="there are no binaries"
)
REPLICAS = int(os.environ.get("INTEROP_REPLICAS", "200"))
PATIENCE_SECONDS = 240.0
DEPLOYMENTS = "/apis/apps/v1/namespaces/default/deployments"


class Switch:
    """A port that leads to one of several others; `turn` moves everybody to the next."""

    def __init__(self, ports):
        self.targets, self.at = ports, 0
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self.open = set()
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        with contextlib.suppress(OSError):
            while True:
                client, _ = self.listener.accept()
                try:
                    server = socket.create_connection(("127.0.0.1", self.targets[self.at]))
                except OSError:
                    client.close()
                    continue
                self.open |= {client, server}
                for ends in ((client, server), (server, client)):
                    threading.Thread(target=self.carry, args=ends, daemon=True).start()

    def carry(self, source, target):
        with contextlib.suppress(OSError):
            while data := source.recv(65536):
                target.sendall(data)
        for end in (source, target):
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
        source.close()

    def turn(self):
        self.at = (self.at + 1) % len(self.targets)
        ended, self.open = self.open, set()
        for end in ended:
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)

    def close(self):
        self.listener.close()
        self.turn()


@contextlib.contextmanager
def controllers(folder, port):
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "x",
        "contexts": [{"name": "x", "context": {"cluster": "x", "user": "x"}}],
        "clusters": [
            {"name": "x", "cluster": {"server": f"https://127.0.0.1:{port}", "insecure-skip-tls-verify": True}}
        ],
        "users": [{"name": "x", "user": {"token": "admintoken"}}],
    }
    (folder / "kubeconfig").write_text(json.dumps(config))
    running = []
    try:
        for binary in CONTROLLERS:
            words = [f"--kubeconfig={folder}/kubeconfig", "--leader-elect=false", "--secure-port=0"]
            if binary is CONTROLLERS[0]:
                words.append("--controllers=deployment,replicaset,serviceaccount")
            with (folder / f"{Path(binary).name}.log").open("wb") as log:
                running.append(subprocess.Popen([binary, *words], stdout=log, stderr=log))
        yield
    finally:
        for process in running:
            process.send_signal(signal.SIGTERM)
        for process in running:
            process.wait(30)


def deployment(image):
    pod = {"containers": [{"name": "c", "image": image}]}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "rolled"},
        "spec": {
            "replicas": REPLICAS,
            "selector": {"matchLabels": {"app": "rolled"}},
            "template": {"metadata": {"labels": {"app": "rolled"}}, "spec": pod},
        },
    }


def node(number):
    capacity = {"cpu": "64", "memory": "64Gi", "pods": "500"}
    ready = {"type": "Ready", "status": "True", "reason": "R", "message": ""}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": f"n{number}"},
        "status": {"capacity": capacity, "allocatable": capacity, "conditions": [ready]},
    }


PODS = "/api/v1/namespaces/default/pods"
READY = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}


def play_kubelet(server):
    """Let bound pods run and deleted ones end; gives the living ones."""
    living = []
    for pod in server.call("GET", PODS)[1]["items"]:
        path = f"{PODS}/{pod['metadata']['name']}"
        if pod["metadata"].get("deletionTimestamp"):
            server.call("DELETE", f"{path}?gracePeriodSeconds=0")
            continue
        living.append(pod)
        if pod["spec"].get("nodeName") and pod["status"]["phase"] != "Running":
            server.call("PATCH", f"{path}/status", {"status": READY}, "application/strategic-merge-patch+json")
    return living


def wait_rolled(servers, image, switch=None):
    """Wait until all pods have an image and a node; turns the switch on the way."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    turned = turn = 0
    while time.monotonic() < deadline:
        now = play_kubelet(servers[turn % len(servers)])
        turn += 1
        right = [p for p in now if p["spec"]["containers"][0]["image"] == image and p["spec"].get("nodeName")]
        if len(right) == len(now) == REPLICAS:
            return
        if switch is not None and len(right) - turned >= REPLICAS / 5:
            switch.turn()
            turned = len(right)
        time.sleep(0.2)
    raise AssertionError(f"{len(right)} of {REPLICAS} pods, {len(now)} in all")


def test_controllers_change_between_servers(tmp_path):
    with (
        EtcdCluster() as etcd,
        ApiServer(KUBE_APISERVER, tmp_path, etcd.urls) as theirs,
        ApiServer(PILOTHOUSE, tmp_path, etcd.urls) as ours,
    ):
        switch = Switch([ours.port, theirs.port])
        with controllers(tmp_path, switch.port):
            for number in range(4):
                assert ours.call("POST", "/api/v1/nodes", node(number))[0] == 201
                # New nodes are tainted until a controller, which does not run here, finds them ready.
                untainted = {"spec": {"taints": None}}
                answer = theirs.call("PATCH", f"/api/v1/nodes/n{number}", untainted, "application/merge-patch+json")
                assert answer[0] == 200
            assert theirs.call("POST", DEPLOYMENTS, deployment("a:1"))[0] == 201
            wait_rolled((ours, theirs), "a:1")
            patch = {"spec": {"template": deployment("a:2")["spec"]["template"]}}
            patched = ours.call("PATCH", f"{DEPLOYMENTS}/rolled", patch, "application/merge-patch+json")
            assert patched[0] == 200
            wait_rolled((ours, theirs), "a:2", switch)
        switch.close()
        for path in (PODS, "/apis/apps/v1/namespaces/default/replicasets", DEPLOYMENTS):
            one, other = (server.call("GET", path)[1]["items"] for server in (theirs, ours))
            assert one == other
