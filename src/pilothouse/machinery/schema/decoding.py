"""Decoding by schema: parsed JSON in, an object as Go would hold and write it out.

Wrong types are refused in the words of kube-apiserver's JSON decoder; fields the schema does not know are dropped;
quantities, times and numbers get their canonical form; empty values are left out or filled in as the struct's tags
say. One closure per type is built at first use and kept with the type, so a request only calls functions.

Guarantees: the result shares no container with the input except inside raw JSON values; decoding the result again gives
an equal result. On request it remembers what was given as empty, see ``emptied.py``. Whoever gives the input away gets
a result made of it where the two are alike: a body then takes the memory of one tree, not of two. Such an input is only
good any more for what was not known of it.
"""

from __future__ import annotations

import base64
import math
from collections.abc import Callable
from itertools import islice
from operator import is_
from typing import Any, Final

from pilothouse.machinery import quantity, times
from pilothouse.machinery.base64_text import is_canonical
from pilothouse.machinery.go_json import format_number, json_type, with_whole_numbers
from pilothouse.machinery.schema.as_stored import AsStored, mark, mark_owners, unmark
from pilothouse.machinery.schema.emptied import Emptied, note_empty
from pilothouse.machinery.schema.types import Decoder, Field, Inline, ListOf, MapOf, Scalar, Special, Struct, Type


class DecodeError(Exception):
    """The value does not fit the schema. The text is what kube-apiserver's decoder says."""

    def __init__(self, found: str = "", go: str = "", *, message: str = "") -> None:
        super().__init__(message)
        self.found = found
        self.go = go
        self.message = message
        self.struct = ""
        self.path: list[str] = []

    def inside(self, struct: str, field: str) -> None:
        """Note, on the way out, which field of which struct was being decoded."""
        if not self.struct:
            self.struct = struct
        self.path.append(field)

    def __str__(self) -> str:
        if self.message:
            return self.message
        if not self.struct:
            return f"json: cannot unmarshal {self.found} into Go value of type {self.go}"
        path = ".".join(reversed(self.path))
        return f"json: cannot unmarshal {self.found} into Go struct field {self.struct}.{path} of type {self.go}"


DROP: Final = object()
"""What a field's decoder returns for a value that is not written out."""

_PLAIN_BELOW: Final = 1e21
"""From here on Go's encoder writes floats with an exponent."""
_TEXT: Final = frozenset({str})
_FEW: Final = 1_000
_LIMITS: Final = {"int32": 1 << 31, "int64": 1 << 63, "uint8": 1 << 8, "uint64": 1 << 64}


def decode(
    struct: Struct, value: Any, *, noting: bool = False, owned: bool = False, stored: dict[str, Any] | None = None
) -> tuple[dict[str, Any], bool]:
    """The object, and whether unknown fields were dropped on the way; ``noting`` keeps notes of empty values.

    ``owned`` allows the object to be made of the value's own parts, and parts of such a value that are as in the
    ``stored`` object, which was decoded once, not to be decoded again. Of a value that is not owned, only the owners of
    fields are taken over, if they are the very ones that are stored: nobody changes these in place.
    """
    decoder = struct_decoder(struct)
    seen = Seen(noting, owned)
    if stored is not None:
        marked = mark(struct, value, stored) if owned else mark_owners(value, stored)
        try:
            result = decoder(value, seen)
        finally:
            unmark(marked)
    else:
        result = decoder(value, seen)
    if noting and seen.empty and result.__class__ is dict:
        result = Emptied(result)
    return result, seen.unknown


class Seen:
    """What decoding noticed on its way."""

    __slots__ = ("empty", "noting", "owned", "unknown")

    def __init__(self, noting: bool = False, owned: bool = False) -> None:
        self.noting = noting
        self.owned = owned
        self.empty = False
        self.unknown = False


StructDecoder = Callable[[Any, Seen], dict[str, Any]]
FieldDecoder = Callable[[Any, Seen], Any]


def struct_decoder(struct: Struct) -> StructDecoder:
    """The decoder of a struct, built once."""
    decoder: StructDecoder | None = struct.derived.get("decoder")
    if decoder is None:
        decoder = struct.derived["decoder"] = _build_struct(struct)
    return decoder


