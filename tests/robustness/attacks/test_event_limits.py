"""Events that are limited by what they are about: whoever writes them says what that is, at any length."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import orjson
import pytest

EVENTS = "/api/v1/namespaces/default/events"
COUNT, LENGTH = 40, 2_000_000


@pytest.fixture(scope="module")
def limited(launch_victim: Callable[..., Any], tmp_path_factory: pytest.TempPathFactory) -> Any:
    """A server with limits that nobody meets, of each type."""
    types = ("Namespace", "User", "SourceAndObject", "Server")
    limits = [{"type": each, "qps": 1_000_000, "burst": 1_000_000, "cacheSize": 1_000_000} for each in types]
    section = {"apiVersion": "eventratelimit.admission.k8s.io/v1alpha1", "kind": "Configuration", "limits": limits}
    plugins = [{"name": "EventRateLimit", "configuration": section}]
    configuration = {"apiVersion": "apiserver.config.k8s.io/v1", "kind": "AdmissionConfiguration", "plugins": plugins}
    file: Path = tmp_path_factory.mktemp("limits") / "admission.json"
    file.write_bytes(orjson.dumps(configuration))
    return launch_victim("--enable-admission-plugins=EventRateLimit", f"--admission-control-config-file={file}")


def test_events_about_objects_of_long_names(limited: Any) -> None:
    event = {"apiVersion": "v1", "kind": "Event", "metadata": {"name": "e"}}
    with limited.attacked(f"{COUNT} events about names of 2 MB", allowance=48 << 20):
        for number in range(COUNT):
            about = {"namespace": "default", "name": f"{number}" + "n" * LENGTH}
            assert limited.call("POST", EVENTS, {**event, "involvedObject": about}).status == 500
