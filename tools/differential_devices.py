"""Conversations about devices: classes, slices, claims with what was allocated to them, and pods that want them."""

from __future__ import annotations

import random
from typing import Any

from differential_admission import MERGE, dump, own_space
from differential_answers import Request

_ROOT = "/apis/resource.k8s.io/v1"
_EXPRESSIONS = (
    "device.driver == 'd.example'", "device.attributes['d.example'].model == 'a'", "true", "1", "device.nobody == 1",
    "device.capacity['d.example'].memory.isGreaterThan(quantity('1Gi'))", "device.", "device.attributes.size() > 1",
    "device.attributes['d.example'].exists(k, k == 'a')", "'a' in device.attributes['d.example']",
)  # fmt: skip


def _selectors(choice: random.Random) -> list[dict[str, Any]]:
    return [{"cel": {"expression": choice.choice(_EXPRESSIONS)}} for _ in range(choice.randrange(2))]


def _request(choice: random.Random, name: str) -> dict[str, Any]:
    exact: dict[str, Any] = {"deviceClassName": choice.choice(("c", "c", "", "Bad Name"))}
    exact |= choice.choice(({}, {"count": choice.choice((0, 1, 2, -1))}, {"allocationMode": "All"}))
    exact |= choice.choice(({}, {}, {"adminAccess": True}, {"allocationMode": "Other"}))
    exact["selectors"] = _selectors(choice)
    if choice.random() < 0.2:
        first = {"name": choice.choice(("s", "BAD")), "deviceClassName": "c", "selectors": _selectors(choice)}
        return {"name": name, "firstAvailable": [first], **choice.choice(({}, {}, {"exactly": exact}))}
    return {"name": name, "exactly": exact}


def _devices(choice: random.Random) -> dict[str, Any]:
    spec: dict[str, Any] = {"requests": [_request(choice, choice.choice("ab")) for _ in range(choice.randrange(1, 3))]}
    if choice.random() < 0.3:
        spec["constraints"] = [
            {"requests": [choice.choice("abz")], "matchAttribute": choice.choice(("d.example/a", "a", ""))}
        ]
    if choice.random() < 0.2:
        opaque = {"driver": choice.choice(("d.example", "")), "parameters": choice.choice(({"a": 1}, None))}
        spec["config"] = [{"requests": ["a"], "opaque": opaque}]
    return spec


def _allocation(choice: random.Random) -> dict[str, Any]:
    result = {
        "request": choice.choice(("a", "a", "b", "z", "a/s")),
        "driver": choice.choice(("d.example", "D")),
        "pool": choice.choice(("p", "p/q", "")),
        "device": choice.choice(("x", "y", "Z")),
    }
    found: dict[str, Any] = {"devices": {"results": [result] * choice.choice((1, 1, 2))}}
    term = {"matchExpressions": [{"key": "a", "operator": "In", "values": ["b"]}]}
    return found | choice.choice(
        ({}, {"nodeSelector": {"nodeSelectorTerms": [term]}}, {"nodeSelector": {"nodeSelectorTerms": []}})
    )


def _status(choice: random.Random) -> dict[str, Any]:
    user = {"resource": choice.choice(("pods", "")), "name": choice.choice(("p", "")), "uid": choice.choice(("1", "2"))}
    device = {
        "driver": "d.example",
        "pool": "p",
        "device": choice.choice(("x", "q")),
        "data": choice.choice((None, {"a": 1})),
        "networkData": {"ips": [choice.choice(("1.2.3.4/8", "x"))]},
    }
    whole = {
        "allocation": choice.choice((_allocation(choice), None)),
        "reservedFor": [user] * choice.choice((0, 1, 1, 2)),
        "devices": [device] * choice.choice((0, 1)),
    }
    return {key: whole[key] for key in choice.sample(sorted(whole), choice.randrange(1, 4))}


def _slice(choice: random.Random, name: str) -> dict[str, Any]:
    device = {
        "name": choice.choice(("x", "Z")),
        "attributes": {choice.choice(("a", "d.example/a", "a b")): {"string": "v"}},
        "capacity": {"memory": {"value": choice.choice(("1Gi", "0"))}},
    }
    spec: dict[str, Any] = {
        "driver": "d.example",
        "pool": {"name": name, "generation": choice.choice((1, 2, -1)), "resourceSliceCount": choice.choice((1, 0))},
        "devices": [device] * choice.choice((0, 1, 1, 2)),
    }
    return spec | choice.choice(({"nodeName": "n"}, {"allNodes": True}, {}, {"nodeName": "n", "allNodes": True}))


def devices(choice: random.Random, names: Any) -> list[Request]:
    """Claims and templates, their statuses, slices that change, classes, and a pod that refers to them."""
    labels = choice.choice(({}, {}, {"resource.kubernetes.io/admin-access": "true"}))
    namespace, where, made = own_space(names.name, **labels)
    claims, templates = (
        f"{_ROOT}/namespaces/{namespace}/{each}" for each in ("resourceclaims", "resourceclaimtemplates")
    )
    slices, classes, name = f"{_ROOT}/resourceslices", f"{_ROOT}/deviceclasses", names.name
    own = {"metadata": {"name": name}}
    said = [made]
    said.append(
        Request(
            "POST", claims, dump({"metadata": {"name": "c"}, "spec": {"devices": _devices(choice)}}), unordered=True
        )
    )
    statuses = [dump({"status": _status(choice)}) for _ in range(3)]
    said += (Request("PATCH", f"{claims}/c/status", each, MERGE, unordered=True) for each in statuses)
    said.append(Request("PATCH", f"{claims}/c", dump({"spec": {"devices": _devices(choice)}}), MERGE, unordered=True))
    template = {"metadata": {"name": "t"}, "spec": {"spec": {"devices": _devices(choice)}}}
    said.append(Request("POST", templates, dump(template), unordered=True))
    said.append(Request("POST", slices, dump({**own, "spec": _slice(choice, name)}), unordered=True))
    said.append(Request("PATCH", f"{slices}/{name}", dump({"spec": _slice(choice, name)}), MERGE, unordered=True))
    said.append(Request("POST", classes, dump({**own, "spec": {"selectors": _selectors(choice)}}), unordered=True))
    wanted = choice.choice(
        (
            {"resourceClaimName": "c"},
            {"resourceClaimTemplateName": "t"},
            {},
            {"resourceClaimName": "c", "resourceClaimTemplateName": "t"},
        )
    )
    container = {
        "name": "c",
        "image": "i",
        "resources": {"claims": [{"name": choice.choice(("k", "z")), "request": choice.choice(("a", ""))}]},
    }
    pod = {"metadata": {"name": "p"}, "spec": {"containers": [container], "resourceClaims": [{"name": "k", **wanted}]}}
    said.append(Request("POST", f"{where}/pods", dump(pod), unordered=True))
    status = {
        "resourceClaimStatuses": [{"name": choice.choice(("k", "q")), "resourceClaimName": choice.choice(("c", "BAD"))}]
    }
    said.append(Request("PATCH", f"{where}/pods/p/status", dump({"status": status}), MERGE, unordered=True))
    ends = (f"{where}/pods/p?gracePeriodSeconds=0", f"{claims}/c", f"{slices}/{name}", f"{classes}/{name}")
    return [*said, Request("GET", f"{claims}/c"), *(Request("DELETE", end) for end in ends)]
