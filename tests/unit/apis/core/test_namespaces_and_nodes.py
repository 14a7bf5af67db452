"""Namespaces and Nodes."""

from __future__ import annotations

from typing import Any

import pytest

from pilothouse.apis.strategy import Context
from pilothouse.machinery.errors import StatusError
from pilothouse.registry.rest.deletion import DeleteOptions, Outcome, plan_deletion

LATER = "2026-01-02T03:05:00Z"


def test_a_new_namespace(kind: Any) -> None:
    made = kind("v1", "namespaces").create({"spec": {"finalizers": ["a.b/c"]}, "status": {"phase": "Terminating"}})
    assert made["spec"] == {"finalizers": ["a.b/c", "kubernetes"]}
    assert made["status"] == {"phase": "Active"}
    assert made["metadata"]["labels"] == {"kubernetes.io/metadata.name": "a"}


def test_namespace_faults(kind: Any) -> None:
    namespaces = kind("v1", "namespaces")
    assert namespaces.faults({"spec": {"finalizers": ["x"]}}) == [
        'spec.finalizers: Invalid value: "x": name is neither a standard finalizer name nor is it fully qualified'
    ]
    stored = namespaces.create({})
    assert namespaces.update(stored, {"spec": {"finalizers": []}})["spec"] == {"finalizers": ["kubernetes"]}
    assert namespaces.update(stored, {"spec": {"finalizers": []}}, "finalize")["spec"] == {}
    assert namespaces.faults({"spec": {"finalizers": ["x"]}}, stored, "finalize")[0].startswith("spec.finalizers[0]: ")
    why = "status.Phase: Invalid value: \"Terminating\": may only be 'Active' if `deletionTimestamp` is empty"
    assert namespaces.faults({"status": {"phase": "Terminating"}}, stored, "status") == [why]
    labelled = namespaces.update(stored, {"metadata": {"labels": {"kubernetes.io/metadata.name": "b"}}})
    assert labelled["metadata"]["labels"] == {"kubernetes.io/metadata.name": "a"}


def plan(kind: Any, stored: dict[str, Any], **options: Any) -> Any:
    namespaces = kind("v1", "namespaces")
    return plan_deletion(namespaces.resource, namespaces.strategy, Context(now=LATER), stored, DeleteOptions(**options))


def test_a_namespace_goes_in_two_steps(kind: Any) -> None:
    stored = kind("v1", "namespaces").create({})
    first = plan(kind, stored)
    assert (first.outcome, first.then_remove) == (Outcome.MARKED, False)
    assert first.object["metadata"]["deletionTimestamp"] == LATER
    assert "deletionGracePeriodSeconds" not in first.object["metadata"]
    assert first.object["status"]["phase"] == "Terminating"
    assert stored["status"]["phase"] == "Active"
    assert plan(kind, first.object).outcome is Outcome.PENDING
    emptied = {**first.object, "spec": {}}
    assert plan(kind, emptied).outcome is Outcome.GONE


@pytest.mark.parametrize(
    ("options", "wanted"),
    [
        ({}, None),
        ({"orphan_dependents": True}, ["orphan"]),
        ({"orphan_dependents": False}, ["foregroundDeletion"]),
        ({"propagation_policy": "Foreground"}, ["foregroundDeletion"]),
        ({"propagation_policy": "Background"}, None),
    ],
)
def test_cascading_finalizers_of_a_namespace(kind: Any, options: dict[str, Any], wanted: list[str] | None) -> None:
    marked = plan(kind, kind("v1", "namespaces").create({}), **options)
    assert marked.object["metadata"].get("finalizers") == wanted


def test_preconditions_of_a_namespace(kind: Any) -> None:
    stored = kind("v1", "namespaces").create({})
    with pytest.raises(StatusError) as caught:
        plan(kind, stored, precondition_uid="x")
    uid = stored["metadata"]["uid"]
    assert caught.value.message == (
        'Operation cannot be fulfilled on namespaces "a": '
        f"Precondition failed: UID in precondition: x, UID in object meta: {uid}"
    )


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
def test_node_faults(kind: Any, body: dict[str, Any], wanted: Any) -> None:
    found = kind("v1", "nodes").faults(body)
    assert (len(found) if isinstance(wanted, int) else found) == wanted


