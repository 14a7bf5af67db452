"""Objects to start from: decoded and defaulted as a body is."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from pilothouse.apis import types
from pilothouse.apis.strategy import Strategy
from pilothouse.machinery.objects import Object
from pilothouse.machinery.schema.decoding import decode

Make = Callable[..., Object]


def merged(base: Object, change: Object) -> Object:
    """A merge patch, so that cases say only what is special about them."""
    out = dict(base)
    for key, value in change.items():
        if value is None:
            out.pop(key, None)
        elif isinstance(value, dict) and isinstance(out.get(key), dict):
            out[key] = merged(out[key], value)
        else:
            out[key] = value
    return out


TEMPLATE: Object = {
    "metadata": {"labels": {"app": "a"}},
    "spec": {"containers": [{"name": "c", "image": "x:1"}]},
}
SPECS: dict[str, Object] = {
    "Deployment": {"selector": {"matchLabels": {"app": "a"}}, "template": TEMPLATE},
    "ReplicaSet": {"selector": {"matchLabels": {"app": "a"}}, "template": TEMPLATE},
    "DaemonSet": {"selector": {"matchLabels": {"app": "a"}}, "template": TEMPLATE},
    "StatefulSet": {"selector": {"matchLabels": {"app": "a"}}, "template": TEMPLATE, "serviceName": "s"},
}


@pytest.fixture
def make() -> Make:
    """make("Deployment", DeploymentStrategy(), spec={…}, status={…}, metadata={…}): a defaulted object."""

    def made(kind: str, strategy: Strategy, **changes: Object) -> Object:
        metadata = {"name": "w", "namespace": "n", "uid": "1", "generation": 1, "resourceVersion": "5"}
        body = merged({"metadata": metadata, "spec": SPECS[kind]}, changes)
        obj, _ = decode(types.struct(f"apps.v1.{kind}"), body)
        strategy.default(obj)
        return obj

    return made
