"""kubectl 1.37 changes objects: patches of three types, edits, labels, scales, rollouts, and waits for changes."""

from __future__ import annotations

import json
import shlex

import pytest

SIDECAR = {"name": "sidecar", "image": "envoy:1"}


@pytest.fixture
def deployed(kubectl, server, manifests, request):
    """A namespace of the test's own with the deployment ``thing``."""
    namespace = server.namespace(request.node.name.partition("[")[0].replace("_", "-"))
    kubectl("-n", namespace, "apply", "-f", "-", stdin=manifests["deployment"])
    return namespace


def images(deployment):
    return {each["name"]: each["image"] for each in deployment["spec"]["template"]["spec"]["containers"]}


def test_patches_of_three_types_differ_in_lists(kubectl, deployed, read):
    patch = ("-n", deployed, "patch", "deployment", "thing")
    containers = json.dumps({"spec": {"template": {"spec": {"containers": [SIDECAR]}}}})
    kubectl(*patch, "-p", containers)
    assert images(read(deployed, "deployment")) == {"sidecar": "envoy:1", "main": "nginx:1.27"}
    assert kubectl(*patch, "-p", containers).endswith("patched (no change)\n")
    operations = [
        {"op": "test", "path": "/spec/template/spec/containers/0/name", "value": "sidecar"},
        {"op": "replace", "path": "/spec/template/spec/containers/0/image", "value": "envoy:2"},
    ]
    kubectl(*patch, "--type=json", "-p", json.dumps(operations))
    assert images(read(deployed, "deployment")) == {"sidecar": "envoy:2", "main": "nginx:1.27"}
    operations[0]["value"] = "other"
    assert "the server rejected our request" in kubectl(*patch, "--type=json", "-p", json.dumps(operations), fails=True)
    kubectl(*patch, "--type=merge", "-p", containers)
    assert images(read(deployed, "deployment")) == {"sidecar": "envoy:1"}
    removal = {"spec": {"template": {"spec": {"containers": [{"$patch": "delete", "name": "sidecar"}]}}}}
    assert "spec.template.spec.containers: Required value" in kubectl(*patch, "-p", json.dumps(removal), fails=True)


def test_edits(run, deployed, read, tmp_path):
    """The editor is a script; what it leaves behind is sent as a patch, and a wrong edit comes back with its error."""
    wish = tmp_path / "edit.sh"
    wish.write_text('#!/bin/sh\nsed -i "$EDIT" "$1"\n')
    wish.chmod(0o755)
    edit = ("-n", deployed, "edit", "deployment", "thing")
    variables = {"KUBE_EDITOR": shlex.quote(str(wish)), "TMPDIR": str(tmp_path)}
    done = run(*edit, EDIT="s/replicas: 2/replicas: 4/", **variables)
    assert done.stdout == "deployment.apps/thing edited\n", done.stderr
    assert read(deployed, "deployment")["spec"]["replicas"] == 4
    assert run(*edit, EDIT="s/nothing/else/", **variables).stderr == "Edit cancelled, no changes made.\n"
    done = run(*edit, EDIT="s/^  replicas: .*/  replicas: -1/", **variables)
    assert 'deployments.apps "thing" is invalid' in done.stderr
    drafts = [draft.read_text() for draft in tmp_path.glob("kubectl-edit-*.yaml")]
    error = "# * spec.replicas: Invalid value: -1: must be greater than or equal to 0\n"
    assert any(error in draft for draft in drafts)


def test_labels_and_annotations(kubectl, server, read, manifests):
    namespace = server.namespace("labels-and-annotations")
    for kind in ("service", "role"):
        kubectl("-n", namespace, "create", "-f", "-", stdin=manifests[kind])
        for verb, field, done in (("label", "labels", "labeled"), ("annotate", "annotations", "annotated")):
            change = ("-n", namespace, verb, kind, "thing")
            assert kubectl(*change, "tier=front", "x=y").endswith(f"thing {done}\n")
            assert "--overwrite is false" in kubectl(*change, "tier=back", fails=True)
            kubectl(*change, "tier=back", "x-", "--overwrite")
            assert read(namespace, kind)["metadata"][field] == {"tier": "back"}
    refusal = kubectl("-n", namespace, "annotate", "service", "thing", "not/a/key=1", fails=True)
    assert "not/a/key" in refusal
    assert kubectl("-n", namespace, "get", "service,role", "-l", "tier=back", "-o", "name").split() == [
        "service/thing",
        "role.rbac.authorization.k8s.io/thing",
    ]