def _build_struct(struct: Struct) -> StructDecoder:
    decoders: dict[str, FieldDecoder] = {}
    labels: dict[str, str] = {}
    always: list[tuple[str, Callable[[], Any]]] = []
    noted: dict[str, Callable[[], Any]] = {}
    texts: set[str] = set()
    """The fields of text, most of all fields: a text that is not empty is what it is."""
    name = struct.short_name
    go = struct.go
    built = False

    def build() -> None:
        nonlocal built
        labels.update(field_labels(struct))
        for field in struct.fields.values():
            decoders[field.name] = _field_decoder(field)
            if isinstance(field.type, Scalar) and field.type.kind == "string":
                texts.add(field.name)
            zero = zero_of(field)
            if zero is not None:
                always.append((field.name, zero))
            if (empty := _empty_form(field.type)) is not None:
                noted[field.name] = empty
        built = True

    def decode_struct(value: Any, seen: Seen) -> dict[str, Any]:
        if not built:
            build()
        if value.__class__ is not dict:
            if value.__class__ is AsStored:
                return value.part  # type: ignore[no-any-return]
            raise DecodeError(json_type(value), go)
        out: dict[str, Any] = {}
        alike = seen.owned
        for key, given in value.items():
            if given.__class__ is str and given and key in texts:
                out[key] = given
                continue
            decoder = decoders.get(key)
            if decoder is None:
                seen.unknown = True
            elif given is not None:
                try:
                    item = decoder(given, seen)
                except DecodeError as error:
                    error.inside(name, labels[key])
                    raise
                if item is not given:
                    alike = False
                if item is not DROP:
                    out[key] = item
                elif seen.noting and key in noted:
                    seen.empty = True
                    empty = noted[key]()
                    is_list = given.__class__ is list and empty.__class__ is dict
                    out = note_empty(out, key, [] if is_list else empty)
        if alike and len(out) == len(value):
            out = value
        for key, zero in always:
            if key not in out:
                out[key] = zero()
        return out

    return decode_struct


def field_labels(struct: Struct) -> dict[str, str]:
    """What decoding errors call the fields: those of an inlined struct have its name before them."""
    labels: dict[str, str] = {}
    for member in struct.members:
        if isinstance(member, Inline):
            inner = field_labels(member.struct)
            labels |= {name: f"{member.struct.short_name}.{label}" for name, label in inner.items()}
        else:
            labels[member.name] = member.name
    return labels


def zero_of(field: Field) -> Callable[[], Any] | None:
    """How to make what Go writes for the field when it is not set; None where it writes nothing."""
    kind = field.type
    # Go's omitempty has no effect on structs, and all special types are structs.
    if isinstance(kind, Struct | Special) and not field.pointer and not field.omit_zero:
        return type_zero(kind)
    if field.omit_empty or field.omit_zero:
        return None
    return _nothing if field.pointer else type_zero(kind)


def _empty_form(kind: Type) -> Callable[[], Any] | None:
    """How to make an empty value, for types where kube-apiserver tells it from none."""
    if isinstance(kind, ListOf):
        return list
    if isinstance(kind, MapOf) or (isinstance(kind, Special) and kind.kind == "SchemaOrArray"):
        return dict
    return str if isinstance(kind, Scalar) and kind.kind == "bytes" else None


def _nothing() -> Any:
    return None


def _zero_struct(struct: Struct) -> Callable[[], Any]:
    def make() -> Any:
        return struct_decoder(struct)({}, Seen())

    return make


def _field_decoder(field: Field) -> FieldDecoder:
    decoder = type_decoder(field.type)
    special = isinstance(field.type, Special)
    if field.pointer or not (field.omit_zero if special else field.omit_empty) or isinstance(field.type, Struct):
        return decoder

    def decode_or_drop(value: Any, seen: Seen) -> Any:
        value = decoder(value, seen)
        return value or DROP

    return decode_or_drop


def type_decoder(kind: Type) -> FieldDecoder:
    """The decoder of any type; lists and maps close over their item's."""
    if isinstance(kind, Struct):
        return struct_decoder(kind)
    if isinstance(kind, ListOf):
        return _list_decoder(kind)
    if isinstance(kind, MapOf):
        return _map_decoder(kind)
    if isinstance(kind, Scalar):
        return _scalar_decoder(kind)
    if isinstance(kind, Special):
        return special_decoder(kind)
    raise TypeError(f"no decoder for {kind!r}")


