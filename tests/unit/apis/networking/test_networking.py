"""Ingresses, network policies, IP addresses and service ranges."""

from __future__ import annotations

from typing import Any

import pytest

from pilothouse.machinery import names

GROUP = "networking.k8s.io/v1"
BACKEND: dict[str, Any] = {"service": {"name": "s", "port": {"number": 80}}}


def rule(**fields: Any) -> dict[str, Any]:
    path = {"pathType": "Prefix", "path": "/", "backend": BACKEND, **fields}
    return {"spec": {"rules": [{"http": {"paths": [path]}}]}}


@pytest.mark.parametrize(
    ("body", "wanted"),
    [
        (rule(), []),
        ({"spec": {}}, ["spec: Invalid value: null: either `defaultBackend` or `rules` must be specified"]),
        (rule(path="x"), ['spec.rules[0].http.paths[0].path: Invalid value: "x": must be an absolute path']),
        (rule(path="", pathType="ImplementationSpecific"), []),
        (
            rule(path="/a//b/.."),
            [
                "spec.rules[0].http.paths[0].path: Invalid value: \"/a//b/..\": must not contain '//'",
                "spec.rules[0].http.paths[0].path: Invalid value: \"/a//b/..\": cannot end with '/..'",
            ],
        ),
        (
            rule(pathType="Odd"),
            [
                'spec.rules[0].http.paths[0].pathType: Unsupported value: "Odd": '
                'supported values: "Exact", "ImplementationSpecific", "Prefix"'
            ],
        ),
        (rule(pathType=None), ["spec.rules[0].http.paths[0].pathType: Required value: pathType must be specified"]),
        (
            {"spec": {"defaultBackend": {"service": {"name": "s"}}}},
            ["spec.defaultBackend: Required value: port name or number is required"],
        ),
        (
            {"spec": {"defaultBackend": {}}},
            ['spec.defaultBackend: Invalid value: "": resource or service backend is required'],
        ),
        (
            {"spec": {"defaultBackend": BACKEND, "rules": [{"host": "10.0.0.1"}]}},
            ['spec.rules[0].host: Invalid value: "10.0.0.1": must be a DNS name, not an IP address'],
        ),
        ({"spec": {"defaultBackend": BACKEND, "tls": [{"hosts": ["*.a.b"], "secretName": "s"}]}}, []),
    ],
)
def test_ingress_faults(kind: Any, body: dict[str, Any], wanted: list[str]) -> None:
    assert kind(GROUP, "ingresses").faults(body) == wanted


def test_ingress_generations_rows_and_warnings(kind: Any) -> None:
    ingresses = kind(GROUP, "ingresses")
    hosts = [{"host": f"h{at}.a"} for at in range(5)]
    stored = ingresses.create(
        {
            "metadata": {"name": "a", "annotations": {"kubernetes.io/ingress.class": "x"}},
            "spec": {"defaultBackend": BACKEND, "rules": hosts},
        }
    )
    assert stored["metadata"]["generation"] == 1
    warning = "annotation \"kubernetes.io/ingress.class\" is deprecated, please use 'spec.ingressClassName' instead"
    assert ingresses.warnings == [warning]
    assert ingresses.row(stored)[1:5] == ["<none>", "h0.a,h1.a,h2.a + 2 more...", "", "80"]
    assert ingresses.update(stored, {"spec": {"rules": hosts[:1]}})["metadata"]["generation"] == 2
    assert ingresses.update(stored, {"metadata": {"labels": {"a": "b"}}})["metadata"]["generation"] == 1
    clash = {
        "metadata": {"name": "a", "annotations": {"kubernetes.io/ingress.class": "x"}},
        "spec": {"defaultBackend": BACKEND, "ingressClassName": "y"},
    }
    why = "must match `ingressClassName` when both are specified"
    assert ingresses.faults(clash) == [f'annotations.kubernetes.io/ingress.class: Invalid value: "x": {why}']