def test_what_stays_with_a_node(kind: Any) -> None:
    nodes = kind("v1", "nodes")
    stored = nodes.create({"spec": {"podCIDR": "10.1.0.0/24", "providerID": "x://1"}})
    changed = nodes.faults({"spec": {"podCIDR": "10.2.0.0/24", "providerID": "x://2"}}, stored)
    assert changed == [
        'spec.podCIDRs: Forbidden: node updates may not change podCIDR except from "" to valid',
        "spec.providerID: Invalid value: null: field cannot be modified once set",
    ]
    addresses = [{"type": "InternalIP", "address": "192.0.2.1"}] * 2
    twice = nodes.faults({"status": {"addresses": addresses}}, stored, "status")
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
    faults = kind("v1", "nodes").faults({"metadata": {"name": "a", "annotations": {key: text}}})
    assert faults == [f'{where}: Invalid value: "{key}": {why}']


def test_taints_of_old_nodes(kind: Any) -> None:
    nodes = kind("v1", "nodes")
    assert nodes.faults({"metadata": {"name": "a", "annotations": {TAINTS: "null"}}}) == []
    text = '[{"Key": "a", "effect": "NoSchedule", "other": 1}, {"key": "b"}]'
    faults = nodes.faults({"metadata": {"name": "a", "annotations": {TAINTS: text}}})
    assert faults == [f"metadata.annotations.{TAINTS}[1].effect: Required value"]


def test_blocks_that_are_none(kind: Any) -> None:
    faults = kind("v1", "nodes").faults({"spec": {"podCIDRs": ["10.0.0.0/24", "x"]}})
    assert [fault for fault in faults if "podCIDRs[" not in fault] == [
        "spec.podCIDRs: Internal error: invalid PodCIDRs. failed to check with dual stack with error:invalid CIDR[1]: "
        "<nil> (invalid CIDR address: x)",
        'spec.podCIDRs: Invalid value: ["10.0.0.0/24","x"]: may specify no more than one CIDR for each IP family',
    ]


@pytest.mark.parametrize(
    ("version", "resource", "body"),
    [
        ("v1", "configmaps", {}),
        ("v1", "nodes", {}),
        ("v1", "secrets", {}),
        ("v1", "limitranges", {}),
    ],
)
def test_finalizers_need_a_domain_in_updates_too(kind: Any, version: str, resource: str, body: Any) -> None:
    what = kind(version, resource)
    stored = what.create(body)
    faults = what.faults({"metadata": {"finalizers": ["plain", "x.y/z"]}}, stored)
    why = 'Invalid value: "plain": name is neither a standard finalizer name nor is it fully qualified'
    assert faults == [f"metadata.finalizers[0]: {why}"]


def test_events_may_have_any_finalizer(kind: Any) -> None:
    body = {"metadata": {"name": "a", "finalizers": ["plain"]}, "involvedObject": {"namespace": "ns"}}
    assert kind("v1", "events").faults(body) == []
    strict = kind("events.k8s.io/v1", "events").faults(body)
    assert any(fault.startswith('metadata.finalizers[0]: Invalid value: "plain": name is neither') for fault in strict)


def test_metadata_of_core_events_is_judged_last(kind: Any) -> None:
    nameless = {"metadata": {"name": ""}, "involvedObject": {"namespace": "elsewhere"}}
    assert kind("v1", "events").faults(nameless) == [
        'involvedObject.namespace: Invalid value: "elsewhere": does not match event.namespace'
    ]


@pytest.mark.parametrize(("version", "count"), [("v1", 0), ("events.k8s.io/v1", 1)])
def test_prefixes_of_strict_events_are_subdomains(kind: Any, version: str, count: int) -> None:
    faults = kind(version, "events").faults(
        {"metadata": {"name": "a", "generateName": "Not_Valid"}, "involvedObject": {"namespace": "ns"}}
    )
    assert sum("metadata.generateName" in fault for fault in faults) == count
