"""Reading messages into objects, normalised as JSON decoding leaves them.

Each struct has a plan, made at first use and kept with it: what to do at each tag. Reading is one loop over the bytes
with a look-up per field; the usual tags and lengths of one or two bytes are read in place. Unknown fields are skipped,
a known number with another wire type is refused, messages that come in pieces are merged. Nothing outside the message
being read is ever looked at; nesting is bounded.

Objects of one workload repeat themselves: tolerations, ports, owners, conditions. Short messages that were seen twice
are therefore remembered by their bytes, and handed out as a new object each time.

Who needs a few fields of many objects reads them partly: the plan then knows nothing but the wanted fields, and passes
over all others by their lengths.
"""

from __future__ import annotations

import math
import struct as binary
from base64 import b64encode
from collections.abc import Callable
from enum import IntEnum
from marshal import dumps as marshal
from marshal import loads as unmarshal
from typing import Any, Final

from pilothouse.machinery.protobuf import special
from pilothouse.machinery.protobuf.encoding import SCHEMA_KINDS, is_type_meta, is_wrapped
from pilothouse.machinery.protobuf.wire import (
    BYTES,
    FIXED64,
    MAX_DEPTH,
    VARINT,
    ProtobufError,
    check_tag,
    read_length,
    read_varint,
    skip,
    truncated,
)
from pilothouse.machinery.schema.decoding import type_zero, zero_of
from pilothouse.machinery.schema.types import Field, Inline, ListOf, MapOf, Scalar, Special, Struct, Type
from pilothouse.machinery.workers import ABANDONED, checkpoint


class _Act(IntEnum):
    """What a field's plan does with the value behind its tag."""

    TEXT = 0
    MESSAGE = 1
    INTEGER = 2
    MESSAGES = 3
    TEXTS = 4
    ENTRY = 5
    VALUE = 6
    VALUES = 7
    INLINE = 8
    INTEGERS = 9
    FIXED = 10


_MOST_REMEMBERED: Final = 8192
"""Then all are forgotten, and the next ones remembered: a few megabytes at most."""
_MOST_SEEN: Final = 16384
_LONGEST_REMEMBERED: Final = 512
_METADATA: Final = ("ObjectMeta", "ListMeta")
"""The Go names of metadata, of an object and of a list."""
_PLAIN_VALUES: Final = frozenset({"Time", "MicroTime", "Quantity", "IntOrString", "Duration"})
_TEXT, _MESSAGE, _INTEGER, _MESSAGES, _TEXTS, _ENTRY, _VALUE, _VALUES, _INLINE, _INTEGERS, _FIXED = map(int, _Act)
_double: Final = binary.Struct("<d").unpack_from

ValueReader = Callable[[bytes, int], Any]
"""Reads the bytes of a value, at some depth."""


def decode_message(struct: Struct, raw: bytes) -> dict[str, Any]:
    """The object in a message, without kind and apiVersion, which only the envelope knows."""
    try:
        return _read(_plan(struct), raw, 0, len(raw), 0, {})
    except UnicodeDecodeError:
        raise ProtobufError("proto: string field contains invalid UTF-8") from None


def decode_partly(struct: Struct, raw: bytes, wanted: frozenset[str]) -> dict[str, Any]:
    """The same with nothing but some fields, each named by its path (``spec.containers.env``) and read whole."""
    plans: dict[frozenset[str], _Plan] = struct.derived.setdefault("protobuf_partial_plans", {})
    plan = plans.get(wanted)
    if plan is None:
        plan = plans[wanted] = _Plan(struct, wanted=_tree(wanted))
    try:
        return _read(plan, raw, 0, len(raw), 0, {})
    except UnicodeDecodeError:
        raise ProtobufError("proto: string field contains invalid UTF-8") from None


_Tree = dict[str, Any]
"""The wanted fields of a message: for each either those wanted of it, or nothing if it is read whole."""


def _tree(paths: frozenset[str]) -> _Tree:
    tree: _Tree = {}
    for path in paths:
        at = tree
        for step in path.split("."):
            at = at.setdefault(step, {})
    return tree


_remembered: dict[tuple[_Plan, bytes], Any] = {}
"""What short messages meant: the object of a plain one, the marshalled object of others."""
_seen: set[int] = set()


