"""Errors by written and by declared rules, and names that only declared rules judge."""

from __future__ import annotations

from typing import Any

from pilothouse.apis.error_lists import ErrorList
from pilothouse.machinery import names
from pilothouse.machinery.field_errors import Path, invalid, required
from pilothouse.machinery.schema.emptied import note_empty
from pilothouse.registry.rest.given_values import restate

NAME = "A" * 254
NAME_ERRORS = [f'metadata.name: Invalid value: "{NAME}": {m}' for m in names.check_dns1123_subdomain(NAME, "bytes")]


def test_declared_errors_come_last() -> None:
    errs = ErrorList()
    errs.declared.append(required(Path("a")))
    errs.keep(Path("b"), 1, 2)
    errs.errors.append(invalid(Path("c"), 1, "no"))
    assert not errs.keep_declared(Path("d"), 1, 2)
    assert [str(error) for error in errs.listed()] == [
        "b: Invalid value: 1: field is immutable",
        "c: Invalid value: 1: no",
        "a: Required value",
        "d: Invalid value: null: field is immutable",
    ]


def test_declared_rules_do_not_show_what_was_given_as_empty() -> None:
    errs = ErrorList()
    given = note_empty(note_empty({}, "written", {}), "declared", {})
    errs.keep(Path("written"), None, {"a": "b"})
    errs.keep_declared(Path("declared"), None, {"a": "b"})
    restate(errs.listed(), given)
    assert [str(error) for error in errs.listed()] == [
        "written: Invalid value: {}: field is immutable",
        "declared: Invalid value: null: field is immutable",
    ]


def test_some_kinds_declare_the_rule_for_names(kind: Any) -> None:
    assert NAME_ERRORS[0].endswith("must be no more than 253 bytes")
    controllers = kind("v1", "replicationcontrollers")
    metadata = {"name": NAME, "generateName": "_", "labels": {"a": "-"}}
    spec = {"replicas": -1, "selector": {"a": "b"}}
    found = controllers.errors({"metadata": metadata, "spec": spec})
    assert found[0].startswith("metadata.labels: ")
    assert found[1:] == [
        "spec.template: Required value",
        *NAME_ERRORS,
        "spec.replicas: Invalid value: -1: must be greater than or equal to 0",
    ]
    assert kind("resource.k8s.io/v1", "deviceclasses").errors({"metadata": {"name": NAME}, "spec": {}}) == NAME_ERRORS
