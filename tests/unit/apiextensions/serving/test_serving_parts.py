"""The parts that serve custom resources, each alone: bodies, strategies, versions, bytes, columns, scales."""

from __future__ import annotations

import asyncio

import orjson
import pytest

from pilothouse.apiextensions.serving.body import CustomBody
from pilothouse.apiextensions.serving.codec import CustomCodec
from pilothouse.apiextensions.serving.columns import table_columns
from pilothouse.apiextensions.serving.conversion import (
    ConversionFailed,
    Converted,
    Rendering,
    Versions,
    unreadable_list,
)
from pilothouse.apiextensions.serving.scale import AccessError, nested, scale_checker
from pilothouse.apiextensions.serving.strategies import CustomStatusStrategy, CustomStrategy, StatusfulStrategy
from pilothouse.apis import types
from pilothouse.apis.apiextensions.schema.compiled import ObjectSchema
from pilothouse.apis.strategy import Context
from pilothouse.endpoints.negotiation import NO_PROTOBUF
from pilothouse.machinery.errors import StatusError
from pilothouse.machinery.gvk import GroupResource, GroupVersionKind
from pilothouse.machinery.schema.decoding import DecodeError

GVK = GroupVersionKind("example.com", "v1", "Box")
SPEC = {"type": "object", "properties": {"a": {"type": "string"}, "n": {"type": "integer", "default": 1}}}
SCHEMA = ObjectSchema({"type": "object", "properties": {"spec": SPEC, "status": {"type": "object"}}})
BODY = CustomBody(
    GVK, types.struct("meta.v1.PartialObjectMetadata"), "unstructured", NO_PROTOBUF, schemas={"v1": SCHEMA}
)
CTX = Context()


def box(**more):
    return {"apiVersion": "example.com/v1", "kind": "Box", "metadata": {"name": "one"}, **more}


def test_a_body_is_pruned_and_its_metadata_typed():
    given = box(spec={"a": "x", "b": 1}, extra=1)
    given["metadata"]["zzz"] = 1
    obj, errs = BODY.decode(given)
    assert obj == box(spec={"a": "x"})
    assert errs() == ['unknown field "metadata.zzz"', 'unknown field "extra"', 'unknown field "spec.b"']
    assert "extra" in given


def test_objects_of_a_version_nobody_knows_lose_everything():
    obj, errs = BODY.decode({**box(spec={"a": "x"}), "apiVersion": "example.com/v7"})
    assert obj == {**box(), "apiVersion": "example.com/v7"}
    assert errs() == ['unknown field "spec"']


def test_bodies_that_cannot_be_read():
    with pytest.raises(DecodeError) as caught:
        BODY.decode(box(metadata={"name": 5}))
    assert "ObjectMeta.name of type string" in str(caught.value)


@pytest.mark.parametrize(
    ("value", "part"),
    [
        ({"apiVersion": "example.com/v1"}, "Object 'Kind' is missing in"),
        ({"kind": "Box"}, "the API version in the data () does not match the expected API version (example.com/v1)"),
        ({"kind": "Box", "apiVersion": "example.com/v2"}, "the API version in the data (example.com/v2)"),
    ],
)
def test_bodies_of_another_kind(value, part):
    with pytest.raises(StatusError) as caught:
        BODY.check_version(BODY.identify(value, orjson.dumps(value)))
    assert part in caught.value.message


@pytest.mark.parametrize(
    ("named", "unknown"),
    [
        ({}, ["spec.b"]),
        ({"apiVersion": "example.com/v9"}, ["spec"]),
        ({"apiVersion": "other.com/v1"}, []),
        ({"apiVersion": "v1"}, []),
        ({"apiVersion": ""}, []),
        ({"kind": "Crate"}, []),
    ],
)
def test_what_says_it_is_something_else_is_not_looked_into(named, unknown):
    _, errs = BODY.decode(box(spec={"a": "x", "b": 1}) | named)
    assert (errs() if errs else []) == [f'unknown field "{path}"' for path in unknown]


def test_a_version_that_is_null():
    with pytest.raises(DecodeError, match=r"\.apiVersion accessor error: <nil> is of the type <nil>, expected string"):
        BODY.decode(box() | {"apiVersion": None})


def test_errors_of_metadata_come_in_key_order():
    with pytest.raises(DecodeError) as caught:
        BODY.decode(box(metadata={"name": 5, "labels": {"a": True}}))
    assert str(caught.value) == "json: cannot unmarshal bool into Go struct field ObjectMeta.labels of type string"


def test_a_status_of_its_own_is_kept_from_other_writes():
    strategy = StatusfulStrategy(GVK, SCHEMA)
    obj = box(status={"x": 1})
    strategy.prepare_for_create(CTX, obj)
    assert "status" not in obj
    changed = box(spec={"a": "y"}, status={"x": 2})
    strategy.prepare_for_update(CTX, changed, box(spec={"a": "x"}, status={"x": 1}))
    assert changed == box(spec={"a": "y"}, status={"x": 1})


