"""Ingress classes."""

from __future__ import annotations

from typing import Any

GROUP = "networking.k8s.io/v1"


def test_ingress_classes(kind: Any) -> None:
    classes = kind(GROUP, "ingressclasses")
    stored = classes.create({"spec": {"controller": "a.b/c", "parameters": {"kind": "K", "name": "n"}}})
    assert stored["spec"]["parameters"]["scope"] == "Cluster"
    assert classes.row(stored)[1:3] == ["a.b/c", "K/n"]
    assert classes.errors({"spec": {"controller": "a.b/d"}}, stored) == [
        'spec.controller: Invalid value: "a.b/d": field is immutable'
    ]
    scoped = {"kind": "K", "name": "n", "scope": "Namespace"}
    assert classes.errors({"spec": {"controller": "a.b/c", "parameters": scoped}}) == [
        "spec.parameters.namespace: Required value: `parameters.scope` is set to 'Namespace'"
    ]
    assert classes.errors({"spec": {"controller": "a.b/c", "parameters": {"scope": "Namespace"}}}) == [
        "spec.parameters.namespace: Required value: `parameters.scope` is set to 'Namespace'",
        "spec.parameters.kind: Required value",
        "spec.parameters.name: Required value",
    ]
