"""YAML in and out, with the meaning that sigs.k8s.io/yaml (go-yaml v2, YAML 1.1) gives it.

``load`` turns the first document into a JSON value: ``yes``, ``on`` and ``n`` are booleans, ``017`` and ``0o17`` are
octal, timestamps stay text, keys become text (``n:`` is "false"), merge keys are merged. libyaml parses, so syntax
errors carry the original's words; depth and alias expansion are bounded as in the original. ``dump`` writes block style
with sorted keys. PyYAML is imported on first use.
"""

from __future__ import annotations

import base64
import binascii
import contextlib
import functools
import math
import re
from collections.abc import Iterator
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import orjson

from pilothouse.machinery.go_json import may_repeat_fields
from pilothouse.machinery.go_quote import quote

if TYPE_CHECKING:
    from yaml.events import Event

MAX_DEPTH: Final = 10_000

_TAG: Final = "tag:yaml.org,2002:"
_NOT_STRINGS: Final[dict[str, Any]] = {
    **dict.fromkeys(("y", "Y", "yes", "Yes", "YES", "true", "True", "TRUE", "on", "On", "ON"), True),
    **dict.fromkeys(("n", "N", "no", "No", "NO", "false", "False", "FALSE", "off", "Off", "OFF"), False),
    **dict.fromkeys(("", "~", "null", "Null", "NULL")),
    **dict.fromkeys((".nan", ".NaN", ".NAN"), math.nan),
    **dict.fromkeys((".inf", ".Inf", ".INF", "+.inf", "+.Inf", "+.INF"), math.inf),
    **dict.fromkeys(("-.inf", "-.Inf", "-.INF"), -math.inf),
}
_HINTS: Final = frozenset("+-0123456789yYnNtTfFoO~.")
_INTEGER = re.compile(r"([+-]?)(?:0[xX]([0-9a-fA-F]+)|0[bB]([01]+)|0[oO]?([0-7]+)|([1-9][0-9]*|0))")
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
_BASE60 = re.compile(r"[-+]?[0-9][0-9_]*(?::[0-5]?[0-9])+(?:\.[0-9_]*)?")
_DATE = r"([0-9]{4})-([0-9]{1,2})-([0-9]{1,2})"
_CLOCK = r"([0-9]{1,2}):([0-9]{1,2}):([0-9]{1,2})(?:[.,][0-9]+)?"
_TIMESTAMP = re.compile(rf"{_DATE}(?:[Tt]{_CLOCK}(?:Z|[+-]([0-9]{{2}}):([0-9]{{2}}))| +{_CLOCK})?")
_RESOLVABLE: Final = frozenset(_TAG + name for name in ("str", "bool", "int", "float", "null", "timestamp"))
_LETTERS = re.compile(r"[A-Za-z]*")
_OTHER_NUMBER: Final = re.compile(rb'(?:":|[\[,]) *-?(?:[0-9]++[.eE]|[0-9]{18})')
_LONG_KEY: Final = re.compile(rb'"[^"]{1000,}+":')


class YamlError(ValueError):
    """A document that cannot be read; its message is what clients see."""


def _fail(problem: str) -> YamlError:
    return YamlError(f"yaml: {problem}")


def load(data: bytes, *, strict: bool = False) -> Any:
    """The first document as a JSON value, None for an empty one; ``strict`` refuses repeated keys."""
    value, repeated = load_reporting(data)
    if strict and repeated:
        raise YamlError(repeated)
    return value


def load_reporting(data: bytes) -> tuple[Any, str]:
    """The first document, and what strict reading would say of repeated keys; the last of them wins."""
    plain = _read_json(data)
    return _read_yaml(data) if plain is None else (plain, "")


def _read_yaml(data: bytes) -> tuple[Any, str]:
    import yaml

    try:
        builder = _Builder()
        for event in yaml.parse(data, Loader=yaml.CLoader):
            if builder.take(event):
                break
    except yaml.MarkedYAMLError as error:
        raise _fail(_describe(error)) from None
    except yaml.reader.ReaderError as error:
        raise _fail(error.reason) from None
    return builder.root, builder.describe_repeated()


