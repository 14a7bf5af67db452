"""Reading: the first document of a text as a JSON value. libyaml parses; values are put together without recursion."""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import orjson

from pilothouse.machinery import large_json
from pilothouse.machinery.go_json import may_repeat_fields
from pilothouse.machinery.go_quote import quote
from pilothouse.machinery.piecewise import occurs
from pilothouse.machinery.workers import ABANDONED, PATIENCE, checkpoint
from pilothouse.machinery.yaml_codec.scalars import (
    TAG,
    YamlError,
    fail,
    format_float,
    go_infinity,
    resolve_tagged,
    to_json,
)

if TYPE_CHECKING:
    from yaml.events import Event

MAX_DEPTH: Final = 10_000
_COST: Final = 16
"""What an event costs, in units of what expressions cost."""
_LEVELS_FOR_ONE_COST: Final = 64
"""libyaml looks at all levels of flows for each event."""
_MOST_LEVELS: Final = 400_000_000
"""That many looks take two seconds."""
_OTHER_NUMBER: Final = re.compile(rb'(?:":|[\[,]) *-?(?:[0-9]++[.eE]|[0-9]{18})')
_REACH: Final = 4096
_MANY_BLANKS: Final = b" " * (_REACH - 32)
"""Behind so many a number may be too far from what stands before it."""
_OPENING: Final = ("[", "{")
_ESCAPED_SLASH: Final = re.compile(r"(?:[^\\]++|\\[^/])*+\\/", re.DOTALL)
_MAKING_VALUES, _MAKING_KEYS, _WRITING_JSON = range(3)
_MOST_PROBLEMS, _MOST_PLACES = 100, 100
_LONG_KEY: Final = re.compile(rb'"[^"]{1000,}+":')


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


def load_sorted(data: bytes) -> tuple[Any, str]:
    """The same with all keys in order, as they are in the JSON that kube-apiserver makes of YAML before it decodes."""
    value, repeated = load_reporting(data)
    pending = [value]
    while pending:
        container = pending.pop()
        if isinstance(container, dict):
            for key in sorted(container):
                container[key] = container.pop(key)
            pending += container.values()
        elif isinstance(container, list):
            pending += container
    return value, repeated


def _read_yaml(data: bytes) -> tuple[Any, str]:
    import yaml

    builder = _Builder(data)
    try:
        for event in yaml.parse(data, Loader=yaml.CLoader):
            if builder.take(event):
                break
    except yaml.MarkedYAMLError as error:
        raise fail(_describe(error, data, builder)) from None
    except yaml.reader.ReaderError as error:
        raise fail(error.reason) from None
    builder.check()
    return builder.root, builder.describe_repeated()


def _read_json(data: bytes) -> dict[str, Any] | None:
    """An object that is written as JSON, on one line, in a way that YAML understands no differently; else None.

    Most clients apply such texts, and YAML takes fifty times as long for them.
    """
    text = data.rstrip(b"\n")
    if text[:1] != b"{" or not text.isascii() or not text.decode("ascii").isprintable():
        return None
    if b"\\ud" in text or b"\\uD" in text or b"\\/" in text or _LONG_KEY.search(text):
        return None
    if _MANY_BLANKS in text or occurs(_OTHER_NUMBER, text, _REACH):
        return None
    try:
        value: dict[str, Any] = large_json.loads(text)
    except orjson.JSONDecodeError:
        return None
    return None if may_repeat_fields(text, value) else value


def _describe(error: Any, data: bytes, builder: _Builder) -> str:
    """A syntax error with its line, which kube-apiserver counts from one only in the scanner."""
    line, problem = error.problem_mark.line if error.problem_mark else 0, error.problem
    scanning = type(error).__name__ == "ScannerError"
    if problem == "found unexpected ':'" and _next_character(data, error.problem_mark.index) in _OPENING:
        # There a text goes on behind the colon, and what is opened then comes too early.
        scanning, problem = False, f"did not find expected ',' or '{builder.closing}'"
    if line:
        line += scanning
    elif error.context_mark:
        line = error.context_mark.line
    where = f"line {line}: " if line else ""
    return where + (problem or "unknown problem parsing YAML content")


def _next_character(data: bytes, index: int) -> str:
    return data.decode("utf-8", "replace")[index + 1 : index + 2]