class _Plan:
    """What to do at each tag of a struct's message, and what to fill in at its end."""

    __slots__ = ("always", "by_number", "by_tag", "inline", "is_plain", "name", "struct", "wanted")

    def __init__(self, struct: Struct, *, inline: bool = False, wanted: _Tree | None = None) -> None:
        """``wanted`` are the fields to read; without, all are."""
        self.struct = struct
        self.name = struct.short_name
        self.inline = inline
        self.wanted = wanted
        self.by_tag: dict[int, tuple[int, str, Any, bool]] = {}
        self.by_number: dict[int, str] = {}
        self.always: tuple[tuple[str, Callable[[], Any]], ...] = ()
        self.is_plain = False
        """Whether a message holds nothing but texts and numbers."""

    def build(self) -> None:
        always = []
        for field in self.struct.fields.values():
            zero = zero_of(field)
            if zero is not None and not is_type_meta(field) and self._wants(field.name):
                always.append((field.name, zero))
        if not self.inline:
            self.always = tuple(always)
        for member in self.struct.members:
            if isinstance(member, Inline):
                plan = _Plan(member.struct, inline=True, wanted=self.wanted)
                self._add(member.number, BYTES, _INLINE, member.struct.short_name, plan)
            elif member.number and self._wants(member.name):
                self._add_field(member)
        self.is_plain = all(_is_plain(member) for member in self.struct.members)

    def _wants(self, name: str) -> bool:
        return not self.wanted or name in self.wanted

    def _plan_of(self, kind: Struct, name: str) -> _Plan:
        """The plan of a field's message."""
        wanted = self.wanted.get(name) if self.wanted else None
        return _Plan(kind, wanted=wanted) if wanted else _plan(kind)

    def _add(self, number: int, wire_type: int, act: int, name: str, argument: Any, keep: bool = True) -> None:
        self.by_tag[number << 3 | wire_type] = act, name, argument, keep
        self.by_number[number] = name

    def _add_field(self, field: Field) -> None:
        kind, number, name = field.type, field.number, field.name
        keep = field.pointer or not field.omit_empty
        if isinstance(kind, Struct):
            self._add(number, BYTES, _MESSAGE, name, self._plan_of(kind, name))
        elif isinstance(kind, MapOf):
            self._add(number, BYTES, _ENTRY, name, _entry_reader(kind.value, self.struct))
        elif isinstance(kind, ListOf) and not is_wrapped(kind):
            self._add_list(number, name, kind.item)
        elif isinstance(kind, Scalar) and kind.kind == "string":
            self._add(number, BYTES, _TEXT, name, None, keep)
        elif isinstance(kind, Scalar) and kind.kind == "float64":
            self._add(number, FIXED64, _FIXED, name, None)
        elif isinstance(kind, Scalar) and kind.kind != "bytes":
            self._add(number, VARINT, _INTEGER, name, _INTEGERS_OF[kind.kind], keep)
        elif isinstance(kind, Special):
            self._add(number, BYTES, _VALUE, name, _value_reader(kind, self.struct), field.pointer)
        else:
            reader = _value_reader(kind, self.struct)
            unless_empty = reader if keep else lambda data, depth: reader(data, depth) or None
            self._add(number, BYTES, _VALUE, name, unless_empty, keep)

    def _add_list(self, number: int, name: str, item: Type) -> None:
        if isinstance(item, Struct):
            self._add(number, BYTES, _MESSAGES, name, self._plan_of(item, name))
        elif isinstance(item, Scalar) and item.kind == "string":
            self._add(number, BYTES, _TEXTS, name, None)
        elif isinstance(item, Scalar) and item.kind in _INTEGERS_OF:
            self._add(number, BYTES, _INTEGERS, name, _INTEGERS_OF[item.kind])
            self._add(number, VARINT, _INTEGERS, name, _INTEGERS_OF[item.kind])
        else:
            self._add(number, BYTES, _VALUES, name, _value_reader(item, self.struct))


def _is_plain(member: Field | Inline) -> bool:
    """Whether a field holds what nobody can change in place."""
    kind = member.type if isinstance(member, Field) else None
    if isinstance(kind, Special):
        return kind.kind in _PLAIN_VALUES
    return isinstance(kind, Scalar)


def _plan(struct: Struct) -> _Plan:
    plan: _Plan | None = struct.derived.get("protobuf_plan")
    if plan is None:
        plan = struct.derived["protobuf_plan"] = _Plan(struct)
    return plan


