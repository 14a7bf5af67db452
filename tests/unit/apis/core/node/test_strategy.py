"""Nodes."""

from __future__ import annotations

from typing import Any

import pytest


def test_pod_cidrs_agree(kind: Any) -> None:
    nodes = kind("v1", "nodes")
    assert nodes.create({"spec": {"podCIDR": "10.1.0.0/24"}})["spec"]["podCIDRs"] == ["10.1.0.0/24"]
    assert nodes.create({"spec": {"podCIDRs": ["10.1.0.0/24"]}})["spec"]["podCIDR"] == "10.1.0.0/24"
    both = nodes.create({"spec": {"podCIDR": "10.1.0.0/24", "podCIDRs": ["10.2.0.0/24", "fd00::/64"]}})
    assert both["spec"]["podCIDRs"] == ["10.1.0.0/24"]


def test_allocatable_defaults_to_capacity(kind: Any) -> None:
    made = kind("v1", "nodes").create({"status": {"capacity": {"cpu": "1500u"}}})
    assert made["status"]["allocatable"] == {"cpu": "2m"}
    assert made["status"]["capacity"] == {"cpu": "2m"}


@pytest.mark.parametrize(
    ("body", "wanted"),
    [
        (
            {"spec": {"podCIDRs": ["10.1.0.0/24", "10.2.0.0/24"]}},
            [
                'spec.podCIDRs: Invalid value: ["10.1.0.0/24","10.2.0.0/24"]: '
                "may specify no more than one CIDR for each IP family"
            ],
        ),
        ({"spec": {"podCIDRs": ["10.1.0.0/24", "fd00::/64"]}}, []),
        (
            {"spec": {"taints": [{"key": "a", "effect": "No"}]}},
            [
                'metadata.taints[0].effect: Unsupported value: "No": '
                'supported values: "NoSchedule", "PreferNoSchedule", "NoExecute"'
            ],
        ),
        (
            {"spec": {"taints": [{"key": "a", "effect": "NoExecute"}, {"key": "a", "effect": "NoExecute"}]}},
            [
                'metadata.taints[1]: Duplicate value: {"Key":"a","Value":"","Effect":"NoExecute","TimeAdded":null}: '
                "taints must be unique by key and effect pair"
            ],
        ),
        ({"status": {"capacity": {"pods": "1500m"}}}, 2),
        (
            {"status": {"declaredFeatures": ["B", "A", "A", "x"]}},
            [
                'status.declaredFeatures[1]: Invalid value: "A": list must be sorted alphabetically',
                'status.declaredFeatures[2]: Duplicate value: "A"',
                'status.declaredFeatures[3]: Invalid value: "x": invalid feature name "x": must start with an '
                "UpperCamelCase segment, with subsequent segments separated by '/' (e.g., MyFeature or "
                "MyFeature/mySubFeature), and contain only alphanumeric characters and slashes",
            ],
        ),
    ],
)
def test_node_errors(kind: Any, body: dict[str, Any], wanted: Any) -> None:
    found = kind("v1", "nodes").errors(body)
    assert (len(found) if isinstance(wanted, int) else found) == wanted


def test_what_stays_with_a_node(kind: Any) -> None:
    nodes = kind("v1", "nodes")
    stored = nodes.create({"spec": {"podCIDR": "10.1.0.0/24", "providerID": "x://1"}})
    changed = nodes.errors({"spec": {"podCIDR": "10.2.0.0/24", "providerID": "x://2"}}, stored)
    assert changed == [
        'spec.podCIDRs: Forbidden: node updates may not change podCIDR except from "" to valid',
        "spec.providerID: Invalid value: null: field cannot be modified once set",
    ]
    addresses = [{"type": "InternalIP", "address": "192.0.2.1"}] * 2
    twice = nodes.errors({"status": {"addresses": addresses}}, stored, "status")
    assert twice == ['status.addresses[1]: Duplicate value: {"Type":"InternalIP","Address":"192.0.2.1"}']
    assert nodes.update(stored, {"status": {"phase": "Running"}})["status"] == stored["status"]


def test_node_row(kind: Any) -> None:
    nodes = kind("v1", "nodes")
    made = nodes.create(
        {
            "metadata": {"name": "n", "labels": {"node-role.kubernetes.io/b": "", "kubernetes.io/role": "a"}},
            "spec": {"unschedulable": True},
            "status": {"conditions": [{"type": "Ready", "status": "Unknown"}]},
        }
    )
    row = nodes.row(made)
    assert row[:3] == ["n", "NotReady,SchedulingDisabled", "a,b"]
    assert row[5:] == ["<none>", "<none>", "<unknown>", "<unknown>", "<unknown>"]
    assert nodes.strategy.fields(made) == {"spec.unschedulable": "true"}


TAINTS = "scheduler.alpha.kubernetes.io/taints"


AVOIDED = "scheduler.alpha.kubernetes.io/preferAvoidPods"


@pytest.mark.parametrize(
    ("key", "text", "why"),
    [
        (TAINTS, "[", "unexpected end of JSON input"),
        (TAINTS, "{}", "json: cannot unmarshal object into Go value of type []core.Taint"),
        (TAINTS, "[1]", "json: cannot unmarshal number into Go value of type core.Taint"),
        (TAINTS, '[{"key": 1}]', "json: cannot unmarshal number into Go struct field Taint.Key of type string"),
        (AVOIDED, "[]", "json: cannot unmarshal array into Go value of type v1.AvoidPods"),
        (
            AVOIDED,
            '{"preferAvoidPods": [true]}',
            "json: cannot unmarshal bool into Go struct field AvoidPods.preferAvoidPods of type "
            "v1.PreferAvoidPodsEntry",
        ),
        (
            AVOIDED,
            '{"preferAvoidPods": [{"podSignature": []}]}',
            "json: cannot unmarshal array into Go struct field PreferAvoidPodsEntry.podSignature of type "
            "v1.PodSignature",
        ),
    ],
)
def test_annotations_of_nodes_that_are_no_structs(kind: Any, key: str, text: str, why: str) -> None:
    where = "metadata.annotations" + (".AvoidPods" if key == AVOIDED else "")
    errs = kind("v1", "nodes").errors({"metadata": {"name": "a", "annotations": {key: text}}})
    assert errs == [f'{where}: Invalid value: "{key}": {why}']


def test_taints_of_old_nodes(kind: Any) -> None:
    nodes = kind("v1", "nodes")
    assert nodes.errors({"metadata": {"name": "a", "annotations": {TAINTS: "null"}}}) == []
    text = '[{"Key": "a", "effect": "NoSchedule", "other": 1}, {"key": "b"}]'
    errs = nodes.errors({"metadata": {"name": "a", "annotations": {TAINTS: text}}})
    assert errs == [f"metadata.annotations.{TAINTS}[1].effect: Required value"]


def test_blocks_that_are_none(kind: Any) -> None:
    errs = kind("v1", "nodes").errors({"spec": {"podCIDRs": ["10.0.0.0/24", "x"]}})
    assert [error for error in errs if "podCIDRs[" not in error] == [
        "spec.podCIDRs: Internal error: invalid PodCIDRs. failed to check with dual stack with error:invalid CIDR[1]: "
        "<nil> (invalid CIDR address: x)",
        'spec.podCIDRs: Invalid value: ["10.0.0.0/24","x"]: may specify no more than one CIDR for each IP family',
    ]