def _read_json(data: bytes) -> dict[str, Any] | None:
    """An object that is written as JSON, on one line, in a way that YAML understands no differently; else None.

    Most clients apply such texts, and YAML takes fifty times as long for them.
    """
    text = data.rstrip(b"\n")
    if text[:1] != b"{" or not text.isascii() or not text.decode("ascii").isprintable():
        return None
    if b"\\ud" in text or b"\\uD" in text or _OTHER_NUMBER.search(text) or _LONG_KEY.search(text):
        return None
    try:
        value: dict[str, Any] = orjson.loads(text)
    except orjson.JSONDecodeError:
        return None
    return None if may_repeat_fields(text, value) else value


def _describe(error: Any) -> str:
    """A syntax error with its line, which the original counts from one only in the scanner."""
    line = error.problem_mark.line if error.problem_mark else 0
    if line:
        line += type(error).__name__ == "ScannerError"
    elif error.context_mark:
        line = error.context_mark.line
    where = f"line {line}: " if line else ""
    return where + (error.problem or "unknown problem parsing YAML content")


class _Anchored(NamedTuple):
    value: Any
    nodes: int


class _Frame:
    """A mapping or sequence that is being filled."""

    __slots__ = ("anchor", "flow", "has_key", "key", "line", "merging", "nodes", "seen", "value")

    def __init__(self, value: dict[str, Any] | list[Any], event: Any, nodes: int) -> None:
        self.value = value
        self.anchor: str | None = event.anchor
        self.flow: bool = bool(event.flow_style)
        self.line: int = event.start_mark.line
        self.nodes = nodes
        self.key: Any = None
        self.has_key = False
        self.merging = False
        self.seen: set[tuple[type, Any]] = set()