def test_ingress_classes(kind: Any) -> None:
    classes = kind(GROUP, "ingressclasses")
    stored = classes.create({"spec": {"controller": "a.b/c", "parameters": {"kind": "K", "name": "n"}}})
    assert stored["spec"]["parameters"]["scope"] == "Cluster"
    assert classes.row(stored)[1:3] == ["a.b/c", "K/n"]
    assert classes.faults({"spec": {"controller": "a.b/d"}}, stored) == [
        'spec.controller: Invalid value: "a.b/d": field is immutable'
    ]
    scoped = {"kind": "K", "name": "n", "scope": "Namespace"}
    assert classes.faults({"spec": {"controller": "a.b/c", "parameters": scoped}}) == [
        "spec.parameters.namespace: Required value: `parameters.scope` is set to 'Namespace'"
    ]
    assert classes.faults({"spec": {"controller": "a.b/c", "parameters": {"scope": "Namespace"}}}) == [
        "spec.parameters.namespace: Required value: `parameters.scope` is set to 'Namespace'",
        "spec.parameters.kind: Required value",
        "spec.parameters.name: Required value",
    ]


def test_wildcard_rules_are_not_judged_again_where_one_named_a_service_by_a_digit(kind: Any) -> None:
    ingresses = kind(GROUP, "ingresses")

    def body(name: str, path: str = "/") -> dict[str, Any]:
        backend = {"service": {"name": name, "port": {"number": 80}}}
        paths = [{"pathType": "Prefix", "path": path, "backend": backend}]
        return {"spec": {"rules": [{"host": "*.a.b", "http": {"paths": paths}}]}}

    assert ingresses.faults(body("1s", "x"), ingresses.create(body("1s"))) == []
    assert len(ingresses.faults(body("s", "x"), ingresses.create(body("s")))) == 1


def policy(**peer: Any) -> dict[str, Any]:
    return {"spec": {"podSelector": {}, "ingress": [{"from": [peer]}]}}


@pytest.mark.parametrize(
    ("body", "wanted"),
    [
        (policy(), ["spec.ingress[0].from[0]: Required value: must specify a peer"]),
        (policy(podSelector={}, namespaceSelector={}), []),
        (
            policy(podSelector={}, ipBlock={"cidr": "10.0.0.0/8"}),
            ["spec.ingress[0].from[0]: Forbidden: may not specify both ipBlock and another peer"],
        ),
        (
            policy(ipBlock={"cidr": "10.0.0.0/8", "except": ["10.1.0.0/16", "10.0.0.0/8", "fd00::/16"]}),
            [
                f'spec.ingress[0].from[0].ipBlock.except[{at}]: Invalid value: "{block}": '
                "must be a strict subset of `cidr`"
                for at, block in ((1, "10.0.0.0/8"), (2, "fd00::/16"))
            ],
        ),
        (
            {"spec": {"podSelector": {}, "egress": [{"ports": [{"port": 80, "endPort": 79}, {"endPort": 1}]}]}},
            [
                "spec.egress[0].ports[0].endPort: Invalid value: 79: must be greater than or equal to `port`",
                "spec.egress[0].ports[1].endPort: Invalid value: 1: may not be specified when `port` is not specified",
            ],
        ),
        (
            {"spec": {"podSelector": {}, "policyTypes": ["Both"]}},
            ['spec.policyTypes[0]: Unsupported value: "Both": supported values: "Ingress", "Egress"'],
        ),
        (
            {**policy(ipBlock={"except": ["x"]}), "metadata": {"name": "A"}},
            [
                f'metadata.name: Invalid value: "A": {names.check_dns1123_subdomain("A")[0]}',
                "spec.ingress[0].from[0].ipBlock.cidr: Required value",
            ],
        ),
        (
            {"spec": {**policy(ipBlock={})["spec"], "policyTypes": ["Both"]}},
            [
                'spec.policyTypes[0]: Unsupported value: "Both": supported values: "Ingress", "Egress"',
                "spec.ingress[0].from[0].ipBlock.cidr: Required value",
            ],
        ),
    ],
)
def test_network_policy_faults(kind: Any, body: dict[str, Any], wanted: list[str]) -> None:
    assert kind(GROUP, "networkpolicies").faults(body) == wanted


