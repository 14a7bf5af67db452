"""helm installs, upgrades, rolls back, tests and uninstalls a chart with hooks, with no flags but where to."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

CHART = str(Path(__file__).parent / "chart")


class Release:
    """The release ``app`` in a namespace of its own."""

    def __init__(self, helm, server, namespace):
        self.helm = helm
        self.server = server
        self.namespace = server.namespace(namespace)

    def __call__(self, verb, *words, fails=False):
        return self.helm(verb, *words, "--namespace", self.namespace, fails=fails)

    def get(self, kind, name):
        group = {"deployments": "apis/apps/v1", "poddisruptionbudgets": "apis/policy/v1"}.get(kind, "api/v1")
        status, _, obj = self.server.call("GET", f"/{group}/namespaces/{self.namespace}/{kind}/{name}")
        return obj if status == 200 else None

    def names(self, kind):
        _, _, listed = self.server.call("GET", f"/api/v1/namespaces/{self.namespace}/{kind}")
        return {item["metadata"]["name"] for item in listed["items"]}

    def deployed(self):
        """Replicas, image and greeting as the server has them."""
        deployment, settings = self.get("deployments", "app"), self.get("configmaps", "app-settings")
        container = deployment["spec"]["template"]["spec"]["containers"][0]
        return deployment["spec"]["replicas"], container["image"], settings["data"]["greeting"]


@pytest.fixture
def release(helm, server, request):
    made = Release(helm, server, request.node.name.replace("_", "-"))
    assert "STATUS: deployed" in made("install", "app", CHART)
    return made


def test_install(release):
    assert release.deployed() == (2, "nginx:1.27", "hello")
    assert release.get("services", "app")["spec"]["clusterIP"]
    assert {"app-pre-install", "app-post-install"} <= release.names("configmaps")
    assert "app-pre-upgrade" not in release.names("configmaps")
    assert release.names("secrets") == {"sh.helm.release.v1.app.v1"}
    (listed,) = json.loads(release("list", "--output", "json"))
    assert (listed["name"], listed["revision"], listed["status"]) == ("app", "1", "deployed")
    assert "cannot reuse a name" in release("install", "app", CHART, fails=True)


def test_upgrade_and_rollback(release):
    changes = ("--set", "replicas=3,greeting=bye,extra=true", "--set", "image=nginx:1.28")
    assert "REVISION: 2" in release("upgrade", "app", CHART, *changes)
    assert release.deployed() == (3, "nginx:1.28", "bye")
    assert release.get("poddisruptionbudgets", "app") is not None
    assert release.get("configmaps", "app-post-upgrade")["data"] == {"revision": "2"}
    assert "Rollback was a success" in release("rollback", "app", "1")
    assert release.deployed() == (2, "nginx:1.27", "hello")
    assert release.get("poddisruptionbudgets", "app") is None
    assert release.get("configmaps", "app-post-rollback") is not None
    history = json.loads(release("history", "app", "--output", "json"))
    assert [(entry["revision"], entry["status"]) for entry in history] == [
        (1, "superseded"),
        (2, "superseded"),
        (3, "deployed"),
    ]


def test_an_upgrade_that_is_refused_leaves_the_release_usable(release):
    refusal = release("upgrade", "app", CHART, "--set", "replicas=-1", fails=True)
    assert "spec.replicas: Invalid value: -1" in refusal
    assert release.deployed()[0] == 2
    assert "REVISION: 3" in release("upgrade", "app", CHART, "--set", "replicas=4")
    assert release.deployed()[0] == 4


def test_get_shows_what_was_installed(release):
    assert "kind: Deployment" in release("get", "manifest", "app")
    assert json.loads(release("get", "values", "app", "--all", "--output", "json"))["greeting"] == "hello"
    assert "helm.sh/hook: test" in release("get", "hooks", "app")
    assert "STATUS: deployed" in release("status", "app")


def test_test_waits_for_its_pod(release, helm, kubectl):
    """A watch tells when the test's pod is there; then it is made to succeed as a kubelet would."""
    command = [helm.path, "--kubeconfig", str(helm.kubeconfig), "test", "app", "--namespace", release.namespace]
    watching = kubectl.popen("-n", release.namespace, "get", "pods", "--watch", "-o", "name")
    testing = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    try:
        assert watching.stdout.readline() == "pod/app-test\n"
    finally:
        watching.terminate()
        watching.communicate(timeout=120)
    done = '{"status":{"phase":"Succeeded"}}'
    kubectl("-n", release.namespace, "patch", "pod", "app-test", "--subresource=status", "--type=merge", "-p", done)
    output, _ = testing.communicate(timeout=120)
    assert testing.returncode == 0, output
    assert "Phase:          Succeeded" in output


def test_uninstall(release):
    assert release("uninstall", "app") == 'release "app" uninstalled\n'
    assert release.get("deployments", "app") is None
    assert release.names("services") == set()
    assert release.names("secrets") == set()
    assert "app-post-delete" in release.names("configmaps")
    assert json.loads(release("list", "--output", "json")) == []
    assert "release: not found" in release("status", "app", fails=True)