class _Builder:
    """Takes parser events one by one; no recursion, so that depth costs memory only."""

    def __init__(self) -> None:
        self.root: Any = None
        self.stack: list[_Frame] = []
        self.anchors: dict[str, _Anchored | None] = {}
        self.decoded = 0
        self.aliased = 0
        self.flow_depth = 0
        self.repeated: list[str] = []

    def take(self, event: Event) -> bool:
        """Handle one event; True at the end of the first document."""
        kind = type(event).__name__
        if kind == "ScalarEvent":
            self._take_scalar(event)
        elif kind in ("MappingStartEvent", "SequenceStartEvent"):
            self._open(event, {} if kind == "MappingStartEvent" else [])
        elif kind in ("MappingEndEvent", "SequenceEndEvent"):
            self._close()
        elif kind == "AliasEvent":
            self._take_alias(event)
        return kind == "DocumentEndEvent"

    def describe_repeated(self) -> str:
        return "yaml: unmarshal errors:\n  " + "\n  ".join(self.repeated) if self.repeated else ""

    def _take_scalar(self, event: Any) -> None:
        frame = self.stack[-1] if self.stack else None
        plain = event.implicit[0]
        expects_key = frame is not None and type(frame.value) is dict and not frame.has_key
        if frame and expects_key and event.value == "<<" and (plain or event.tag == _TAG + "merge"):
            frame.has_key = frame.merging = True
            return
        self.decoded += 1
        value = _resolve_tagged(event.tag, event.value) if plain or event.tag else event.value
        if event.anchor:
            self.anchors[event.anchor] = _Anchored(value, 1)
        self._place(value, event.start_mark.line)

    def _open(self, event: Any, value: dict[str, Any] | list[Any]) -> None:
        self.decoded += 1
        if event.anchor:
            self.anchors[event.anchor] = None
        frame = _Frame(value, event, self.decoded)
        self.flow_depth += frame.flow
        self.stack.append(frame)
        if self.flow_depth > MAX_DEPTH or len(self.stack) - self.flow_depth > MAX_DEPTH:
            where = f"line {frame.line + 1}: " if frame.line else ""
            raise _fail(f"{where}exceeded max depth of {MAX_DEPTH}")

    def _close(self) -> None:
        frame = self.stack.pop()
        self.flow_depth -= frame.flow
        if frame.anchor:
            self.anchors[frame.anchor] = _Anchored(frame.value, self.decoded - frame.nodes + 1)
        self._place(frame.value, frame.line)

    def _take_alias(self, event: Any) -> None:
        if event.anchor not in self.anchors:
            raise _fail(f"unknown anchor '{event.anchor}' referenced")
        anchored = self.anchors[event.anchor]
        if anchored is None:
            raise _fail(f"anchor '{event.anchor}' value contains itself")
        self.decoded += 1 + anchored.nodes
        self.aliased += anchored.nodes
        if self.aliased > 100 and self.decoded > 1000 and self.aliased / self.decoded > _alias_ratio(self.decoded):
            raise _fail("document contains excessive aliasing")
        self._place(_copy(anchored.value), event.start_mark.line)

    def _place(self, value: Any, line: int) -> None:
        if not self.stack:
            self.root = _to_json(value)
            return
        frame = self.stack[-1]
        if type(frame.value) is list:
            frame.value.append(_to_json(value))
        elif not frame.has_key:
            if isinstance(value, (dict, list)):
                raise _fail(f"invalid map key: {_go_syntax(value)}")
            frame.key, frame.has_key = value, True
        elif frame.merging:
            frame.has_key = frame.merging = False
            self._merge(frame, value, line)
        else:
            frame.has_key = False
            self._set(frame, frame.key, value, line)

    def _set(self, frame: _Frame, key: Any, value: Any, line: int) -> None:
        typed = (type(key), key)
        if typed in frame.seen:
            self.repeated.append(f"line {line + 1}: key {_go_syntax(key)} already set in map")
        frame.seen.add(typed)
        frame.value[_key_text(key, value)] = _to_json(value)  # type: ignore[call-overload]

    def _merge(self, frame: _Frame, value: Any, line: int) -> None:
        """Put another mapping's entries in; of several mappings the first has the last word."""
        sources = value if isinstance(value, list) else [value]
        if not all(isinstance(source, dict) for source in sources):
            raise _fail("map merge requires map or sequence of maps as the value")
        for source in reversed(sources):
            for key, item in source.items():
                self._set(frame, key, item, line)


def _alias_ratio(decoded: int) -> float:
    """How much of a document may come from aliases: nearly all of a small one, a tenth of a huge one."""
    if decoded <= 400_000:
        return 0.99
    return max(0.10, 0.99 - 0.89 * ((decoded - 400_000) / 3_600_000))


def _copy(value: Any) -> Any:
    """A copy that shares no containers, made without recursion."""
    if not isinstance(value, (dict, list)):
        return value
    root: Any = value.copy()
    pending = [root]
    while pending:
        container = pending.pop()
        for key, item in container.items() if isinstance(container, dict) else enumerate(container):
            if isinstance(item, (dict, list)):
                container[key] = item.copy()
                pending.append(container[key])
    return root


def _to_json(value: Any) -> Any:
    """A scalar after its way through JSON text: whole floats are integers, infinities are errors."""
    if type(value) is not float:
        return value
    if not math.isfinite(value):
        name = "NaN" if math.isnan(value) else "+Inf" if value > 0 else "-Inf"
        raise YamlError(f"json: unsupported value: {name}")
    return int(value) if value.is_integer() and abs(value) < 2**63 else value


def _key_text(key: Any, value: Any) -> str:
    if type(key) is str:
        return key
    if key is None:
        shown = _go_syntax(value)
        raise YamlError(f"unsupported map key of type: %!s(<nil>), key: <nil>, value: {shown}")
    if isinstance(key, bool):
        return "true" if key else "false"
    return _format_float(key, single=True) if isinstance(key, float) else str(key)


