from __future__ import annotations

from typing import Any

import pytest

from pilothouse.controllers.deployments.rollback import roll_back, wanted_revision

ROLLBACK = "deprecated.deployment.rollback.to"
REVISION = "deployment.kubernetes.io/revision"


def template(image: str, **labels: str) -> dict[str, Any]:
    return {"metadata": {"labels": {"app": "web", **labels}}, "spec": {"containers": [{"name": "c", "image": image}]}}


def deployment(revision: str) -> dict[str, Any]:
    annotations = {ROLLBACK: revision, REVISION: "2", "why": "edit"}
    return {"metadata": {"name": "web", "annotations": annotations}, "spec": {"template": template("two")}}


def replica_set(revision: int, image: str, why: str) -> dict[str, Any]:
    annotations = {REVISION: str(revision), "why": why}
    spec = {"template": template(image, **{"pod-template-hash": "x"})}
    return {"metadata": {"name": f"web-{revision}", "annotations": annotations}, "spec": spec}


SETS = [replica_set(1, "one", "create"), replica_set(2, "two", "edit")]


@pytest.mark.parametrize("revision", ["0", "1"])
def test_template_and_annotations_come_back(revision: str) -> None:
    made = roll_back(deployment(revision), SETS)
    assert made.message == 'Rolled back deployment "web" to revision 1'
    assert made.deployment["spec"]["template"] == template("one")
    assert made.deployment["metadata"]["annotations"] == {REVISION: "2", "why": "create"}


@pytest.mark.parametrize(
    ("revision", "sets", "reason"),
    [
        ("2", SETS, "DeploymentRollbackTemplateUnchanged"),
        ("7", SETS, "DeploymentRollbackRevisionNotFound"),
        ("0", SETS[1:], "DeploymentRollbackRevisionNotFound"),
    ],
)
def test_what_cannot_be_done_is_told_and_forgotten(revision: str, sets: list[Any], reason: str) -> None:
    made = roll_back(deployment(revision), sets)
    assert (made.type, made.reason) == ("Warning", reason)
    assert made.deployment["spec"]["template"] == template("two")
    assert ROLLBACK not in made.deployment["metadata"]["annotations"]


def test_nobody_asks() -> None:
    for text in ("", "soon"):
        assert wanted_revision(deployment(text)) is None
