"""Controller revisions: what they keep, how they are named, and what happens when a name is taken."""

from __future__ import annotations

from typing import Any

from pilothouse.controllers.runtime.revision_history import (
    RevisionStyle,
    data_hash,
    data_of,
    make_revision,
    same_template,
    template_of,
)

from ..conftest import StartWorld

STYLE = RevisionStyle("StatefulSet", "controller.kubernetes.io/hash")


def template(app: str, image: str) -> dict[str, Any]:
    container = {
        "name": "c",
        "image": image,
        "command": ["sh", "-c", "sleep 1000"],
        "imagePullPolicy": "IfNotPresent",
        "resources": {},
        "terminationMessagePath": "/dev/termination-log",
        "terminationMessagePolicy": "File",
    }
    spec = {
        "containers": [container],
        "restartPolicy": "Always",
        "terminationGracePeriodSeconds": 1,
        "dnsPolicy": "ClusterFirst",
        "securityContext": {},
        "schedulerName": "default-scheduler",
    }
    return {"metadata": {"labels": {"app": app}}, "spec": spec}


def test_names_are_those_of_kube_controller_manager() -> None:
    image = "registry.k8s.io/e2e-test-images/busybox:"
    assert data_hash(data_of(template("claims", image + "1.37")), 0) == "844877c4f7"
    assert data_hash(data_of(template("ordered", image + "1.37")), 0) == "59b76f977c"
    assert data_hash(data_of(template("ordered", image + "2")), 0) == "58fd867886"
    assert data_hash(data_of(template("ordered", image + "2")), 1) != "58fd867886"


def test_a_template_comes_back_as_it_was() -> None:
    made = template("a", "i <&>")
    revision = make_revision(
        {"metadata": {"name": "a", "namespace": "n", "uid": "u"}, "spec": {"template": made}}, STYLE, 7, 0
    )
    assert template_of(revision) == made and revision["revision"] == 7
    assert same_template(template_of(revision), {**made, "metadata": {**made["metadata"], "creationTimestamp": None}})
    assert not same_template(template_of(revision), template("a", "other"))


async def test_a_name_that_is_taken(start_world: StartWorld) -> None:
    world = await start_world("statefulset-controller", nodes=0)
    labels = {"app": "s"}
    spec = {"replicas": 0, "serviceName": "s", "selector": {"matchLabels": labels}}
    spec["template"] = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    made = {"metadata": {"name": "s", "namespace": "default"}, "spec": spec}
    sets, revisions = world.of("apps", "statefulsets"), world.of("apps", "controllerrevisions")
    shown = await sets.create(made, dry_run=True)
    taken = make_revision(shown, STYLE, 1, 0)
    metadata = {"name": taken["metadata"]["name"], "namespace": "default"}
    await revisions.create({"metadata": metadata, "data": {"something": "else"}, "revision": 1})
    await sets.create(made)
    found = await world.until_is(
        "apps", "statefulsets", "s", lambda found: found.get("status", {}).get("updateRevision")
    )
    assert found["status"]["collisionCount"] == 1
    assert found["status"]["updateRevision"] == make_revision(shown, STYLE, 1, 1)["metadata"]["name"]