def _go_syntax(value: Any) -> str:
    """A value as ``%#v`` shows it."""
    if isinstance(value, str):
        return quote(value)
    if value is None:
        return "interface {}(nil)"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, dict):
        items = ", ".join(f"{_go_syntax(k)}:{_go_syntax(v)}" for k, v in value.items())
        return f"map[interface {{}}]interface {{}}{{{items}}}"
    if isinstance(value, list):
        return f"[]interface {{}}{{{', '.join(map(_go_syntax, value))}}}"
    return _format_float(value) if isinstance(value, float) else str(value)


def _resolve_tagged(tag: str | None, text: str) -> Any:
    """A scalar's value by its tag, or by its looks if it has none."""
    if not tag:
        return _resolve(text) if text[:1] in _HINTS or not text else text
    if tag == _TAG + "binary":
        return _decode_binary(text)
    if tag == _TAG + "str" or tag not in _RESOLVABLE:
        return text
    value = _resolve(text) if text[:1] in _HINTS or not text else text
    if tag == _TAG + "timestamp" and _is_timestamp(text):
        return text
    found = _TAG + _tag_of(value)
    if found == tag:
        return value
    if tag == _TAG + "float" and found == _TAG + "int":
        return float(value)
    raise _fail(f"cannot decode !!{_tag_of(value)} `{text}` as a !!{tag.removeprefix(_TAG)}")


def _tag_of(value: Any) -> str:
    if value is None:
        return "null"
    return {bool: "bool", int: "int", float: "float"}.get(type(value), "str")


def _decode_binary(text: str) -> str:
    try:
        return base64.b64decode(text.replace("\n", "").replace("\r", ""), validate=True).decode("utf-8", "replace")
    except (binascii.Error, ValueError):
        raise _fail("!!binary value contains invalid base64 data") from None


def _resolve(text: str) -> Any:
    """The value that an untagged plain scalar stands for; timestamps are text."""
    if text in _NOT_STRINGS:
        return _NOT_STRINGS[text]
    if text[0] == ".":
        return _parse_float(text, text)
    if text[0] not in "+-0123456789":
        return text
    plain = text.replace("_", "")
    integer = _parse_integer(plain)
    return integer if integer is not None else _parse_float(plain, text)


def _parse_integer(plain: str) -> int | None:
    match = _INTEGER.fullmatch(plain)
    if match is None or len(plain) > 70:
        return None
    sign, hexadecimal, binary, octal, decimal = match.groups()
    if decimal is not None:
        number = int(decimal)
    else:
        number = int(hexadecimal or binary or octal, 16 if hexadecimal else 2 if binary else 8)
    if sign == "-":
        return -number if number <= 2**63 else None
    return number if number < (2**63 if sign else 2**64) else None


def _parse_float(plain: str, text: str) -> float | str:
    if not _FLOAT.fullmatch(plain):
        return text
    number = float(plain)
    return number if math.isfinite(number) else text


def _is_timestamp(text: str) -> bool:
    match = _TIMESTAMP.fullmatch(text)
    if match is None:
        return False
    year, month, day, *rest = (int(group) if group else 0 for group in match.groups())
    hours, minutes, seconds = (max(rest[at], rest[at + 5]) for at in range(3))
    leap = year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)
    longest = (31, 29 if leap else 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)
    return (
        1 <= month <= 12
        and 1 <= day <= longest[month - 1]
        and hours < 24
        and minutes < 60
        and seconds < 60
        and rest[3] <= 24
        and rest[4] <= 60
    )


def dump(value: Any) -> str:
    """A JSON value as YAML: block style, keys in natural order, lists not indented, lines of about 80 columns."""
    import yaml

    text: str = yaml.emit(_events(value), Dumper=yaml.CDumper, allow_unicode=True, width=80)
    return text.removesuffix("...\n") if text.endswith("\n...\n") else text


