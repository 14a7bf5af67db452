"""Writing messages exactly as kube-apiserver's generated code does.

Fields go out in the order of their numbers; scalars and structs that are no pointers are always written, even when
empty; maps are sorted by key; repeated numbers are not packed. For each struct a function is generated at first use
and kept with it: it looks up each field by name once and appends heads and bodies to a list. What repeats grows one
array instead: a hundred thousand heads and bodies that wait to be joined take ten times the room of their bytes. The
generated lines for a string and a list of structs read

    x = get('name')
    if x:
        b = x.encode()
        n = len(b)
        add(T0a[n] if n < 128 else b'\\n' + varint(n))
        add(b)
    else:
        add(b'\\n\\x00')
    m = get('containers')
    if m:
        p = bytearray()
        for x in m:
            b = E1(x)
            n = len(b)
            p += T12[n] if n < 128 else b'\\x12' + varint(n)
            p += b
        add(p)

where ``T0a`` holds the tag with each short length and ``E1`` is the function of another struct, made when first called.
"""

from __future__ import annotations

import struct as binary
from binascii import a2b_base64
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final

from pilothouse.machinery.piecewise import in_order
from pilothouse.machinery.protobuf import special
from pilothouse.machinery.protobuf.known_messages import REPEATED, KnownMessages
from pilothouse.machinery.protobuf.wire import (
    BYTES,
    FIXED64,
    VARINT,
    delimited,
    encode_tag,
    encode_varint,
    short_heads,
)
from pilothouse.machinery.schema.types import Field, Inline, ListOf, MapOf, Scalar, Special, Struct, Type

MessageEncoder = Callable[[dict[str, Any]], bytes]

_INTEGERS: Final = frozenset({"int32", "int64", "uint64", "uint8"})
_FEW: Final = 1_000
"""So many keys are sorted in less than a millisecond."""
SCHEMA_KINDS: Final = frozenset({"SchemaOrBool", "SchemaOrArray", "SchemaOrStringArray"})


def encode_message(struct: Struct, value: dict[str, Any]) -> bytes:
    """The bytes of a message, without any envelope. The value is normalised, as decoding leaves it."""
    return message_encoder(struct)(value)


def message_encoder(struct: Struct) -> MessageEncoder:
    """The function that writes a struct, built once."""
    encoder: MessageEncoder | None = struct.derived.get("protobuf_encoder")
    if encoder is None:
        encoder = _Source(struct).compile()
        if struct.name in REPEATED:
            encoder = KnownMessages(encoder)
        struct.derived["protobuf_encoder"] = encoder
    return encoder


def has_protobuf(struct: Struct) -> bool:
    """Whether the type has a protobuf form at all. Table has none, nor have custom resources."""
    return all(member.number or (isinstance(member, Field) and is_type_meta(member)) for member in struct.members)


def is_type_meta(field: Field) -> bool:
    """``kind`` and ``apiVersion`` of objects: they are in the envelope, not in the message."""
    return not field.number and field.name in ("kind", "apiVersion")


def is_wrapped(kind: Type) -> bool:
    """Whether a list is a message of its own: named lists of strings are."""
    return isinstance(kind, ListOf) and not kind.go.startswith("[") and isinstance(kind.item, Scalar)


