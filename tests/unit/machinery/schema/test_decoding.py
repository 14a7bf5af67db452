"""Decoding by schema: refusals in kube-apiserver's words, canonical forms, and laws that hold for any input."""

from __future__ import annotations

import base64
import copy
from typing import Any

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pilothouse.apis import types
from pilothouse.machinery.schema.decoding import DecodeError, canonical_base64, decode
from pilothouse.machinery.schema.types import Field, Inline, ListOf, MapOf, Scalar, Special, Struct
from pilothouse.machinery.schema.unknown import unknown_fields


def field(name: str, kind: Any, *, pointer: bool = False, omit: bool = True) -> Field:
    made = Field(name, kind, pointer=pointer)
    made.omit_empty = omit
    return made


def struct(*members: Field | Inline, name: str = "test.v1.Thing") -> Struct:
    return Struct(name, lambda: list(members), go=f"v1.{name.rpartition('.')[2]}")


def decoded(kind: Struct, value: Any) -> dict[str, Any]:
    return decode(kind, value)[0]


INNER = struct(field("count", Scalar("int32")), name="test.v1.Inner")
THING = struct(
    field("name", Scalar("string")),
    field("on", Scalar("bool"), pointer=True),
    field("always", Scalar("string"), omit=False),
    field("number", Scalar("int64"), pointer=True),
    field("ratio", Scalar("float64")),
    field("data", Scalar("bytes")),
    field("inner", INNER),
    field("maybe", INNER, pointer=True),
    field("items", ListOf(INNER)),
    field("labels", MapOf(Scalar("string"))),
    field("port", Special("IntOrString", "intstr.IntOrString"), pointer=True),
    field("size", Special("Quantity", "resource.Quantity"), pointer=True),
    field("at", Special("Time", "v1.Time"), pointer=True),
    field("raw", Special("JSON", "v1.JSON"), pointer=True),
)
EMPTY = {"always": "", "inner": {}}


@pytest.mark.parametrize(
    ("given_", "wanted"),
    [
        ({}, {}),
        ({"name": ""}, {}),
        ({"name": None, "inner": None, "items": None}, {}),
        ({"on": False}, {"on": False}),
        ({"number": 0}, {"number": 0}),
        ({"items": [], "labels": {}}, {}),
        ({"items": [None, {"count": 0}]}, {"items": [{}, {}]}),
        ({"labels": {"a": None}}, {"labels": {"a": ""}}),
        ({"maybe": {}}, {"maybe": {}}),
        ({"inner": {"count": 3, "other": 1}}, {"inner": {"count": 3}}),
        ({"ratio": 2.0}, {"ratio": 2}),
        ({"ratio": 1e30}, {"ratio": 1e30}),
        ({"port": "http"}, {"port": "http"}),
        ({"size": "1000m"}, {"size": "1"}),
        ({"size": 5}, {"size": "5"}),
        ({"at": "2026-01-02T03:04:05+02:00"}, {"at": "2026-01-02T01:04:05Z"}),
        ({"data": "aGk=\n"}, {"data": "aGk="}),
        ({"data": [104, 105, None]}, {"data": "aGkA"}),
        ({"raw": {"x": [1, None]}}, {"raw": {"x": [1, None]}}),
        ({"unknown": 1}, {}),
    ],
)
def test_values(given_: dict[str, Any], wanted: dict[str, Any]) -> None:
    assert decoded(THING, given_) == {**EMPTY, **wanted}


def test_unknown_fields_are_noticed() -> None:
    assert decode(THING, {"name": "a"})[1] is False
    assert decode(THING, {"other": 1})[1] is True
    assert decode(THING, {"items": [{"other": 1}]})[1] is True
    assert decode(THING, {"raw": {"other": 1}})[1] is False


IN = "json: cannot unmarshal"


@pytest.mark.parametrize(
    ("given_", "message"),
    [
        ([], f"{IN} array into Go value of type v1.Thing"),
        ("x", f"{IN} string into Go value of type v1.Thing"),
        ({"name": 5}, f"{IN} number into Go struct field Thing.name of type string"),
        ({"name": {}}, f"{IN} object into Go struct field Thing.name of type string"),
        ({"on": "true"}, f"{IN} string into Go struct field Thing.on of type bool"),
        ({"number": True}, f"{IN} bool into Go struct field Thing.number of type int64"),
        ({"number": 1.5}, f"{IN} number 1.5 into Go struct field Thing.number of type int64"),
        ({"number": 1 << 63}, f"{IN} number 9223372036854775808 into Go struct field Thing.number of type int64"),
        ({"inner": {"count": 1 << 31}}, f"{IN} number 2147483648 into Go struct field Inner.inner.count of type int32"),
        ({"items": {}}, f"{IN} object into Go struct field Thing.items of type []v1.Inner"),
        ({"items": [1]}, f"{IN} number into Go struct field Thing.items of type v1.Inner"),
        ({"items": [{"count": "x"}]}, f"{IN} string into Go struct field Inner.items.count of type int32"),
        ({"labels": {"a": 1}}, f"{IN} number into Go struct field Thing.labels of type string"),
        ({"ratio": "1"}, f"{IN} string into Go struct field Thing.ratio of type float64"),
        ({"ratio": float("inf")}, f"{IN} number inf into Go struct field Thing.ratio of type float64"),
        ({"data": "a"}, "illegal base64 data at input byte 0"),
        ({"data": "!!!!"}, "illegal base64 data at input byte 0"),
        ({"data": 1}, f"{IN} number into Go struct field Thing.data of type []uint8"),
        ({"data": ["a"]}, f"{IN} string into Go struct field Thing.data of type uint8"),
        ({"data": [256]}, f"{IN} number 256 into Go struct field Thing.data of type uint8"),
        ({"data": [True]}, f"{IN} bool into Go struct field Thing.data of type uint8"),
        ({"port": 1 << 31}, f"{IN} number 2147483648 into Go struct field Thing.port of type int32"),
        ({"port": []}, f"{IN} array into Go struct field Thing.port of type int32"),
    ],
)
def test_refusals(given_: Any, message: str) -> None:
    with pytest.raises(DecodeError) as caught:
        decode(THING, given_)
    assert str(caught.value) == message