def test_policy_types_are_inferred(kind: Any) -> None:
    policies = kind(GROUP, "networkpolicies")
    made = policies.create({"spec": {"podSelector": {"matchLabels": {"a": "b"}}, "egress": [{"ports": [{"port": 1}]}]}})
    assert made["spec"]["policyTypes"] == ["Ingress", "Egress"]
    assert made["spec"]["egress"][0]["ports"] == [{"port": 1, "protocol": "TCP"}]
    assert policies.row(made)[1] == "a=b"


def test_ip_addresses(kind: Any) -> None:
    addresses = kind(GROUP, "ipaddresses")
    parent = {"resource": "services", "namespace": "n", "name": "s"}
    stored = addresses.create({"metadata": {"name": "10.0.0.1"}, "spec": {"parentRef": parent}})
    assert addresses.row(stored)[:2] == ["10.0.0.1", "services/n/s"]
    assert [column.name for column in addresses.strategy.columns] == ["Name", "ParentRef", ""]
    assert addresses.faults({"metadata": {"name": "2001:db8::0001"}, "spec": {"parentRef": parent}}) == [
        'metadata.name: Invalid value: "2001:db8::0001": must be in canonical form ("2001:db8::1")'
    ]
    assert addresses.faults({"metadata": {"name": "10.0.0.1"}}) == ["spec.parentRef: Required value"]
    other = {"spec": {"parentRef": {**parent, "name": "t"}}}
    assert addresses.faults(other, stored) == ["spec.parentRef: Invalid value: null: field is immutable"]
    assert addresses.faults({"spec": {"parentRef": None}}, stored) == [
        "spec.parentRef: Required value",
        "spec.parentRef: Invalid value: null: field is immutable",
    ]
    assert addresses.faults({"spec": {"parentRef": {"resource": "services"}}}, stored) == [
        "spec.parentRef.name: Required value",
        "spec.parentRef: Invalid value: null: field is immutable",
    ]


@pytest.mark.parametrize(
    ("blocks", "wanted"),
    [
        ([], ["spec.cidrs: Required value: at least one CIDR required"]),
        (["10.0.0.0/24", "fd00::/64"], []),
        (
            ["10.0.0.0/24", "10.0.1.0/24"],
            [
                'spec.cidrs: Invalid value: ["10.0.0.0/24","10.0.1.0/24"]: '
                "may specify no more than one IP for each IP family, i.e 192.168.0.0/24 and 2001:db8::/64"
            ],
        ),
        (
            ["::ffff:10.0.0.0/120", "::ffff:10.0.1.0/120"],
            [
                f'spec.cidrs[{at}]: Invalid value: "{block}": must not have an IPv4-mapped IPv6 address'
                for at, block in enumerate(("::ffff:10.0.0.0/120", "::ffff:10.0.1.0/120"))
            ],
        ),
        (
            ["10.0.0.0/24", "fd00::/64", "10.0.1.0/24"],
            [
                'spec.cidrs: Invalid value: {"CIDRs":["10.0.0.0/24","fd00::/64","10.0.1.0/24"]}: '
                "may only hold up to 2 values"
            ],
        ),
    ],
)
def test_service_cidr_faults(kind: Any, blocks: list[str], wanted: list[str]) -> None:
    assert kind(GROUP, "servicecidrs").faults({"spec": {"cidrs": blocks}}) == wanted


def test_a_second_family_may_be_added(kind: Any) -> None:
    cidrs = kind(GROUP, "servicecidrs")
    stored = cidrs.create({"spec": {"cidrs": ["10.0.0.0/24"]}})
    assert cidrs.faults({"spec": {"cidrs": ["10.0.0.0/24", "fd00::/64"]}}, stored) == []
    assert cidrs.faults({"spec": {"cidrs": ["10.0.1.0/24"]}}, stored) == [
        'spec.cidrs[0]: Invalid value: "10.0.1.0/24": field is immutable'
    ]
    labelled = cidrs.update(stored, {"metadata": {"labels": {"a": "b"}}, "status": {"conditions": []}}, "status")
    assert "labels" not in labelled["metadata"]
