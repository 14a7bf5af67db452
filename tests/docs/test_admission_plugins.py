"""The example of docs/admission-plugins.md works as it is printed, and everything it names exists."""

from __future__ import annotations

import dataclasses
import re
from pathlib import Path
from typing import Any

import pytest

from pilothouse.admission.builtin import MODULES
from pilothouse.admission.catalogue import ENTRY_POINTS
from pilothouse.admission.environment import Environment
from pilothouse.admission.objects import Objects
from pilothouse.admission.plugin import Plugin
from pilothouse.endpoints.admission import Attributes
from pilothouse.testing.in_process import InProcessServer

TEXT = (Path(__file__).parents[2] / "docs" / "admission-plugins.md").read_text()
FLAGS = re.search(r"\$ pilothouse serve (.*)", TEXT)
CONFIGURATION = re.search(r"```yaml\n(.*?)```", TEXT, re.DOTALL)


@pytest.fixture
def flags(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The flags of the text, with the module and the configuration it shows in place."""
    found = re.search(r"```python (\S+)\n(.*?)```", TEXT, re.DOTALL)
    assert found is not None and FLAGS is not None and CONFIGURATION is not None
    (tmp_path / found[1]).write_text(found[2])
    (tmp_path / "admission.yaml").write_text(CONFIGURATION[1])
    (tmp_path / "pod-security.yaml").write_text(
        "apiVersion: pod-security.admission.config.k8s.io/v1\nkind: PodSecurityConfiguration\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    return [*FLAGS[1].split(), f"--admission-control-config-file={tmp_path}/admission.yaml"]


def test_the_example(flags: list[str]) -> None:
    with InProcessServer(*flags) as server:
        namespace = {"metadata": {"name": "blue", "labels": {"team": "sky"}}}
        assert server.call("POST", "/api/v1/namespaces", namespace).status == 201

        def create(name: str, keys: int) -> Any:
            data = {f"k{i}": "v" for i in range(keys)}
            return server.call("POST", "/api/v1/namespaces/blue/configmaps", {"metadata": {"name": name}, "data": data})

        assert create("a", 1).json["metadata"]["labels"] == {"team": "sky"}
        warned = create("b", 2)
        assert warned.status == 201
        assert warned.headers["warning"] == '299 - "no more than 2 keys are allowed"'
        refused = create("c", 3)
        assert refused.status == 403
        assert refused.json["message"] == 'configmaps "c" is forbidden: 3 keys are too many, 2 are allowed'


def test_everything_named_exists() -> None:
    assert f'"{ENTRY_POINTS}"' in TEXT
    for name in ("name", "operations", "resources", "subresources", "default_on"):
        assert hasattr(Plugin, name)
        assert f"| `{name}` |" in TEXT
    shown = set(re.findall(r"`(\w+)`", TEXT.partition("## What a plug-in sees")[2]))
    attributes = {each.name for each in dataclasses.fields(Attributes)} - {"scope", "reinvocation"}
    assert attributes <= shown
    for name in ("find", "get", "list", "remembered"):
        assert hasattr(Objects, name)
    assert hasattr(Environment, "objects")
    assert hasattr(Environment, "enabled")
    assert {"MutatingAdmissionWebhook", "ValidatingAdmissionWebhook", "ResourceQuota"} <= set(MODULES)