def _list_decoder(kind: ListOf) -> FieldDecoder:
    item = type_decoder(kind.item)
    zero = type_zero(kind.item)
    go = kind.go

    def decode_list(value: Any, seen: Seen) -> list[Any]:
        if value.__class__ is not list:
            if value.__class__ is AsStored:
                return value.part  # type: ignore[no-any-return]
            raise DecodeError(json_type(value), go)
        if not value:
            seen.empty = True
        out = [zero() if each is None else item(each, seen) for each in value]
        return value if seen.owned and all(map(is_, out, value)) else out

    return decode_list


def _map_decoder(kind: MapOf) -> FieldDecoder:
    item = type_decoder(kind.value)
    # Bytes that are null come out of storage as none at all, which in a map is still a value.
    zero = str if isinstance(kind.value, Scalar) and kind.value.kind == "bytes" else type_zero(kind.value)
    go = kind.go
    of_text = isinstance(kind.value, Scalar) and kind.value.kind == "string"

    def decode_map(value: Any, seen: Seen) -> dict[str, Any]:
        if value.__class__ is not dict:
            raise DecodeError(json_type(value), go)
        if of_text and _are_texts(value):
            return value if seen.owned else value.copy()
        return {key: zero() if each is None else item(each, seen) for key, each in value.items()}

    return decode_map


def _are_texts(value: dict[str, Any]) -> bool:
    """Whether all values are; of many not in one call, which would keep the interpreter's lock for milliseconds."""
    if len(value) <= _FEW:
        return set(map(type, value.values())) <= _TEXT
    values = iter(value.values())
    while found := set(map(type, islice(values, _FEW))):
        if not found <= _TEXT:
            return False
    return True


def type_zero(kind: Type) -> Callable[[], Any]:
    """What a null list item or map value becomes."""
    if isinstance(kind, Struct):
        return _zero_struct(kind)
    if isinstance(kind, Scalar):
        zero: Any = {"string": "", "bool": False, "bytes": None}.get(kind.kind, 0)
        return lambda: zero
    if isinstance(kind, Special):
        plain: Any = {"Quantity": "0", "IntOrString": 0, "Duration": "0s"}.get(kind.kind)
        return lambda: plain
    return _nothing


def _scalar_decoder(kind: Scalar) -> FieldDecoder:
    go = kind.go
    if kind.kind == "string":
        return lambda value, seen: value if value.__class__ is str else _refuse(value, go)
    if kind.kind == "bool":
        return lambda value, seen: value if value.__class__ is bool else _refuse(value, go)
    if kind.kind == "float64":
        return lambda value, seen: _decode_float(value, go)
    if kind.kind == "bytes":
        return lambda value, seen: _decode_bytes(value, go)
    limit = _LIMITS[kind.kind]
    floor = 0 if kind.kind.startswith("uint") else -limit

    def decode_int(value: Any, seen: Seen) -> Any:
        if value.__class__ is int and floor <= value < limit:
            return value
        if value.__class__ in (int, float):
            raise DecodeError(f"number {_literal(value)}", go)
        return _refuse(value, go)

    return decode_int


def _refuse(value: Any, go: str) -> Any:
    raise DecodeError(json_type(value), go)


def _decode_float(value: Any, go: str) -> Any:
    if value.__class__ is float:
        if not math.isfinite(value):
            raise DecodeError(f"number {_literal(value)}", go)
        return int(value) if value.is_integer() and abs(value) < _PLAIN_BELOW else value
    return value if value.__class__ is int else _refuse(value, go)


def _literal(value: float) -> str:
    """A number as Go writes it; who knows the text of the document quotes it from there."""
    return str(value) if value.__class__ is int else format_number(value)


def _decode_bytes(value: Any, go: str) -> str:
    if value.__class__ is list:
        return _decode_octets(value)
    if value.__class__ is not str:
        return str(_refuse(value, go))
    return str(value) if is_canonical(value) else canonical_base64(value)


def _decode_octets(items: list[Any]) -> str:
    """Go reads a list of small numbers as bytes, too."""
    for item in items:
        if item.__class__ in (int, float) and not (item.__class__ is int and 0 <= item < _LIMITS["uint8"]):
            raise DecodeError(f"number {_literal(item)}", "uint8")
        if item is not None and item.__class__ is not int:
            _refuse(item, "uint8")
    return base64.b64encode(bytes(item or 0 for item in items)).decode()


_BASE64: Final = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/")