def _check_version(start: Any) -> None:
    """kube-apiserver knows one version of YAML."""
    if start.version not in (None, (1, 1)):
        line = start.start_mark.line
        raise fail(f"{f'line {line}: ' if line else ''}found incompatible YAML document")


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


class _Problem(NamedTuple):
    """Something that went wrong, and the keys of the frames that it is in."""

    phase: int
    error: YamlError
    places: set[tuple[_Frame, Any]]


class _Builder:
    """Takes parser events one by one; no recursion, so that depth costs memory only.

    kube-apiserver parses all of a document, then makes values of it, then texts of keys, then JSON. What goes wrong in
    a later one of these phases is told only if nothing did in an earlier one, wherever it stands.
    """

    def __init__(self, data: bytes) -> None:
        self.root: Any = None
        self._text = data.decode("utf-8", "replace") if b"\\/" in data else ""
        self._problems: list[_Problem] = []
        self._lasting: _Problem | None = None
        """What went wrong after so many others, or so deep, that it is not known whether it is overwritten."""
        self.stack: list[_Frame] = []
        self.anchors: dict[str, _Anchored | None] = {}
        self.decoded = 0
        self.aliased = 0
        self.flow_depth = 0
        self.levels = 0
        self.repeated: list[str] = []

    def take(self, event: Event) -> bool:
        """Handle one event; True at the end of the first document."""
        if ABANDONED:
            checkpoint()
        PATIENCE.spend(_COST + self.flow_depth // _LEVELS_FOR_ONE_COST)
        self.levels += self.flow_depth
        if self.levels > _MOST_LEVELS:
            raise fail("document contains excessive nesting")
        kind = type(event).__name__
        if kind == "ScalarEvent":
            self._take_scalar(event)
        elif kind in ("MappingStartEvent", "SequenceStartEvent"):
            self._open(event, {} if kind == "MappingStartEvent" else [])
        elif kind in ("MappingEndEvent", "SequenceEndEvent"):
            self._close()
        elif kind == "AliasEvent":
            self._take_alias(event)
        elif kind == "DocumentStartEvent":
            _check_version(event)
        return kind == "DocumentEndEvent"

    def check(self) -> None:
        """Raise what went wrong first."""
        problems = self._problems + ([self._lasting] if self._lasting else [])
        if problems:
            raise min(problems, key=lambda problem: problem.phase).error

    def _note(self, phase: int, error: YamlError) -> None:
        if len(self._problems) < _MOST_PROBLEMS and len(self.stack) <= _MOST_PLACES:
            self._problems.append(_Problem(phase, error, {(frame, frame.key) for frame in self.stack}))
        else:
            self._lasting = self._lasting or _Problem(phase, error, set())

    def _forget(self, frame: _Frame, key: Any) -> None:
        """A key is set again: what went wrong with the text or the JSON of its last value does not matter any more."""
        place = frame, key
        self._problems = [each for each in self._problems if each.phase == _MAKING_VALUES or place not in each.places]

    @property
    def closing(self) -> str:
        """What would end the mapping or sequence that is being filled."""
        return "]" if self.stack and type(self.stack[-1].value) is list else "}"

    def describe_repeated(self) -> str:
        return "yaml: unmarshal errors:\n  " + "\n  ".join(self.repeated) if self.repeated else ""

    def _take_scalar(self, event: Any) -> None:
        frame = self.stack[-1] if self.stack else None
        plain = event.implicit[0]
        expects_key = frame is not None and type(frame.value) is dict and not frame.has_key
        if frame and expects_key and event.value == "<<" and (plain or event.tag == TAG + "merge"):
            frame.has_key = frame.merging = True
            return
        self.decoded += 1
        if self._text and event.style == '"':
            self._check_escapes(event)
        if self.flow_depth and plain and not event.style and "?" in event.value:
            # There a text in a flow ends before a question mark, and what that begins comes too early.
            where = f"line {event.start_mark.line}: " if event.start_mark.line else ""
            raise fail(f"{where}did not find expected ',' or '{self.closing}'")
        value = self._resolve(event) if plain or event.tag else event.value
        if event.anchor:
            self.anchors[event.anchor] = _Anchored(value, 1)
        self._place(value, event.start_mark.line)

    def _resolve(self, event: Any) -> Any:
        try:
            return resolve_tagged(event.tag, event.value)
        except YamlError as error:
            self._note(_MAKING_VALUES, error)
            return None

    def _check_escapes(self, event: Any) -> None:
        """Refuse what libyaml takes and go-yaml does not: a slash with a backslash before it."""
        start = event.start_mark
        found = _ESCAPED_SLASH.match(self._text[start.index : event.end_mark.index])
        if found is not None:
            line = start.line + found.group().count("\n")
            raise fail(f"{f'line {line + 1}: ' if line else ''}found unknown escape character")

    def _open(self, event: Any, value: dict[str, Any] | list[Any]) -> None:
        self.decoded += 1
        if event.anchor:
            self.anchors[event.anchor] = None
        frame = _Frame(value, event, self.decoded)
        self.flow_depth += frame.flow
        self.stack.append(frame)
        if self.flow_depth > MAX_DEPTH or len(self.stack) - self.flow_depth > MAX_DEPTH:
            where = f"line {frame.line + 1}: " if frame.line else ""
            raise fail(f"{where}exceeded max depth of {MAX_DEPTH}")

    def _close(self) -> None:
        frame = self.stack.pop()
        self.flow_depth -= frame.flow
        if frame.anchor:
            self.anchors[frame.anchor] = _Anchored(frame.value, self.decoded - frame.nodes + 1)
        self._place(frame.value, frame.line)

    def _take_alias(self, event: Any) -> None:
        if event.anchor not in self.anchors:
            raise fail(f"unknown anchor '{event.anchor}' referenced")
        anchored = self.anchors[event.anchor]
        if anchored is None:
            self._note(_MAKING_VALUES, fail(f"anchor '{event.anchor}' value contains itself"))
            anchored = _Anchored(None, 1)
        self.decoded += 1 + anchored.nodes
        self.aliased += anchored.nodes
        if self.aliased > 100 and self.decoded > 1000 and self.aliased / self.decoded > _alias_ratio(self.decoded):
            raise fail("document contains excessive aliasing")
        self._place(_copy(anchored.value), event.start_mark.line)

    def _place(self, value: Any, line: int) -> None:
        if not self.stack:
            self.root = self._to_json(value)
            return
        frame = self.stack[-1]
        if type(frame.value) is list:
            frame.value.append(self._to_json(value))
        elif not frame.has_key:
            if isinstance(value, (dict, list)):
                self._note(_MAKING_VALUES, fail(f"invalid map key: {_go_syntax(value)}"))
                value = ""
            frame.key, frame.has_key = value, True
            if self._problems and (type(value), value) in frame.seen:
                self._forget(frame, value)
        elif frame.merging:
            frame.has_key = frame.merging = False
            self._merge(frame, value, line)
        else:
            frame.has_key = False
            self._set(frame, frame.key, value, line)

    def _to_json(self, value: Any) -> Any:
        try:
            return to_json(value)
        except YamlError as error:
            self._note(_WRITING_JSON, error)
            return None

    def _set(self, frame: _Frame, key: Any, value: Any, line: int) -> None:
        typed = (type(key), key)
        frame.key = key
        if typed in frame.seen:
            self.repeated.append(f"line {line + 1}: key {_go_syntax(key)} already set in map")
        frame.seen.add(typed)
        if key is None:
            shown = "<nil>" if value is None else _go_syntax(value)
            why = f"unsupported map key of type: %!s(<nil>), key: <nil>, value: {shown}"
            self._note(_MAKING_KEYS, YamlError(why))
        else:
            frame.value[_key_text(key)] = self._to_json(value)  # type: ignore[call-overload]

    def _merge(self, frame: _Frame, value: Any, line: int) -> None:
        """Put another mapping's entries in; of several mappings the first has the last word."""
        sources = value if isinstance(value, list) else [value]
        if not all(isinstance(source, dict) for source in sources):
            self._note(_MAKING_VALUES, fail("map merge requires map or sequence of maps as the value"))
            return
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


def _key_text(key: Any) -> str:
    if type(key) is str:
        return key
    if isinstance(key, bool):
        return "true" if key else "false"
    return format_float(key, single=True) if isinstance(key, float) else str(key)


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
    if isinstance(value, float):
        return format_float(value) if math.isfinite(value) else go_infinity(value)
    return str(value) if value < 2**63 else hex(value)  # Go reads it as an unsigned number
