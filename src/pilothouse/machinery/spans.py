"""What happens within a request, step by step: for the log where it took long, and for a collector of traces.

    with Span("Create", fields):                     the current span from here on, in this task and in those it starts
        step("About to store object in database")    noted with the current span, with the time
        with Span("Create etcd3"):                   nested in it

Names are kube-apiserver's. Only where an outermost span took longer than its threshold, or one within it did, lines are
written (``Trace[…]``), with the steps that took more than their share. Without a span that is current, a step is
nothing. What is ``Exported`` comes from outside: a request that is to be told to a collector begins below such a span.

Fields may be a function: they are worked out only when somebody wants to read them. They never hold bodies or headers
that could carry secrets.
"""

from __future__ import annotations

import logging
import random
import time
from collections.abc import Callable, Iterator, Mapping
from contextvars import ContextVar, Token
from types import TracebackType
from typing import Final, NamedTuple, Protocol

from pilothouse.machinery.go_quote import quote
from pilothouse.machinery.times import format_duration

logger = logging.getLogger(__name__)
THRESHOLD_SECONDS: Final = 0.5
Fields = Mapping[str, str | int | bool]
LazyFields = Fields | Callable[[], Fields]
_NONE: Final[Fields] = {}


class Exported(Protocol):
    """The same span as a collector of traces will see it."""

    def child(self, name: str, fields: LazyFields) -> Exported:
        """A span that begins now within this one."""
        ...

    def event(self, name: str, fields: Fields) -> None:
        """Something happened now."""

    def end(self, error: BaseException | None) -> None:
        """It is over; with an error, it failed."""

    def headers(self) -> dict[str, str]:
        """What tells a peer that its work is part of this."""
        ...


class Both:
    """A span that two want to see: the second of them begins within one of the first."""

    def __init__(self, outer: Exported, inner: Exported) -> None:
        self._outer, self._inner = outer, inner

    def child(self, name: str, fields: LazyFields) -> Exported:
        """A span of both."""
        return Both(self._outer.child(name, fields), self._inner.child(name, fields))

    def event(self, name: str, fields: Fields) -> None:
        """Both hear of it."""
        self._outer.event(name, fields)
        self._inner.event(name, fields)

    def end(self, error: BaseException | None) -> None:
        """It is over for both."""
        self._inner.end(error)
        self._outer.end(error)

    def headers(self) -> dict[str, str]:
        """Those of both."""
        return {**self._outer.headers(), **self._inner.headers()}


class _Call(NamedTuple):
    """A span that is over, with at most one step at its end: what most are, noted for less."""

    began: float
    ended: float
    name: str
    fields: Fields
    last: str

    def as_span(self) -> Span:
        span = Span(self.name, self.fields)
        span._began, span._ended = self.began, self.ended
        if self.last:
            span._items.append((self.ended, self.last, _NONE))
        return span


