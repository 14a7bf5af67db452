"""Network policies."""

from __future__ import annotations

from typing import Any

import pytest

from pilothouse.machinery import names

GROUP = "networking.k8s.io/v1"


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
def test_network_policy_errors(kind: Any, body: dict[str, Any], wanted: list[str]) -> None:
    assert kind(GROUP, "networkpolicies").errors(body) == wanted


def test_policy_types_are_inferred(kind: Any) -> None:
    policies = kind(GROUP, "networkpolicies")
    made = policies.create({"spec": {"podSelector": {"matchLabels": {"a": "b"}}, "egress": [{"ports": [{"port": 1}]}]}})
    assert made["spec"]["policyTypes"] == ["Ingress", "Egress"]
    assert made["spec"]["egress"][0]["ports"] == [{"port": 1, "protocol": "TCP"}]
    assert policies.row(made)[1] == "a=b"