def test_scale_and_its_precondition(kubectl, deployed, read):
    scale = ("-n", deployed, "scale", "deployment", "thing")
    assert kubectl(*scale, "--replicas=5").endswith("thing scaled\n")
    assert "Expected replicas to be 2, was 5" in kubectl(*scale, "--current-replicas=2", "--replicas=1", fails=True)
    assert read(deployed, "deployment")["spec"]["replicas"] == 5
    generation = kubectl("-n", deployed, "get", "deployment", "thing", "-o", "jsonpath={.metadata.generation}")
    assert generation == "2"


def test_status_is_patched_apart_and_waited_for(kubectl, deployed):
    condition = {"type": "Available", "status": "True", "reason": "Made", "message": "up"}
    status = json.dumps(
        {"status": {"observedGeneration": 1, "replicas": 2, "readyReplicas": 2, "conditions": [condition]}}
    )
    patch = ("-n", deployed, "patch", "deployment", "thing", "-p", status)
    assert kubectl(*patch).endswith("(no change)\n")
    waiting = kubectl.popen("-n", deployed, "wait", "--for=condition=Available", "deployment/thing", "--timeout=120s")
    kubectl(*patch, "--subresource=status")
    assert waiting.communicate(timeout=120)[0] == "deployment.apps/thing condition met\n"
    ready = ("--for=jsonpath={.status.readyReplicas}=2", "deployment/thing", "--timeout=120s")
    assert kubectl("-n", deployed, "wait", *ready) == "deployment.apps/thing condition met\n"
    assert kubectl("-n", deployed, "get", "deployment", "--no-headers").split()[:4] == ["thing", "2/2", "0", "0"]
    assert "timed out" in kubectl(
        "-n", deployed, "wait", "--for=condition=Progressing", "deployment/thing", "--timeout=1ms", fails=True
    )


def test_rollouts(kubectl, server, deployed, read):
    """Replica sets as the deployment controller would leave them are what history and undo go by."""
    deployment = read(deployed, "deployment")
    owner = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "thing", "uid": deployment["metadata"]["uid"]}
    for revision, image in ((1, "nginx:1.26"), (2, "nginx:1.27")):
        template = json.loads(json.dumps(deployment["spec"]["template"]))
        template["metadata"]["labels"]["pod-template-hash"] = f"h{revision}"
        template["spec"]["containers"][0]["image"] = image
        metadata = {
            "name": f"thing-{revision}",
            "labels": template["metadata"]["labels"],
            "annotations": {"deployment.kubernetes.io/revision": str(revision)},
            "ownerReferences": [{**owner, "controller": True}],
        }
        selector = {"matchLabels": template["metadata"]["labels"]}
        made = {"metadata": metadata, "spec": {"replicas": 0, "selector": selector, "template": template}}
        status, _, answer = server.call("POST", f"/apis/apps/v1/namespaces/{deployed}/replicasets", made)
        assert status == 201, answer
    assert [
        line.split()[0] for line in kubectl("-n", deployed, "rollout", "history", "deploy/thing").split("\n")[2:4]
    ] == [
        "1",
        "2",
    ]
    assert "nginx:1.26" in kubectl("-n", deployed, "rollout", "history", "deploy/thing", "--revision=1")
    assert kubectl("-n", deployed, "rollout", "undo", "deploy/thing").endswith("thing rolled back\n")
    assert images(read(deployed, "deployment")) == {"main": "nginx:1.26"}
    kubectl("-n", deployed, "rollout", "restart", "deploy/thing")
    annotations = read(deployed, "deployment")["spec"]["template"]["metadata"]["annotations"]
    assert list(annotations) == ["kubectl.kubernetes.io/restartedAt"]
    kubectl("-n", deployed, "set", "image", "deploy/thing", "main=nginx:2")
    assert images(read(deployed, "deployment")) == {"main": "nginx:2"}
