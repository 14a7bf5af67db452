"""EndpointSlices."""

from __future__ import annotations

from typing import Any

import pytest


def piece(type_: str = "IPv4", **endpoint: Any) -> dict[str, Any]:
    return {"addressType": type_, "endpoints": [{"addresses": ["192.0.2.1"], **endpoint}], "ports": [{"port": 80}]}


@pytest.mark.parametrize(
    ("body", "wanted"),
    [
        (piece(), []),
        (piece(""), ["addressType: Required value"]),
        (piece("IP"), ['addressType: Unsupported value: "IP": supported values: "FQDN", "IPv4", "IPv6"']),
        (piece(addresses=[]), ["endpoints[0].addresses: Required value"]),
        (piece(addresses=["10.0.0.1"] * 101), ["endpoints[0].addresses: Too many: 101: must have at most 100 items"]),
        (
            piece(addresses=["2001:db8::1"]),
            ['endpoints[0].addresses: Invalid value: "2001:db8::1": must be an IPv4 address'],
        ),
        (piece("IPv6"), ['endpoints[0].addresses: Invalid value: "192.0.2.1": must be an IPv6 address']),
        (
            piece(hints={"forZones": [{"name": "a"}, {"name": "a"}]}),
            ['endpoints[0].hints.forZones[1].name: Duplicate value: "a"'],
        ),
        ({**piece(), "ports": [{"port": 1}, {"port": 2}]}, ['ports[1].name: Duplicate value: ""']),
        (
            {**piece(), "ports": [{"protocol": "X"}]},
            ['ports[0].protocol: Unsupported value: "X": supported values: "SCTP", "TCP", "UDP"'],
        ),
        (
            {**piece(), "ports": [{"protocol": ""}]},
            ['ports[0].protocol: Unsupported value: "": supported values: "SCTP", "TCP", "UDP"'],
        ),
    ],
)
def test_errors(kind: Any, body: dict[str, Any], wanted: list[str]) -> None:
    assert kind("discovery.k8s.io/v1", "endpointslices").errors(body) == wanted


def test_defaults_generations_and_rows(kind: Any) -> None:
    slices = kind("discovery.k8s.io/v1", "endpointslices")
    stored = slices.create(piece(deprecatedTopology={"a": "b"}))
    assert stored["ports"] == [{"name": "", "port": 80, "protocol": "TCP"}]
    assert "deprecatedTopology" not in stored["endpoints"][0]
    assert stored["metadata"]["generation"] == 1
    assert slices.row(stored)[1:4] == ["IPv4", "80", "192.0.2.1"]
    unnamed = slices.create({"addressType": "IPv4", "ports": [{"protocol": "TCP"}]})
    assert slices.row(unnamed)[1:4] == ["IPv4", "<unset>", "<unset>"]
    labelled = slices.update(stored, {"metadata": {"labels": {"a": "b"}}})
    assert labelled["metadata"]["generation"] == 2
    assert slices.update(labelled, {"metadata": {"annotations": {"a": "b"}}})["metadata"]["generation"] == 2
    assert slices.errors({"addressType": "IPv6"}, stored)[-1] == "addressType: Invalid value: null: field is immutable"


def test_a_type_never_changes(kind: Any) -> None:
    slices = kind("discovery.k8s.io/v1", "endpointslices")
    stored = slices.create({"addressType": "IPv4"})
    immutable = "addressType: Invalid value: null: field is immutable"
    assert slices.errors({"addressType": None}, stored) == ["addressType: Required value", immutable]
    wrong = 'addressType: Unsupported value: "IP": supported values: "FQDN", "IPv4", "IPv6"'
    ports = [{"port": 1}, {"port": 2}]
    found = slices.errors({"addressType": "IP", "ports": ports}, stored)
    assert found == [wrong, 'ports[1].name: Duplicate value: ""', immutable]


def test_an_empty_list_is_no_change(kind: Any) -> None:
    slices = kind("discovery.k8s.io/v1", "endpointslices")
    stored = slices.create({"addressType": "IPv4", "endpoints": [], "ports": []})
    assert slices.update(stored, {"endpoints": [], "ports": []})["metadata"]["generation"] == 1


def test_warnings(kind: Any) -> None:
    slices = kind("discovery.k8s.io/v1", "endpointslices")
    slices.create(piece("FQDN", addresses=["a.b.c"]))
    assert slices.warnings == ["spec.addressType: FQDN endpoints are deprecated"]
    slices.create(piece("IPv6", addresses=["2001:db8::1"]))
    assert slices.warnings == []