def _read(plan: _Plan, data: bytes, position: int, end: int, depth: int, out: dict[str, Any]) -> dict[str, Any]:
    """Read one message into ``out``. One function, because a call per field would double the time."""
    if not plan.by_tag:
        plan.build()
    if depth > MAX_DEPTH or ABANDONED:
        _check_going_on(depth)
    acts, complete = plan.by_tag.get, not plan.wanted
    while position < end:
        start = position
        tag = data[position]
        position += 1
        if tag > 127:
            if position < end and data[position] < 128:
                tag += (data[position] - 1) << 7
                position += 1
            else:
                tag, position = read_varint(data, start, end)
        found = acts(tag)
        if found is None and (complete or tag & 5):  # neither a number nor bytes
            position = _pass(plan, tag, data, start, end)
            continue
        if position >= end:
            raise truncated()
        value = data[position]
        if value < 128:
            position += 1
        elif position + 1 < end and data[position + 1] < 128:
            value += (data[position + 1] - 1) << 7
            position += 2
        else:
            value, position = read_varint(data, position, end)
        if found is None:
            if tag & BYTES:
                position += value
                if position > end:
                    raise truncated()
            continue
        act, name, argument, keep = found
        if act == _INTEGER:
            if value > 127 or argument is bool:
                value = argument(value)
            if value or keep:
                out[name] = value
            elif name in out:
                del out[name]
            continue
        if act == _FIXED or (act == _INTEGERS and not tag & 7):
            position = _read_number(act, name, argument, data, start, end, out)
            continue
        stop = position + value
        if stop > end:
            raise _too_long(value)
        if act == _TEXT:
            if value or keep:
                out[name] = data[position:stop].decode()
            elif name in out:
                del out[name]
        elif act == _MESSAGE:
            if value <= _LONGEST_REMEMBERED and name not in out:
                out[name] = _recall(argument, data, position, stop, depth + 1)
            else:
                out[name] = _read(argument, data, position, stop, depth + 1, out.get(name) or {})
        elif act == _ENTRY:
            argument(data, position, stop, end, depth + 1, out.setdefault(name, {}))
        elif act == _TEXTS:
            _items(out, name).append(data[position:stop].decode())
        elif act == _MESSAGES:
            if value <= _LONGEST_REMEMBERED:
                _items(out, name).append(_recall(argument, data, position, stop, depth + 1))
            else:
                _items(out, name).append(_read(argument, data, position, stop, depth + 1, {}))
        elif act == _INLINE:
            _read(argument, data, position, stop, depth + 1, out)
        else:
            _read_value(act, name, argument, keep, data[position:stop], depth + 1, out)
        position = stop
    for name, zero in plan.always:
        if name not in out:
            out[name] = zero()
    return out


def _check_going_on(depth: int) -> None:
    if depth > MAX_DEPTH:
        raise ProtobufError("exceeded maximum recursion depth")
    checkpoint()


def _recall(plan: _Plan, data: bytes, position: int, end: int, depth: int) -> Any:
    """Read a short message, or take what the same bytes meant before."""
    key = (plan, data[position:end])
    known = _remembered.get(key)
    if known is not None:
        return known.copy() if plan.is_plain else unmarshal(known)  # noqa: S302 (our own bytes)
    value = _read(plan, data, position, end, depth, {})
    mark = hash(key)
    if mark not in _seen:
        if len(_seen) >= _MOST_SEEN:
            _seen.clear()
        _seen.add(mark)
        return value
    if len(_remembered) >= _MOST_REMEMBERED:
        _remembered.clear()
    _remembered[key] = value.copy() if plan.is_plain else marshal(value)
    return value


def _items(out: dict[str, Any], name: str) -> list[Any]:
    """The list so far. An earlier piece of the same message may have left null there."""
    items: list[Any] | None = out.get(name)
    if items is None:
        items = out[name] = []
    return items


def _too_long(length: int) -> ProtobufError:
    if length >> 63:
        return ProtobufError("proto: negative length found during unmarshaling")
    return truncated()


def _pass(plan: _Plan, tag: int, data: bytes, start: int, end: int) -> int:
    """The end of a field that the plan has no use for; a known field with a wrong wire type is an error."""
    number, wire_type = check_tag(plan.name, tag)
    name = plan.by_number.get(number)
    if name is not None:
        shown = _METADATA[plan.name.endswith("List")] if name == "metadata" else _go_name(name)
        shown = _GO_NAMES.get((plan.name, name), shown)
        raise ProtobufError(f"proto: wrong wireType = {wire_type} for field {shown}")
    return skip(data, start, end)


_GO_NAMES: Final = {("PodSpec", "serviceAccount"): "DeprecatedServiceAccount"}
_INITIALISMS: Final = ("api", "uid", "tls", "ip", "url", "uri", "id", "ca", "dns", "fs", "http", "tcp", "grpc", "csi")


def _go_name(name: str) -> str:
    """The Go name of a field, which errors show; close enough where Go's spelling is not a rule."""
    for word in _INITIALISMS:
        if name.startswith(word) and not name[len(word) : len(word) + 1].islower():
            return word.upper() + name[len(word) :]
    return name[:1].upper() + name[1:]


def _read_number(act: int, name: str, argument: Any, data: bytes, start: int, end: int, out: dict[str, Any]) -> int:
    _, position = read_varint(data, start, end)
    if act == _FIXED:
        if position + 8 > end:
            raise truncated()
        number = _double(data, position)[0]
        if not math.isfinite(number):
            raise ProtobufError(f"json: unsupported value: {number}")
        out[name] = int(number) if number == int(number) and abs(number) < 1e21 else number
        return position + 8
    value, position = read_varint(data, position, end)
    _items(out, name).append(argument(value))
    return position