class Span:
    """Something that lasts. A context manager: it is current within."""

    __slots__ = (
        "_began", "_ended", "_fields", "_items", "_name", "_note", "_parent", "_threshold", "_token", "_worth_a_line",
        "exported",
    )  # fmt: skip

    def __init__(
        self,
        name: str,
        fields: LazyFields = _NONE,
        threshold: float = THRESHOLD_SECONDS,
        exported: Exported | None = None,
    ) -> None:
        self._name, self._fields, self._threshold = name, fields, threshold
        self.exported = exported
        self._items: list[tuple[float, str, Fields] | Span | _Call] = []
        self._worth_a_line = False
        """Whether something within took long."""
        self._ended = 0.0

    def __enter__(self) -> Span:
        parent = self._parent = current()
        if parent is not None:
            parent._items.append(self)
            if parent.exported is not None:
                inherited = parent.exported.child(self._name, self._fields)
                self.exported = inherited if self.exported is None else Both(inherited, self.exported)
        self._note: Callable[[tuple[float, str, Fields]], object]
        self._note = self._items.append if self.exported is None else self._note_exported
        self._token: Token[Span | None] = _CURRENT.set(self)
        self._began = time.perf_counter()
        return self

    def __exit__(self, _: type[BaseException] | None, error: BaseException | None, __: TracebackType | None) -> None:
        self._ended = time.perf_counter()
        self._note = _ignore
        _CURRENT.reset(self._token)
        if self.exported is not None:
            self.exported.end(error)
        parent = self._parent
        if self._worth_a_line or self._ended - self._began >= self._threshold:
            if parent is None:
                self._log()
            else:
                parent._worth_a_line = True
        if parent is None:
            self._items, self._fields = [], _NONE  # work that outlives a request must not keep it

    def _note_exported(self, item: tuple[float, str, Fields]) -> None:
        self.step(*item[1:])

    def step(self, name: str, fields: Fields = _NONE) -> None:
        """Note that a step is done."""
        self._items.append((time.perf_counter(), name, fields))
        if self.exported is not None:
            self.exported.event(name, fields)

    def note_call(self, name: str, fields: Fields, began: float, ended: float, last: str = "") -> None:
        """Note something that lasted within this span and is over, with its last step; not told to a collector."""
        self._items.append(_Call(began, ended, name, fields, last))
        if ended - began >= THRESHOLD_SECONDS:
            self._worth_a_line = True

    @property
    def _seconds(self) -> float:
        return (self._ended or time.perf_counter()) - self._began

    @property
    def _is_long(self) -> bool:
        return bool(self._ended) and self._seconds >= self._threshold

    def _log(self) -> None:
        """Tell of it; what cannot be told is no reason to fail."""
        try:
            self._tell()
        except Exception:
            logger.exception("a slow %s cannot be described", self._name)

    @property
    def _parts(self) -> list[tuple[float, str, Fields] | Span]:
        return [item.as_span() if isinstance(item, _Call) else item for item in self._items]

    def _tell(self) -> None:
        if not self._is_long:
            for item in self._parts:
                if isinstance(item, Span):
                    item._tell()
            return
        number = random.getrandbits(31)
        lines = [
            f"Trace[{number}]: {quote(self._name)} {_shown(self._fields)}({_day(self._began)}) "
            f"(total time: {_milliseconds(self._seconds)}):",
            *(f"Trace[{number}]: {line}" for line in self._lines(self._step_threshold())),
            f"Trace[{number}]: [{_duration(self._seconds)}] [{_duration(self._seconds)}] END",
        ]
        logger.info("%s", "\n".join(lines))

    def _lines(self, threshold: float) -> Iterator[str]:
        """The steps that took more than their share, and what is nested."""
        everything = logger.isEnabledFor(logging.DEBUG)
        last = self._began
        for item in self._parts:
            if isinstance(item, Span):
                yield from item._nested_lines(everything)
                last = item._ended or item._began
                continue
            at, name, fields = item
            if at - last >= threshold or everything:
                yield f"---{_summary(name, fields, at - last, at)}"
            last = at

    def _nested_lines(self, everything: bool) -> Iterator[str]:
        if self._is_long or everything:
            *inner, last = [
                f"[{_summary(self._name, self._fields, self._seconds, self._began)}",
                *(f" {line}" for line in self._lines(self._step_threshold())),
            ]
            yield from inner
            yield f"{last}]"
            return
        for item in self._parts:
            if isinstance(item, Span):
                yield from item._nested_lines(everything)

    def _step_threshold(self) -> float:
        """A step's share of the time, of which that of nested spans is taken first."""
        nested = [item._threshold for item in self._parts if isinstance(item, Span) and item._ended]
        left, parts = self._threshold - sum(nested), len(self._items) + 1 - len(nested)
        if left < self._threshold / 4:
            left, parts = self._threshold / 4, len(self._items) + 1
        return left / parts


def _ignore(item: object) -> None:
    """What comes after the end of a span belongs to nobody."""


_CURRENT: Final[ContextVar[Span | None]] = ContextVar("span", default=None)


def current() -> Span | None:
    """The span that whoever asks works within; work that outlives the request that began it is within none."""
    found = _CURRENT.get()
    return None if found is None or found._ended else found


def step(name: str, fields: Fields = _NONE) -> None:
    """Note a step of the current span."""
    found = _CURRENT.get()
    if found is not None:  # without further calls: a write takes a dozen steps
        found._note((time.perf_counter(), name, fields))


def propagation_headers() -> dict[str, str]:
    """The headers that tell a peer which trace its work belongs to; none where nobody collects traces."""
    found = _CURRENT.get()
    return {} if found is None or found._ended or found.exported is None else found.exported.headers()


def resolved(fields: LazyFields) -> Fields:
    """Fields, worked out."""
    return fields() if callable(fields) else fields


def _shown(fields: LazyFields) -> str:
    text = ",".join(f"{name}:{_value(value)}" for name, value in resolved(fields).items())
    return f"{text} " if text else ""


def _value(value: str | int | bool) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value).replace("\n", " ")


def _summary(name: str, fields: LazyFields, seconds: float, at: float) -> str:
    return f"{quote(name)} {_shown(fields)}{_milliseconds(seconds)} ({_clock(at, '%H:%M:%S')})"


def _day(at: float) -> str:
    return _clock(at, "%d-%b-%Y %H:%M:%S")


def _clock(at: float, pattern: str) -> str:
    moment = time.time() - (time.perf_counter() - at)
    return f"{time.strftime(pattern, time.localtime(moment))}.{int(moment % 1 * 1000):03}"


def _milliseconds(seconds: float) -> str:
    return f"{int(seconds * 1000)}ms"


def _duration(seconds: float) -> str:
    return format_duration(int(seconds * 1_000_000_000))