class _Source:
    """The lines of one encoder and the names they use."""

    def __init__(self, struct: Struct) -> None:
        self.struct = struct
        self._adding = "add({})"
        self.lines = ["def encode(value):", "    get = value.get", "    out = []", "    add = out.append"]
        self.names: dict[str, Any] = {
            "varint": encode_varint, "a2b": a2b_base64, "double": binary.Struct("<d").pack, "EMPTY": {},
            "strings": special.write_strings, "entry": delimited, "in_order": in_order,
        }  # fmt: skip

    def compile(self) -> MessageEncoder:
        members = [m for m in self.struct.members if m.number]
        for member in sorted(members, key=lambda m: m.number):
            if isinstance(member, Inline):
                self._emit(1, f"b = {self._call(member.struct)}(value)")
                self._delimited(1, encode_tag(member.number, BYTES))
            else:
                self._field(member)
        self._emit(1, "return b''.join(out)")
        code = compile("\n".join(self.lines), f"<protobuf of {self.struct.name}>", "exec")
        exec(code, self.names)  # noqa: S102 (made of our own catalogue)
        encoder: MessageEncoder = self.names["encode"]
        return encoder

    def _emit(self, depth: int, line: str) -> None:
        self.lines.append("    " * depth + line)

    def _field(self, field: Field) -> None:
        kind = field.type
        if isinstance(kind, MapOf):
            self._map(field, kind)
        elif isinstance(kind, ListOf) and not is_wrapped(kind):
            with self._repeated(field, "x in m"):
                self._value(3, kind.item, field.number)
        else:
            self._single(field)

    @contextmanager
    def _repeated(self, field: Field, loop: str) -> Iterator[None]:
        """What is emitted inside is done for each of many, and grows one array."""
        self._emit(1, f"m = get({field.name!r})")
        self._emit(1, "if m:")
        self._emit(2, "p = bytearray()")
        self._emit(2, f"for {loop}:")
        self._adding = "p += {}"
        yield
        self._adding = "add({})"
        self._emit(2, "add(p)")

    def _add(self, depth: int, expression: str) -> None:
        self._emit(depth, self._adding.format(expression))

    def _single(self, field: Field) -> None:
        self._emit(1, f"x = get({field.name!r})")
        kind = field.type
        nillable = is_wrapped(kind) or (isinstance(kind, Scalar) and kind.kind == "bytes")
        always = not field.pointer and not nillable
        self._emit(1, "if x:" if always and isinstance(kind, Scalar) else "if x is not None:")
        self._value(2, kind, field.number)
        if always:
            self._emit(1, "else:")
            self._zero(2, kind, field.number)

    def _map(self, field: Field, kind: MapOf) -> None:
        tag = encode_tag(field.number, BYTES)
        optional = isinstance(kind.value, Scalar) and kind.value.kind == "bytes"
        body = "entry(b'\\x12', " + self._body(kind.value) + ")" + (" if x is not None else b''" if optional else "")
        with self._repeated(field, f"k in (sorted(m) if len(m) <= {_FEW} else in_order([*m]))"):
            self._emit(3, "x = m[k]")
            self._emit(3, f"b = entry(b'\\n', k.encode()) + ({body})")
            self._delimited(3, tag)

    def _value(self, depth: int, kind: Type, number: int) -> None:
        """Write ``x``, whatever it is."""
        if isinstance(kind, Scalar) and kind.kind in _INTEGERS:
            tag = encode_tag(number, VARINT)
            self._add(depth, f"{self._heads(tag)}[x] if 0 <= x < 128 else {tag!r} + varint(x)")
        elif isinstance(kind, Scalar) and kind.kind == "bool":
            tag = encode_tag(number, VARINT)
            self._add(depth, f"{tag + bytes((1,))!r} if x else {tag + bytes((0,))!r}")
        elif isinstance(kind, Scalar) and kind.kind == "float64":
            self._add(depth, f"{encode_tag(number, FIXED64)!r} + double(x)")
        else:
            self._emit(depth, f"b = {self._body(kind)}")
            self._delimited(depth, encode_tag(number, BYTES))

    def _zero(self, depth: int, kind: Type, number: int) -> None:
        """Write what stands for ``x`` when it is not set."""
        if isinstance(kind, Scalar) and kind.kind != "string":
            self._add(depth, f"{encode_tag(number, VARINT) + bytes((0,))!r}")
        elif isinstance(kind, Struct):
            self._emit(depth, f"b = {self._call(kind)}(EMPTY)")
            self._delimited(depth, encode_tag(number, BYTES))
        else:
            zero = special.ZEROS.get(kind.kind, b"") if isinstance(kind, Special) else b""
            self._add(depth, f"{delimited(encode_tag(number, BYTES), zero)!r}")

    def _delimited(self, depth: int, tag: bytes) -> None:
        self._emit(depth, "n = len(b)")
        self._add(depth, f"{self._heads(tag)}[n] if n < 128 else {tag!r} + varint(n)")
        self._add(depth, "b")

    def _heads(self, tag: bytes) -> str:
        name = f"T{tag.hex()}"
        self.names[name] = short_heads(tag)
        return name

    def _body(self, kind: Type) -> str:
        """An expression for the bytes of ``x`` behind its length."""
        if isinstance(kind, Struct):
            return f"{self._call(kind)}(x)"
        if isinstance(kind, Special):
            name = f"write_{kind.kind}"
            if kind.kind in SCHEMA_KINDS:
                self.names[name] = _schema_writer(kind.kind, self.struct)
            else:
                self.names[name] = special.WRITERS[kind.kind]
            return f"{name}(x)"
        if is_wrapped(kind):
            return "strings(x)"
        if isinstance(kind, Scalar) and kind.kind == "bytes":
            return "a2b(x)"
        if isinstance(kind, Scalar) and kind.kind == "string":
            return "x.encode()"
        raise TypeError(f"no protobuf form for {kind!r} here")

    def _call(self, struct: Struct) -> str:
        """The name of another struct's encoder, which replaces itself by the real one at its first call."""
        name = "E_" + struct.name.replace(".", "_")
        names = self.names

        def first_call(value: dict[str, Any]) -> bytes:
            encoder = names[name] = message_encoder(struct)
            return encoder(value)

        names.setdefault(name, first_call)
        return name


def _schema_writer(kind: str, schema: Struct) -> Callable[[Any], bytes]:
    """JSON schemas where something simpler may stand: a bool, a list of schemas or a list of property names."""

    def write_or_bool(value: Any) -> bytes:
        if isinstance(value, bool):
            return b"\x08\x01" if value else b"\x08\x00"
        return b"\x08\x01" + delimited(b"\x12", encode_message(schema, value))

    def write_or_array(value: Any) -> bytes:
        if isinstance(value, list):
            return b"".join(delimited(b"\x12", encode_message(schema, item)) for item in value)
        return delimited(b"\n", encode_message(schema, value))

    def write_or_strings(value: Any) -> bytes:
        if isinstance(value, list):
            return b"".join(delimited(b"\x12", item.encode()) for item in value)
        return delimited(b"\n", encode_message(schema, value))

    return {
        "SchemaOrBool": write_or_bool,
        "SchemaOrArray": write_or_array,
        "SchemaOrStringArray": write_or_strings,
    }[kind]