def _read_value(act: int, name: str, argument: Any, keep: bool, body: bytes, depth: int, out: dict[str, Any]) -> None:
    if act == _VALUE:
        value = argument(body, depth)
        if keep or value is not None:
            out[name] = value
        else:
            out.pop(name, None)
    elif act == _VALUES:
        _items(out, name).append(argument(body, depth))
    else:
        numbers = _items(out, name)
        position = 0
        while position < len(body):
            value, position = read_varint(body, position, len(body))
            numbers.append(argument(value))


_INTEGERS_OF: Final[dict[str, Callable[[int], Any]]] = {
    "bool": bool,
    "int32": lambda value: special.signed(value, 32),
    "int64": lambda value: special.signed(value, 64),
    "uint64": int,
    "uint8": lambda value: value & 0xFF,
}


def _value_reader(kind: Type, owner: Struct) -> ValueReader:
    """The reader of a value that is a message or bytes. JSON schemas refer to the struct they stand in."""
    if isinstance(kind, Struct):
        return lambda data, depth: _read(_plan(kind), data, 0, len(data), depth, {})
    if isinstance(kind, Special):
        if kind.kind in SCHEMA_KINDS:
            return _schema_reader(kind.kind, owner)
        reader = special.READERS[kind.kind]
        return lambda data, depth: reader(data)
    if is_wrapped(kind):
        return lambda data, depth: special.read_strings(data)
    if isinstance(kind, Scalar) and kind.kind == "bytes":
        return lambda data, depth: b64encode(data).decode()
    if isinstance(kind, Scalar) and kind.kind == "string":
        return lambda data, depth: data.decode()
    raise TypeError(f"no protobuf form for {kind!r} here")


def _schema_reader(kind: str, schema: Struct) -> ValueReader:
    """JSON schemas where something simpler may stand: a bool, a list of schemas or a list of property names."""

    def read(data: bytes, depth: int) -> Any:
        nested: dict[str, Any] | None = None
        items: list[Any] = []
        allows = 0
        position, end = 0, len(data)
        at = 2 if kind == "SchemaOrBool" else 1
        while position < end:
            tag, after = read_varint(data, position, end)
            number, wire_type = check_tag("JSONSchemaPropsOr" + kind.removeprefix("SchemaOr"), tag)
            if number not in (1, 2):
                position = skip(data, position, end)
                continue
            if wire_type != (VARINT if at == 2 and number == 1 else BYTES):
                raise ProtobufError(f"proto: wrong wireType = {wire_type} for field Schema")
            if wire_type == VARINT:
                allows, position = read_varint(data, after, end)
                continue
            start, position = read_length(data, after, end)
            if number == at:
                nested = _read(_plan(schema), data, start, position, depth, nested or {})
            elif kind == "SchemaOrArray":
                items.append(_read(_plan(schema), data, start, position, depth, {}))
            else:
                items.append(data[start:position].decode())
        if nested is not None and not items:
            return nested
        return bool(allows) if at == 2 else items or None

    return read


EntryReader = Callable[[bytes, int, int, int, int, dict[str, Any]], None]


def _entry_reader(kind: Type, owner: Struct) -> EntryReader:
    """Reads one entry of a map into it; key and value may be missing or come in any order.

    ``limit`` is where the message ends that has the map.
    """
    read_value = _value_reader(kind, owner)
    zero = type_zero(kind)
    plain = isinstance(kind, Scalar) and kind.kind == "string"

    def read(data: bytes, position: int, end: int, limit: int, depth: int, out: dict[str, Any]) -> None:
        # The usual entry has a short key and a short value and nothing else; all others take the long way.
        if end - position > 3 and data[position] == 0x0A and data[position + 1] < 128:
            middle = position + 2 + data[position + 1]
            if middle + 1 < end and data[middle] == 0x12 and middle + 2 + data[middle + 1] == end < middle + 130:
                key = data[position + 2 : middle].decode()
                body = data[middle + 2 : end]
                out[key] = body.decode() if plain else read_value(body, depth)
                return
        read_slowly(data, position, end, limit, depth, out)

    def read_slowly(data: bytes, position: int, end: int, limit: int, depth: int, out: dict[str, Any]) -> None:
        key = ""
        value: Any = None
        while position < end:
            tag, after = read_varint(data, position, end)
            number = tag >> 3 & 0xFFFF_FFFF  # nobody asks whether an entry may have such a field
            if number not in (1, 2):
                position = skip(data, position, end)
                continue
            # Whatever its wire type, it is read as a text, and if need be beyond the entry, as in kube-apiserver.
            start, position = read_length(data, after, limit)
            if number == 1:
                key = data[start:position].decode()
            else:
                value = read_value(data[start:position], depth)
        out[key] = zero() if value is None else value

    return read
