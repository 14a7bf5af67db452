"""Metadata of every kind."""

from __future__ import annotations

from typing import Any

import pytest

from pilothouse.apis.metadata import ANNOTATIONS_LIMIT, validate_metadata, validate_metadata_update
from pilothouse.apis.object_names import name_is_dns_label, name_is_dns_subdomain, name_is_path_segment

OWNER = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "a", "uid": "u"}


def errors_of(namespaced: bool = True, **metadata: Any) -> list[str]:
    given = {"name": "a", **({"namespace": "b"} if namespaced else {}), **metadata}
    errs = validate_metadata(given, namespaced=namespaced, validate_name=name_is_dns_subdomain)
    return [str(err) for err in errs]


def test_good_metadata() -> None:
    assert (
        errors_of(
            labels={"example.com/a": "b"},
            annotations={"Example.com/A": "any\nthing"},
            ownerReferences=[{**OWNER, "controller": True}, OWNER],
            finalizers=["kubernetes", "example.com/x"],
            managedFields=[{"operation": "Apply", "fieldsType": "FieldsV1"}],
        )
        == []
    )


@pytest.mark.parametrize(
    ("metadata", "start"),
    [
        ({"name": ""}, "metadata.name: Required value: name or generateName is required"),
        ({"name": "a_b"}, 'metadata.name: Invalid value: "a_b": a lowercase RFC 1123 subdomain'),
        ({"namespace": ""}, "metadata.namespace: Required value"),
        ({"namespace": "A"}, 'metadata.namespace: Invalid value: "A": a lowercase RFC 1123 label'),
        ({"generation": -1}, "metadata.generation: Invalid value: -1: must be greater than or equal to 0"),
        ({"labels": {"a": "b c"}}, 'metadata.labels: Invalid value: "b c": a valid label must be'),
        ({"annotations": {"a b": ""}}, 'metadata.annotations: Invalid value: "a b": name part must consist'),
        (
            {"annotations": {"a": "x" * ANNOTATIONS_LIMIT}},
            "metadata.annotations: Too long: may not be more than 262144 bytes",
        ),
        (
            {"ownerReferences": [{**OWNER, "uid": ""}]},
            "metadata.ownerReferences[0].uid: Required value: must not be empty",
        ),
        (
            {"ownerReferences": [{**OWNER, "apiVersion": "a/b/c"}]},
            'metadata.ownerReferences[0].apiVersion: Invalid value: "a/b/c": must be <group>/<version> or <version>',
        ),
        (
            {"ownerReferences": [{**OWNER, "apiVersion": "v1", "kind": "Event"}]},
            "metadata.ownerReferences[0]: Invalid value:",
        ),
        (
            {"ownerReferences": [{**OWNER, "controller": True}, {**OWNER, "name": "b", "controller": True}]},
            'metadata.ownerReferences: Invalid value: [{"apiVersion":',
        ),
        ({"finalizers": ["a b"]}, 'metadata.finalizers: Invalid value: "a b"'),
        ({"finalizers": ["orphan", "foregroundDeletion"]}, "metadata.finalizers: Invalid value:"),
        (
            {"managedFields": [{"operation": "Delete"}]},
            'metadata.managedFields[0].operation: Unsupported value: "Delete": supported values: "Apply", "Update"',
        ),
        (
            {"managedFields": [{"manager": "m"}]},
            "metadata.managedFields[0].operation: Required value: must not be empty",
        ),
        (
            {"managedFields": [{"operation": "Apply", "manager": "\u00e9\x07"}]},
            'metadata.managedFields[0].manager: Invalid value: "\u00e9\\a": invalid character U+0007 (at position 2)',
        ),
        (
            {"managedFields": [{"operation": "Apply", "subresource": "s" * 257}]},
            "metadata.managedFields[0].subresource: Too long: may not be more than 256 bytes",
        ),
    ],
)
def test_errors(metadata: dict[str, Any], start: str) -> None:
    (error,) = errors_of(**metadata)
    assert error.startswith(start)


def test_namespace_of_a_cluster_s_object() -> None:
    assert errors_of(False, namespace="b") == ["metadata.namespace: Forbidden: not allowed on this type"]


STORED = {"name": "a", "namespace": "b", "uid": "u", "resourceVersion": "5", "generation": 3, "creationTimestamp": "t"}


@pytest.mark.parametrize(
    ("change", "error"),
    [
        ({}, ""),
        ({"labels": {"x": "y"}}, ""),
        ({"name": "c"}, 'metadata.name: Invalid value: "c": field is immutable'),
        ({"uid": "v"}, 'metadata.uid: Invalid value: "v": field is immutable'),
        ({"generation": 2}, "metadata.generation: Invalid value: 2: must not be decremented"),
        ({"deletionTimestamp": "t"}, 'metadata.deletionTimestamp: Invalid value: "t": field is immutable'),
        ({"resourceVersion": ""}, 'metadata.resourceVersion: Invalid value: "": must be specified for an update'),
    ],
)
def test_updates(change: dict[str, Any], error: str) -> None:
    found = [str(err) for err in validate_metadata_update({**STORED, **change}, STORED)]
    assert found == ([error] if error else [])


def test_no_new_finalizers_on_what_is_being_deleted() -> None:
    old = {**STORED, "deletionTimestamp": "t", "finalizers": ["a.b/c"]}
    assert validate_metadata_update({**old, "finalizers": []}, old) == []
    (error,) = validate_metadata_update({**old, "finalizers": ["a.b/c", "a.b/d"]}, old)
    assert 'found new finalizers []string{"a.b/d"}' in str(error)


@pytest.mark.parametrize(
    ("check", "good", "bad"),
    [
        (name_is_dns_subdomain, ["a", "a.b-c", "1.2"], ["A", "a_b", "a.", "-a", "a" * 254]),
        (name_is_dns_label, ["a", "1-b"], ["a.b", "A", "a" * 64]),
        (name_is_path_segment, ["A b", "system:x", "..."], [".", "..", "a/b", "a%b"]),
    ],
)
def test_names(check: Any, good: list[str], bad: list[str]) -> None:
    assert [name for name in good if check(name, False)] == []
    assert [name for name in bad if not check(name, False)] == []


@pytest.mark.parametrize("check", [name_is_dns_subdomain, name_is_dns_label, name_is_path_segment])
def test_prefixes_may_end_with_a_dash(check: Any) -> None:
    assert check("web-", True) == []