def test_through_the_status_nothing_else_changes():
    strategy = CustomStatusStrategy(StatusfulStrategy(GVK, SCHEMA))
    obj = box(spec={"a": "new"}, status={"x": 2})
    obj["metadata"] |= {"labels": {"a": "b"}, "managedFields": [1]}
    strategy.prepare_for_update(CTX, obj, box(spec={"a": "old"}, status={"x": 1}))
    assert obj == {**box(spec={"a": "old"}, status={"x": 2}), "metadata": {"name": "one", "managedFields": [1]}}


def test_another_kind_is_refused_before_anything_else():
    with pytest.raises(StatusError) as caught:
        CustomStrategy(GVK, SCHEMA).prepare_for_create(CTX, {**box(), "kind": "Crate"})
    assert caught.value.message == 'Crate.example.com "one" is invalid: kind: Invalid value: "Crate": must be Box'
    with pytest.raises(StatusError, match=r'Box\.other "one" is invalid: apiVersion: Invalid value: "other/v1"'):
        CustomStrategy(GVK, SCHEMA).prepare_for_create(CTX, {**box(), "apiVersion": "other/v1"})


def test_through_the_status_the_kind_does_not_matter():
    obj = {**box(status={"x": 2}), "kind": "Crate"}
    CustomStatusStrategy(StatusfulStrategy(GVK, SCHEMA)).prepare_for_update(CTX, obj, box())
    assert obj == box(status={"x": 2})


def test_rules_are_not_checked_on_objects_that_are_wrong_anyway():
    called = []

    def rules(obj, old, warnings):
        called.append(obj)
        return []

    strategy = CustomStrategy(GVK, SCHEMA, rules=rules)
    assert strategy.validate(CTX, box(spec={"a": "x"})) == []
    errs = strategy.validate(CTX, box(spec={"a": 1}))
    assert len(called) == 1
    assert str(errs[-1]).startswith("<nil>: Invalid value: null: some validation rules were not checked")


@pytest.mark.parametrize(
    ("finalizer", "count"), [("example.com/x", 0), ("orphan", 0), ("example.com", 1), ("x", 1), ("a b", 2)]
)
def test_finalizers_without_a_domain_are_warned_about(finalizer, count):
    obj = box()
    obj["metadata"]["finalizers"] = [finalizer]
    strategy = CustomStrategy(GVK, SCHEMA)
    assert len(strategy.warnings_on_create(CTX, obj)) == count
    assert strategy.warnings_on_update(CTX, obj, obj) == []


def test_selectors_know_declared_fields_only():
    strategy = CustomStrategy(GVK, SCHEMA, selectable=frozenset({"spec.a"}), namespaced=False)
    assert strategy.convert_field("spec.a", "x") == ("spec.a", "x")
    for name in ("spec.b", "metadata.namespace"):
        with pytest.raises(ValueError, match="field label not supported"):
            strategy.convert_field(name, "x")


# Versions and bytes

OTHER = ObjectSchema(
    {"type": "object", "properties": {"spec": {"type": "object", "properties": {"a": {"type": "string"}}}}}
)
VERSIONS = Versions("example.com", "Box", "v1", {"v1": SCHEMA, "v2": OTHER}, None)


def stored(obj):
    return orjson.dumps(obj)


def test_what_is_read_is_brought_into_todays_form():
    codec = CustomCodec(VERSIONS, "v1", None)
    old = box(spec={"a": "x", "gone": 1})
    old["metadata"] |= {"uid": "u" * 36, "labels": 5}
    entry = codec.entry("/k", stored(old), 7)
    shown = orjson.loads(entry.data)
    assert shown["spec"] == {"a": "x", "n": 1}
    assert shown["metadata"] == {"name": "one", "uid": "u" * 36, "resourceVersion": "7", "generation": 1}


def test_other_versions_are_rendered_once():
    codec = CustomCodec(VERSIONS, "v1", None)
    entry = codec.entry("/k", stored(box(spec={"a": "x"})), 7)
    rendering = Rendering(VERSIONS, "v2", "form")
    assert orjson.loads(rendering.render(entry))["apiVersion"] == "example.com/v2"
    assert orjson.loads(rendering.render(entry))["spec"] == {"a": "x"}
    assert rendering.render(entry) is rendering.render(entry)
    assert Rendering(VERSIONS, "v1", "own").render(entry) is entry.data


class Webhook:
    """Converts when it is let go on, all but what is bad."""

    def __init__(self):
        self.calls, self.goes_on = [], asyncio.Event()

    async def convert(self, objects, version, weight):
        self.calls.append([obj["metadata"]["name"] for obj in objects])
        await self.goes_on.wait()
        if any(obj["metadata"]["name"] == "bad" for obj in objects):
            raise ConversionFailed("a bad object")
        return Converted([{**obj, "apiVersion": str(version)} for obj in objects], weight)