def _events(value: Any) -> Iterator[Event]:
    from yaml import events

    yield events.StreamStartEvent()
    yield events.DocumentStartEvent(explicit=False)
    pending: list[Iterator[Any]] = [iter((value,))]
    closing: list[Event] = []
    while pending:
        item = next(pending[-1], _DONE)
        if item is _DONE:
            pending.pop()
            if closing:
                yield closing.pop()
        elif isinstance(item, dict):
            yield events.MappingStartEvent(None, None, True, flow_style=False)
            pending.append(_entries(item))
            closing.append(events.MappingEndEvent())
        elif isinstance(item, list):
            yield events.SequenceStartEvent(None, None, True, flow_style=False)
            pending.append(iter(item))
            closing.append(events.SequenceEndEvent())
        else:
            text, style = _scalar(item)
            yield events.ScalarEvent(None, None, (True, True), text, style=style)
    yield events.DocumentEndEvent(explicit=False)
    yield events.StreamEndEvent()


_DONE: Final = object()


def _entries(mapping: dict[str, Any]) -> Iterator[Any]:
    keys = sorted(mapping)
    if not all(map(_LETTERS.fullmatch, keys)):
        keys.sort(key=functools.cmp_to_key(_compare_keys))
    for key in keys:
        yield key
        yield mapping[key]


def _scalar(value: Any) -> tuple[str, str | None]:
    if isinstance(value, str):
        if "\n" in value:
            return value, "|"
        if value[:1] not in _HINTS and value:
            return value, None
        looks_other = not isinstance(_resolve(value), str) or _is_timestamp(value) or _BASE60.fullmatch(value)
        return value, '"' if looks_other else None
    if value is None:
        return "null", None
    if isinstance(value, bool):
        return "true" if value else "false", None
    value = _to_json(value)
    return _format_float(value) if isinstance(value, float) else str(value), None


def _format_float(value: float, *, single: bool = False) -> str:
    """A float as ``%g`` shows it with the fewest digits: an exponent below 1e-4 and from 1e6 on."""
    if not math.isfinite(value):
        return ".nan" if math.isnan(value) else ".inf" if value > 0 else "-.inf"
    sign, digits, power = _decompose(value, single)
    if -4 <= power < 0:
        return f"{sign}0.{'0' * (-power - 1)}{digits}"
    if 0 <= power < 6:
        whole, rest = digits[: power + 1].ljust(power + 1, "0"), digits[power + 1 :]
        return f"{sign}{whole}.{rest}" if rest else sign + whole
    mantissa = f"{digits[0]}.{digits[1:]}" if len(digits) > 1 else digits
    return f"{sign}{mantissa}e{'-' if power < 0 else '+'}{abs(power):02}"


def _decompose(value: float, single: bool) -> tuple[str, str, int]:
    """Sign, fewest digits that read back as the same float (of 32 bits if ``single``), and the power of the first."""
    text = repr(value)
    if single:
        import struct

        with contextlib.suppress(OverflowError):
            packed = struct.pack("f", value)
            texts = (f"{value:.{places}e}" for places in range(9))
            text = next((text for text in texts if struct.pack("f", float(text)) == packed), text)
    sign, digits, exponent = Decimal(text).normalize().as_tuple()
    return "-" * sign, "".join(map(str, digits)), len(digits) - 1 + int(exponent)


def _compare_keys(left: str, right: str) -> int:
    """Natural order: at the first difference letters come last and runs of digits compare as numbers."""
    for at, (a, b) in enumerate(zip(left, right, strict=False)):
        if a == b:
            continue
        if a.isalpha() or b.isalpha():
            if a.isalpha() and b.isalpha():
                return -1 if a < b else 1
            return -1 if b.isalpha() else 1
        carried = 1 if "0" in (a, b) and _follows_number(left, at) else 0
        left_number, left_end = _number_at(left, at, carried)
        right_number, right_end = _number_at(right, at, carried)
        return -1 if (left_number, left_end, a) < (right_number, right_end, b) else 1
    return len(left) - len(right)


def _follows_number(text: str, at: int) -> bool:
    while at > 0 and text[at - 1].isdigit():
        at -= 1
        if text[at] != "0":
            return True
    return False


def _number_at(text: str, at: int, number: int) -> tuple[int, int]:
    while at < len(text) and text[at].isdecimal():
        number = number * 10 + int(text[at])
        at += 1
    return number, at
