from __future__ import annotations

import orjson
import pytest

from pilothouse.machinery.weights import weight_of
from pilothouse.machinery.workers import LONG


@pytest.mark.parametrize(
    "body",
    [
        b"[" + b"{}," * 5_000 + b"{}]",
        b'{"a":[' + b'"",' * 5_000 + b'""]}',
        b"a:\n" + b"-\n" * 5_000,
        b"k8s\0" + b"\x0a\0" * 5_000,
        b"k8s\0" + b"\x0a\1a" * 5_000,
    ],
)
def test_many_short_values_are_long(body: bytes) -> None:
    assert len(body) < LONG <= weight_of(body)


def test_usual_bodies_weigh_as_much_as_they_are_long() -> None:
    port = {"containerPort": 8080, "protocol": "TCP", "name": "http"}
    container = {"name": "nginx", "image": "registry.example/nginx:1.27", "imagePullPolicy": "IfNotPresent"}
    body = orjson.dumps({"kind": "Pod", "spec": {"containers": [{**container, "ports": [port]}] * 20}})
    assert weight_of(body) == len(body)


def test_short_and_long_bodies_are_not_looked_at() -> None:
    assert weight_of(b"," * 600) == 600
    assert weight_of(b"," * LONG) == LONG
