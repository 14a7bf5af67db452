"""Flags, annotations, rules and names in docs/living-cluster.md are real."""

from __future__ import annotations

import re
from pathlib import Path

import yaml

from pilothouse.controllers.manager.catalogue import CONTROLLERS
from pilothouse.options.server_options import declared_flags
from pilothouse.simulation.nodes.behaviour import PREFIX, behaviour_of, read_rules

TEXT = (Path(__file__).parents[2] / "docs" / "living-cluster.md").read_text()


def test_flags() -> None:
    named = set(re.findall(r"--([a-z][a-z0-9-]+)", TEXT)) - {"image", "replicas"}
    assert named <= set(declared_flags())


def test_annotations() -> None:
    rows = [yaml.safe_load(row) for row in re.findall(rf"`{re.escape(PREFIX)}([a-z-]+: [^`]+)`", TEXT)]
    assert len(rows) == 13
    container = {"name": "c", "image": "i"}
    for name, value in ((name, value) for row in rows for name, value in row.items()):
        pod = {"metadata": {"name": "p", "namespace": "n", "annotations": {PREFIX + name: value}}, "spec": {}}
        behaviour_of(pod, container)


def test_the_stage_file() -> None:
    example = re.search(r"```yaml\n(.*?)```", TEXT, re.S)
    assert example is not None and len(read_rules(yaml.safe_load(example[1]))) == 2


def test_names_of_controllers() -> None:
    named = set(re.findall(r"`([a-z-]+-controller)`", TEXT))
    assert named and named <= {row.name for row in CONTROLLERS}