def canonical_base64(text: str) -> str:
    """Read base64 as Go does (line breaks ignored, padding demanded) and write it again."""
    position = next((at for at, char in enumerate(text) if char not in _BASE64 and char not in "\r\n"), len(text))
    clean = text[:position].replace("\r", "").replace("\n", "")
    rest = text[position:].replace("\r", "").replace("\n", "")
    if rest != "=" * (-len(clean) % 4) or len(clean) % 4 == 1:
        raise DecodeError(message=f"illegal base64 data at input byte {_illegal_at(text, position, len(clean))}")
    return base64.b64encode(base64.b64decode(clean + rest)).decode()


def _illegal_at(text: str, position: int, digits: int) -> int:
    if position >= len(text):
        return position - digits % 4
    if text[position] != "=" or digits % 4 < 2:
        return position
    wanted = 4 - digits % 4
    after = position
    for _ in range(wanted):
        if after >= len(text):
            return after
        if text[after] != "=":
            return after
        after += 1
    return after


def special_decoder(kind: Special) -> FieldDecoder:
    decoder = SPECIAL_DECODERS[kind.kind]
    if kind.holds is not None:
        return _holder_decoder(kind.holds, decoder)
    return lambda value, seen: decoder(value)


def _decode_quantity(value: Any) -> str:
    try:
        return quantity.canonicalize(value) if value.__class__ is str else quantity.canonicalize_json(value)
    except ValueError as error:
        raise DecodeError(message=str(error)) from None


def _decode_time(value: Any) -> Any:
    if value.__class__ is not str:
        raise DecodeError(json_type(value), "string")
    try:
        return times.canonicalize_time(value)
    except ValueError as error:
        raise DecodeError(message=str(error)) from None


def _decode_micro_time(value: Any) -> Any:
    if value.__class__ is not str:
        raise DecodeError(json_type(value), "string")
    try:
        return times.canonicalize_micro_time(value)
    except ValueError as error:
        raise DecodeError(message=str(error)) from None


def _decode_duration(value: Any) -> Any:
    if value.__class__ is not str:
        raise DecodeError(json_type(value), "string")
    try:
        return times.format_duration(times.parse_duration(value))
    except ValueError as error:
        raise DecodeError(message=str(error)) from None


def _decode_int_or_string(value: Any) -> Any:
    if value.__class__ is str:
        return value
    if value.__class__ is int and -_LIMITS["int32"] <= value < _LIMITS["int32"]:
        return value
    if value.__class__ in (int, float):
        raise DecodeError(f"number {_literal(value)}", "int32")
    raise DecodeError(json_type(value), "int32")


def _decode_raw(value: Any) -> Any:
    return value


def _holder_decoder(holds: Callable[[], Struct], simple: Decoder) -> FieldDecoder:
    """A struct, a list of them or a simple form. kube-apiserver says nothing about what it does not know in there."""

    def decode_held(value: Any, seen: Seen) -> Any:
        inside = Seen(seen.noting)
        if value.__class__ is dict:
            held: Any = struct_decoder(holds())(value, inside)
        elif value.__class__ is list and simple is _decode_no_form:
            held = _decode_held_list(struct_decoder(holds()), value, inside)
        else:
            return simple(value)
        seen.empty |= inside.empty
        return held

    return decode_held


def _decode_held_list(decoder: StructDecoder, value: list[Any], seen: Seen) -> Any:
    return [decoder({} if item is None else item, seen) for item in value] or DROP


def _decode_bool_form(value: Any) -> Any:
    if value.__class__ is not bool:
        raise DecodeError(message="boolean or JSON schema expected")
    return value


def _decode_names_form(value: Any) -> Any:
    if value.__class__ is not list:
        return None
    for item in value:
        if item is not None and item.__class__ is not str:
            _refuse(item, "string")
    return [item or "" for item in value] or None


def _decode_no_form(value: Any) -> Any:
    """Anything else counts as nothing."""
    return DROP


SPECIAL_DECODERS: Final[dict[str, Decoder]] = {
    "Quantity": _decode_quantity,
    "Time": _decode_time,
    "MicroTime": _decode_micro_time,
    "Duration": _decode_duration,
    "IntOrString": _decode_int_or_string,
    "RawExtension": _decode_raw,
    "FieldsV1": _decode_raw,
    "JSON": with_whole_numbers,
    "SchemaOrBool": _decode_bool_form,
    "SchemaOrArray": _decode_no_form,
    "SchemaOrStringArray": _decode_names_form,
}