async def test_a_conversion_that_failed_is_not_the_failure_of_who_wants_less():
    webhook = Webhook()
    versions = Versions("example.com", "Box", "v1", {"v1": SCHEMA, "v2": SCHEMA}, webhook)
    codec, rendering = CustomCodec(versions, "v1", None), Rendering(versions, "v2", "form")
    named = [{**box(), "metadata": {"name": name}} for name in ("good", "bad")]
    good, bad = (codec.entry(f"/{number}", stored(obj), 7) for number, obj in enumerate(named))
    wanted = ([good, bad], [good], [bad, good], [bad])
    preparing = [asyncio.ensure_future(rendering.prepare(entries)) for entries in wanted]
    await asyncio.sleep(0)
    webhook.goes_on.set()
    ended = await asyncio.gather(*preparing, return_exceptions=True)
    assert [type(each) for each in ended] == [ConversionFailed, type(None), ConversionFailed, ConversionFailed]
    assert orjson.loads(rendering.render(good))["apiVersion"] == "example.com/v2"
    assert webhook.calls == [["good", "bad"], ["good"], ["bad"]]


def test_writes_of_any_version_are_stored_in_one():
    codec = CustomCodec(VERSIONS, "v2", None)
    obj = {**box(spec={"a": "x"}), "apiVersion": "example.com/v2"}
    data = codec.encode(obj)
    assert orjson.loads(data)["apiVersion"] == "example.com/v1"
    assert obj["apiVersion"] == "example.com/v2"
    assert orjson.loads(codec.entry_of("/k", obj, data, 3).data)["spec"] == {"a": "x", "n": 1}


def test_objects_of_a_removed_version_are_kept_but_not_read():
    codec = CustomCodec(VERSIONS, "v1", None)
    entry = codec.entry("/k", stored({**box(), "apiVersion": "example.com/v0"}), 7)
    with pytest.raises(ConversionFailed, match=r"from an invalid group/version: example.com/v0"):
        Rendering(VERSIONS, "v1", "f").render(entry)


# Columns and scales


def test_cells():
    declared = [
        {"name": "S", "type": "string", "jsonPath": ".spec.a"},
        {"name": "N", "type": "integer", "jsonPath": ".spec.n"},
        {"name": "B", "type": "boolean", "jsonPath": ".spec.b"},
        {"name": "L", "type": "string", "jsonPath": ".spec.l"},
        {"name": "D", "type": "date", "jsonPath": ".spec.d", "priority": 1},
        {"name": "M", "type": "string", "jsonPath": ".spec.none"},
    ]
    columns = table_columns(declared)
    obj = box(spec={"a": "x", "n": 2.0, "b": "no", "l": [1, {"b": 1, "a": 2}], "d": "not a date"})
    assert [column.cell(obj) for column in columns] == ["one", "x", 2, None, '[1,{"a":2,"b":1}]', "<invalid>", None]
    assert columns[1].description == "Custom resource definition column (in JSONPath format): .spec.a"
    assert columns[5].priority == 1


def test_without_columns_there_is_an_age():
    assert [column.name for column in table_columns(None)] == ["Name", "Age"]


def test_scale_fields_are_checked():
    check = scale_checker(
        {"specReplicasPath": ".spec.n", "statusReplicasPath": ".status.n", "labelSelectorPath": ".status.s"}
    )
    assert check(box(spec={"n": 1}), False) == []
    errs = check(box(spec={"n": -1}, status={"n": 1 << 40, "s": 5}), False)
    assert [str(error) for error in errs] == [
        ".spec.n: Invalid value: -1: should be a non-negative integer",
        f".status.n: Invalid value: {1 << 40}: should be less than or equal to 2147483647",
        '.status.s: Invalid value: "": .status.s accessor error: 5 is of the type int64, expected string',
    ]
    assert len(check(box(spec={"n": -1}), True)) == 0


def test_whole_numbers_are_stored_as_integers():
    obj = box(spec={"n": 1.0, "l": [2.0, 2.5, -3.0], "s": "1.0", "big": 1e16, "far": 1e300})
    written = b'"spec":{"n":1,"l":[2,2.5,-3],"s":"1.0","big":10000000000000000,"far":1e+300}'
    assert written in CustomCodec(VERSIONS, "v1", None).encode(obj)


def test_nested_values():
    assert nested({"a": {"b": 1}}, ["a", "b"], int, "int64") == 1
    assert nested({"a": None}, ["a", "b"], int, "int64") is None
    with pytest.raises(AccessError, match=r"^\.a\.b accessor error: x is of the type string, expected map"):
        nested({"a": "x"}, ["a", "b"], int, "int64")


@pytest.mark.parametrize(
    ("count", "ending", "truncated"), [(1, ": why", False), (3, " (and 2 more)", False), (101, " (and 99 more)", True)]
)
def test_lists_tell_the_first_of_what_they_cannot_read(count, ending, truncated):
    codec = CustomCodec(VERSIONS, "v1", None)
    entries = [codec.entry(f"/boxes/{number}", stored(box()), 7) for number in range(count)]
    error = unreadable_list(GroupResource("example.com", "boxes"), entries, "why")
    assert error.message.startswith("failed to read one or more boxes.example.com from the storage: StorageError: ")
    assert error.message.endswith(ending)
    causes = error.details["causes"]
    assert len(causes) == min(count, 100) + truncated
    assert (causes[-1]["reason"] == "FieldValueTooMany") is truncated
