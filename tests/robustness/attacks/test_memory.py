"""How many times its own size a request may make the process grow, each in a process of its own.

Twenty times is the rule. What is made of very small values cannot keep it: Python's empty object takes 64 bytes for the
three of ``{},``, one with a single field 184 for the six of ``{"a":``, and what field management notes of each takes as
much again where no two are alike. The limits here are what such requests take, and some room.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from http.client import HTTPSConnection
from typing import Any

import orjson
import pytest

MAPS = "/api/v1/namespaces/default/configmaps"
POLICIES = "/apis/networking.k8s.io/v1/namespaces/default/networkpolicies"
PODS = "/api/v1/namespaces/default/pods"
WIDGETS = "/apis/memory.example/v1/namespaces/default/widgets"
APPLY = "application/apply-patch+yaml"


def of(version: str, kind: str, **fields: Any) -> bytes:
    return orjson.dumps({"apiVersion": version, "kind": kind, "metadata": {"name": "attack"}, **fields})


def many_keys() -> bytes:
    return of("v1", "ConfigMap", data={f"k{number}": "" for number in range(100_000)})


def many_rules() -> bytes:
    rule = {"ports": [{"port": 80, "protocol": "TCP"}], "from": [{"ipBlock": {"cidr": "10.0.0.0/8"}}]}
    spec = {"podSelector": {}, "ingress": [rule] * 14_000, "policyTypes": ["Ingress"]}
    return of("networking.k8s.io/v1", "NetworkPolicy", spec=spec)


def many_containers() -> bytes:
    return of("v1", "Pod", spec={"containers": [{"name": f"c{number}"} for number in range(30_000)]})


def many_finalizers() -> bytes:
    names = [f"a.example/f{number}" for number in range(50_000)]
    return of("v1", "ConfigMap", metadata={"name": "attack", "finalizers": names})


def many_mismatches() -> bytes:
    return of("v1", "ConfigMap", data={f"k{number}": {"b": {}} for number in range(80_000)})


def maps_in_maps() -> bytes:
    return of("memory.example/v1", "Widget", spec={f"k{number}": {"b": {}} for number in range(50_000)})


def chains_of_maps() -> bytes:
    chain = b'{"a":' * 60 + b"{}" + b"}" * 60
    spec = b",".join(b'"k%d":%b' % (number, chain) for number in range(1_250))
    return of("memory.example/v1", "Widget", spec={})[:-3] + b"{" + spec + b"}}"


@pytest.fixture
def warm(fresh: Any) -> Any:
    """A server that has served a custom resource and an apply of each kind."""
    group, names = "memory.example", {"plural": "widgets", "kind": "Widget"}
    anything = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    schema = {"type": "object", "properties": {"spec": anything}}
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    fresh.establish(
        {
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition",
            "metadata": {"name": f"widgets.{group}"},
            "spec": {"group": group, "scope": "Namespaced", "names": names, "versions": [version]},
        }
    )
    for path, body in ((MAPS, of("v1", "ConfigMap")), (WIDGETS, of("memory.example/v1", "Widget"))):
        small = body.replace(b"attack", b"warm")
        assert fresh.call("PATCH", f"{path}/warm?fieldManager=m", small, APPLY).status == 201
    return fresh


@pytest.mark.parametrize(
    ("path", "make", "times"),
    [
        (MAPS, many_keys, 35),
        (POLICIES, many_rules, 26),
        (PODS, many_containers, 46),
        (MAPS, many_finalizers, 26),
        (WIDGETS, maps_in_maps, 42),
    ],
    ids=lambda value: getattr(value, "__name__", None),
)
def test_creates(warm: Any, path: str, make: Callable[[], bytes], times: int) -> None:
    body = make()
    with warm.attacked(f"create: {make.__name__}, {len(body) >> 10} KB", allowance=times * len(body)):
        assert warm.call("POST", path, body).status in (201, 403, 500)


@pytest.mark.parametrize(
    ("path", "make", "times"),
    [
        (MAPS, many_keys, 35),
        (MAPS, many_mismatches, 35),
        (WIDGETS, maps_in_maps, 39),
        (WIDGETS, chains_of_maps, 60),
    ],
    ids=lambda value: getattr(value, "__name__", None),
)
def test_applies(warm: Any, path: str, make: Callable[[], bytes], times: int) -> None:
    body = make()
    with warm.attacked(f"apply: {make.__name__}, {len(body) >> 10} KB", allowance=times * len(body)):
        assert warm.call("PATCH", f"{path}/attack?fieldManager=m", body, APPLY).status in (201, 500)


def test_refused_writes_leave_nothing_behind(warm: Any) -> None:
    """Each of them once left its object in memory until cycles were looked for: 15 MB for 1.1 MB."""
    body = many_keys()
    assert warm.call("POST", MAPS, body).status == 201
    with warm.attacked("a config map that exists created 5 times", allowance=45 << 20):
        for _ in range(5):
            assert warm.call("POST", MAPS, body).status == 409


@pytest.mark.parametrize(
    ("what", "length", "anonymous", "path", "status"),
    [
        ("paths", 400_000, True, "/{}", 403),
        ("groups", 400_000, True, "/apis/g{}/v1/namespaces/default/r", 403),
        ("selectors", 60_000, False, "/api/v1/pods?fieldSelector=metadata.name={0}&labelSelector=a={0}", 400),
    ],
)
def test_refused_reads_leave_nothing_behind(
    fresh: Any, what: str, length: int, anonymous: bool, path: str, status: int
) -> None:
    """Decisions are remembered, by what was asked for; of what is long nothing may be."""
    connection = HTTPSConnection("127.0.0.1", fresh.port, timeout=120, context=fresh.contexts[anonymous])
    with closing(connection), fresh.attacked(f"80 {what} of {length} letters", allowance=20 << 20):
        for number in range(80):
            connection.request("GET", path.format(f"{number}{'x' * length}"))
            answer = connection.getresponse()
            answer.read()
            assert answer.status == status
