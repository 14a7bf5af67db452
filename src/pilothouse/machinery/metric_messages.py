"""Metrics as messages (``io.prometheus.client.MetricFamily``), made of a page of text.

    seconds_bucket{verb="GET",le="0.1"} 5        metric { label { name: "verb" value: "GET" }
    seconds_native{verb="GET",key="-27"} 5   →     histogram { sample_count: 5 … schema: 3
    seconds_sum{verb="GET"} 0.46                    bucket { cumulative_count: 5 upper_bound: 0.1 }
    seconds_count{verb="GET"} 5                     positive_span { offset: -27 length: 1 } positive_delta: 5 } }

The text is what processes hand to each other, so this works whoever has counted. Counters and histograms say that they
began when the process did: what came later was nothing until then.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final, Literal, NamedTuple

from pilothouse.machinery.go_quote import quote
from pilothouse.machinery.metric_text import LABEL, number_text, unescape
from pilothouse.machinery.metrics import NATIVE, ZERO
from pilothouse.machinery.observations import SCHEMA, ZERO_THRESHOLD, NativeBuckets, spans, widened
from pilothouse.machinery.protobuf.wire import BYTES, FIXED64, VARINT, encode_tag, encode_varint
from pilothouse.machinery.protobuf.wire import delimited as delimited_field

Kind = Literal["text", "whole", "signed", "real", "type", "message"]


class Field(NamedTuple):
    """A field of a message: what both forms call it, and how its values are written."""

    number: int
    name: str
    kind: Kind


Labels = tuple[tuple[str, str], ...]
Message = list[tuple[Field, Any]]
Encode = Callable[[Message], bytes]
_TYPES: Final = {"counter": 0, "gauge": 1, "summary": 2, "untyped": 3, "histogram": 4}
_TYPE_NAMES: Final = {number: name.upper() for name, number in _TYPES.items()}

_NAME, _HELP = Field(1, "name", "text"), Field(2, "help", "text")
_TYPE, _METRIC = Field(3, "type", "type"), Field(4, "metric", "message")
_LABEL, _VALUE_OF_LABEL = Field(1, "label", "message"), Field(2, "value", "text")
_VALUES: Final = {
    "counter": Field(3, "counter", "message"),
    "gauge": Field(2, "gauge", "message"),
    "summary": Field(4, "summary", "message"),
    "untyped": Field(5, "untyped", "message"),
    "histogram": Field(7, "histogram", "message"),
}
_VALUE: Final = Field(1, "value", "real")
_SECONDS: Final = Field(1, "seconds", "whole")
_STARTED: Final = {
    "counter": Field(3, "created_timestamp", "message"),
    "summary": Field(4, "created_timestamp", "message"),
    "histogram": Field(15, "created_timestamp", "message"),
}
_COUNT, _SUM = Field(1, "sample_count", "whole"), Field(2, "sample_sum", "real")
_BUCKET, _REACHED = Field(3, "bucket", "message"), Field(1, "cumulative_count", "whole")
_BOUND, _SCHEMA = Field(2, "upper_bound", "real"), Field(5, "schema", "signed")
_THRESHOLD, _ZEROS = Field(6, "zero_threshold", "real"), Field(7, "zero_count", "whole")
_SPAN, _DELTA = Field(12, "positive_span", "message"), Field(13, "positive_delta", "signed")
_OFFSET, _LENGTH = Field(1, "offset", "signed"), Field(2, "length", "whole")


class _Series:
    """What the lines say of one series."""

    __slots__ = ("buckets", "native", "sums")

    def __init__(self) -> None:
        self.sums: dict[str, float] = {}
        self.buckets: list[tuple[str, float]] = []
        self.native: dict[str, int] | None = None

    def add(self, part: str, detail: str, value: float) -> None:
        """One line."""
        if part == "_bucket":
            self.buckets.append((detail, value))
        elif part == NATIVE:
            self.native = self.native or {}
            self.native[detail] = int(value)
        else:
            self.sums[part] = value


def families(page: bytes) -> Iterator[tuple[str, bytes]]:
    """The families of a page, each with its name and all of its lines."""
    for family in page.split(b"# HELP ")[1:]:
        yield family[: family.index(b" ")].decode(), b"# HELP " + family


def encode_page(page: bytes, encode: Encode, started: int) -> Iterator[bytes]:
    """The messages of a page, one a family. Nothing comes now and then in between, for whoever looks at the time."""
    for name, text in families(page):
        message: Message = []
        for part in _family(name, text.decode(), started):
            message.append(part)
            if not len(message) % _PARTS_A_TURN:
                yield b""
        yield encode(message)


_PARTS_A_TURN: Final = 50


def _family(name: str, text: str, started: int) -> Iterator[tuple[Field, Any]]:
    words, kind, *lines = text.splitlines()
    kind = kind.rpartition(" ")[2]
    yield _NAME, name
    yield _HELP, words.split(" ", 3)[3]
    yield _TYPE, _TYPES[kind]
    began = [(_STARTED[kind], [(_SECONDS, started)])] if kind in _STARTED else []
    for labels, series in _series(name, kind, lines):
        value = [(_VALUE, series.sums[""])] if "" in series.sums else _observed(series)
        metric: Message = [(_LABEL, [(_NAME, label), (_VALUE_OF_LABEL, said)]) for label, said in labels]
        yield _METRIC, [*metric, (_VALUES[kind], sorted([*value, *began], key=lambda pair: pair[0].number))]


def _series(name: str, kind: str, lines: Iterable[str]) -> Iterator[tuple[Labels, _Series]]:
    """The series in the order of a page, in which what only some processes have may come late."""
    found: dict[Labels, _Series] = {}
    for line in lines:
        written, _, value = line.rpartition(" ")
        labels = [(label, unescape(said)) for label, said in LABEL.findall(written)]
        part = written.partition("{")[0].removeprefix(name)
        detail = labels.pop()[1] if kind == "histogram" and part in ("_bucket", NATIVE) else ""
        series = found.setdefault(tuple(sorted(labels)), _Series())
        series.add(part, detail, float(value))
    yield from found.items()


def _observed(series: _Series) -> Message:
    found: Message = [(_COUNT, int(series.sums["_count"])), (_SUM, series.sums["_sum"])]
    for bound, reached in series.buckets:
        if bound != "+Inf":
            found.append((_BUCKET, [(_REACHED, int(reached)), (_BOUND, float(bound))]))
    if series.native is not None:
        zeros = series.native.pop(ZERO, 0)
        numbers = {int(key): number for key, number in series.native.items()}
        found += _native(widened(NativeBuckets(SCHEMA, zeros, numbers)))
    return found


def _native(buckets: NativeBuckets) -> Message:
    found: Message = [(_SCHEMA, buckets.schema), (_THRESHOLD, ZERO_THRESHOLD), (_ZEROS, buckets.zeros)]
    deltas: Message = []
    before = 0
    for offset, run in spans(buckets.numbers):
        found.append((_SPAN, [(_OFFSET, offset), (_LENGTH, len(run))]))
        for number in run:
            deltas.append((_DELTA, number - before))
            before = number
    return found + deltas


# Forms


def delimited(message: Message) -> bytes:
    """The bytes of a message behind their length."""
    encoded = _bytes(message)
    return encode_varint(len(encoded)) + encoded


def text(message: Message) -> bytes:
    """A field a line."""
    return "".join(_lines(message, "")).encode() + b"\n"


def compact_text(message: Message) -> bytes:
    """All in one line."""
    return _words(message).encode() + b"\n"


def _bytes(message: Message) -> bytes:
    return b"".join([_encoded(field, value) for field, value in message])


def _encoded(field: Field, value: Any) -> bytes:
    match field.kind:
        case "real":
            return encode_tag(field.number, FIXED64) + struct.pack("<d", value)
        case "whole" | "type":
            return encode_tag(field.number, VARINT) + encode_varint(value)
        case "signed":
            return encode_tag(field.number, VARINT) + encode_varint(value * 2 if value >= 0 else -value * 2 - 1)
    tag = encode_tag(field.number, BYTES)
    return delimited_field(tag, value.encode() if field.kind == "text" else _bytes(value))


def _lines(message: Message, indent: str) -> Iterator[str]:
    for field, value in message:
        if field.kind == "message":
            yield f"{indent}{field.name}: {{\n"
            yield from _lines(value, indent + "  ")
            yield f"{indent}}}\n"
        else:
            yield f"{indent}{field.name}: {_shown(field, value)}\n"


def _words(message: Message) -> str:
    return " ".join(
        f"{field.name}:" + (f"{{{_words(value)}}}" if field.kind == "message" else _shown(field, value))
        for field, value in message
    )


def _shown(field: Field, value: Any) -> str:
    match field.kind:
        case "text":
            return quote(value)
        case "type":
            return _TYPE_NAMES[value]
        case "real":
            return number_text(value)
    return str(value)