def test_the_result_shares_nothing_with_the_input() -> None:
    value = {"labels": {"a": "b"}, "items": [{"count": 1}], "inner": {"count": 2}}
    result = decoded(THING, value)
    result["labels"]["c"] = "d"
    result["items"][0]["count"] = 9
    result["inner"]["count"] = 9
    assert value == {"labels": {"a": "b"}, "items": [{"count": 1}], "inner": {"count": 2}}


def test_inlined_fields_stand_among_the_owner_s() -> None:
    owner = struct(field("own", Scalar("string")), Inline(INNER, 1), name="test.v1.Owner")
    assert list(owner.fields) == ["own", "count"]
    assert decoded(owner, {"count": 3, "own": "x"}) == {"count": 3, "own": "x"}
    assert owner.short_name == "Owner"


def test_types_may_refer_to_themselves() -> None:
    node = Struct("test.v1.Node", lambda: [field("next", node, pointer=True)], go="v1.Node")
    assert decoded(node, {"next": {"next": {}}}) == {"next": {"next": {}}}


@given(st.binary())
def test_base64_of_anything_is_its_own_form(data: bytes) -> None:
    text = base64.b64encode(data).decode()
    assert canonical_base64(text) == text
    assert canonical_base64("\n".join(text)) == text


@given(st.text(alphabet="aZ09+/=\r\n-é", max_size=12))
def test_base64_is_read_or_refused(text: str) -> None:
    try:
        canonical = canonical_base64(text)
    except DecodeError as error:
        at = int(str(error).rpartition(" ")[2])
        assert 0 <= at <= len(text)
    else:
        assert canonical_base64(canonical) == canonical


# Laws over the real catalogue

WORDS = st.sampled_from(["", "a", "10m", "1Gi", "-1", "2026-01-02T03:04:05Z", "5s", "eA==", "http", "ü\n"])
SCALARS = st.none() | st.booleans() | st.integers(-(2**65), 2**65) | st.floats() | WORDS


def values_for(kind: Any, depth: int) -> st.SearchStrategy[Any]:
    """Values that mostly fit a type and sometimes do not."""
    if depth <= 0:
        return SCALARS
    if isinstance(kind, Struct):
        names = sorted(kind.fields)
        some = st.lists(st.sampled_from([*names, "unknown"]), max_size=6, unique=True)
        return some.flatmap(
            lambda chosen: st.fixed_dictionaries(
                {n: values_for(kind.fields[n].type, depth - 1) if n in kind.fields else SCALARS for n in chosen}
            )
        )
    if isinstance(kind, ListOf):
        return st.lists(values_for(kind.item, depth - 1), max_size=2) | SCALARS
    if isinstance(kind, MapOf):
        return st.dictionaries(WORDS, values_for(kind.value, depth - 1), max_size=2) | SCALARS
    return SCALARS | st.lists(SCALARS, max_size=1)


KINDS = ["core.v1.Pod", "core.v1.Service", "apps.v1.Deployment", "networking.v1.Ingress", "core.v1.Secret"]


@pytest.mark.parametrize("name", KINDS)
@settings(max_examples=30)
@given(data=st.data())
def test_any_value_is_decoded_or_refused(name: str, data: st.DataObject) -> None:
    kind = types.struct(name)
    value = data.draw(values_for(kind, 6))
    try:
        first, unknown = decode(kind, value)
    except DecodeError as error:
        assert str(error)
        return
    assert orjson.loads(orjson.dumps(first)) == first
    again, left = decode(kind, first)
    assert again == first, "decoding is idempotent"
    assert not left, "no unknown field is left"
    nobody_knows = list(unknown_fields(kind, value))
    assert unknown is bool(nobody_knows)
    given_away = copy.deepcopy(value)
    assert decode(kind, given_away, owned=True) == (first, unknown), "who owns the value makes no difference"
    assert list(unknown_fields(kind, given_away)) == nobody_knows


def test_a_value_that_is_given_away_becomes_the_result() -> None:
    """A body takes the memory of one tree then, not of two."""
    value = {"labels": {"a": "b"}, "items": [{"count": 1}], "inner": {"count": 2}, "always": "x"}
    labels, items, inner = value["labels"], value["items"], value["inner"]
    result = decode(THING, value, owned=True)[0]
    assert result["labels"] is labels
    assert result["items"] is items
    assert result["inner"] is inner


def test_every_type_of_the_catalogue_can_be_empty() -> None:
    for name in types.names():
        kind = types.struct(name)
        empty, unknown = decode(kind, {})
        assert not unknown, name
        assert decode(kind, empty) == (empty, False), name


def test_null_bytes_of_a_map_are_empty() -> None:
    assert decode(types.struct("core.v1.Secret"), {"data": {"a": None}})[0]["data"] == {"a": ""}
