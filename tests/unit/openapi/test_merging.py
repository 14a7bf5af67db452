"""Documents of several servers become one, whatever names they give to their parts."""

from __future__ import annotations

from typing import Any

from pilothouse.openapi.merging import merge_into, only_below

KINDS = "x-kubernetes-group-version-kind"


def reference(name: str) -> dict[str, str]:
    return {"$ref": f"#/definitions/{name}"}


def path(model: str, parameter: str = "") -> dict[str, Any]:
    operation: dict[str, Any] = {"responses": {"200": {"schema": reference(model)}}}
    if parameter:
        operation["parameters"] = [{"$ref": f"#/parameters/{parameter}"}]
    return {"get": operation}


def kind(group: str) -> dict[str, str]:
    return {"group": group, "version": "v1", "kind": "DeleteOptions"}


def test_paths_that_are_not_wanted_take_their_definitions_with_them() -> None:
    document = {
        "paths": {"/apis/a/v1/x": path("X"), "/apis/b/v1/y": path("Y")},
        "definitions": {
            "X": {"properties": {"part": reference("Part"), "again": reference("X")}},
            "Part": {"type": "string"},
            "Y": {"properties": {"part": reference("Other")}},
            "Other": {},
            "Unused": {},
        },
    }
    kept = only_below(document, ("/apis/a/v1/",))
    assert set(kept["paths"]) == {"/apis/a/v1/x"}
    assert set(kept["definitions"]) == {"X", "Part", "Unused"}


def test_a_path_that_is_there_stays() -> None:
    target = {"paths": {"/x": path("Mine")}, "definitions": {"Mine": {"type": "object"}}}
    merge_into(target, {"paths": {"/x": path("Theirs"), "/y": path("New")}, "definitions": {"Theirs": {}, "New": {}}})
    assert target["paths"]["/x"] == path("Mine")
    assert set(target["definitions"]) == {"Mine", "New"}


def test_equal_definitions_are_one_and_their_kinds_are_joined() -> None:
    target = {"paths": {}, "definitions": {"D": {"type": "object", KINDS: [kind("z"), kind("a")]}}}
    merge_into(target, {"paths": {"/y": path("D")}, "definitions": {"D": {"type": "object", KINDS: [kind("m")]}}})
    assert target["definitions"] == {"D": {"type": "object", KINDS: [kind("a"), kind("m"), kind("z")]}}


def test_what_differs_gets_another_name_everywhere() -> None:
    target: dict[str, Any] = {
        "paths": {"/x": path("D", "p-1")},
        "definitions": {"D": {"type": "object"}, "D_v2": {"type": "boolean"}},
        "parameters": {"p-1": {"name": "p"}},
    }
    source = {
        "paths": {"/y": path("D", "p-1")},
        "definitions": {"D": {"type": "string"}, "E": {"items": reference("D")}},
        "parameters": {"p-1": {"name": "q"}},
    }
    merge_into(target, source)
    assert target["paths"]["/y"] == path("D_v3", "p-1_v2")
    assert target["definitions"]["E"] == {"items": reference("D_v3")}
    assert target["definitions"]["D_v3"] == {"type": "string"}
    assert target["parameters"] == {"p-1": {"name": "p"}, "p-1_v2": {"name": "q"}}
    assert source["definitions"]["E"] == {"items": reference("D")}, "the source is not touched"


def test_a_name_that_was_given_before_is_used_again() -> None:
    target: dict[str, Any] = {"paths": {"/x": path("D")}, "definitions": {"D": {"type": "object"}}}
    for each in ("/y", "/z"):
        merge_into(target, {"paths": {each: path("D")}, "definitions": {"D": {"type": "string"}}})
    assert set(target["definitions"]) == {"D", "D_v2"}
    assert target["paths"]["/z"] == path("D_v2")
