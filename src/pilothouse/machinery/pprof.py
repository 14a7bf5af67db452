"""Profiles in the format that ``go tool pprof`` and speedscope open: a gzipped protobuf message.

Processor time is sampled: a thread looks a hundred times a second at where all other threads are. What it finds costs
them nothing but the moments in which it holds the interpreter.
"""

from __future__ import annotations

import gzip
import sys
import threading
import time
from collections import Counter
from typing import Final

from pilothouse.machinery.protobuf.wire import BYTES, VARINT, delimited, encode_tag, encode_varint
from pilothouse.machinery.thread_frames import frames_of

HERTZ: Final = 100
Place = tuple[str, str, int, int]
"""File, function, the line it begins at, the line it is at."""
Stack = tuple[Place, ...]
"""Innermost frame first."""
Samples = dict[Stack, tuple[int, int]]
"""How often each stack was seen, and the nanoseconds it stands for."""
PROCESSOR: Final = ("samples", "cpu")
CONTENTION: Final = ("contentions", "delay")


def sample(seconds: float) -> dict[Stack, int]:
    """How often each stack was seen. Blocks: for a thread of its own."""
    own, seen = threading.get_ident(), Counter[Stack]()
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        for ident in sys._current_frames():
            if ident != own and (stack := stack_of(ident)):
                seen[stack] += 1
        time.sleep(1 / HERTZ)
    return seen


def sample_values(seen: dict[Stack, int]) -> Samples:
    """What was sampled, with the time it stands for."""
    period = 1_000_000_000 // HERTZ
    return {stack: (count, count * period) for stack, count in seen.items()}


def stack_of(thread: int) -> Stack:
    """The functions on the way to where a thread is; none if it has ended."""
    places: list[Place] = []
    for frame in frames_of(thread):
        code = frame.f_code
        places.append((code.co_filename, code.co_qualname, code.co_firstlineno, frame.f_lineno or 0))
    return tuple(places)


def encode(samples: Samples, values: tuple[str, str], seconds: float) -> bytes:
    """The profile of some samples; ``values`` are the names of the number and of the time."""
    return gzip.compress(_Profile().message(samples, values, seconds), 1)


class _Profile:
    """Collects strings, functions and places, each once, and writes the message."""

    def __init__(self) -> None:
        self._strings = {"": 0}
        self._functions: dict[tuple[str, str, int], int] = {}
        self._places: dict[Place, int] = {}

    def message(self, seen: Samples, values: tuple[str, str], seconds: float) -> bytes:
        period = 1_000_000_000 // HERTZ
        number, amount = values
        types = [_field(1, self._type(number, "count")), _field(1, self._type(amount, "nanoseconds"))]
        samples = [_field(2, self._sample(stack, pair)) for stack, pair in seen.items()]
        places = [_field(4, self._location(number, place)) for place, number in self._places.items()]
        functions = [_field(5, self._function(number, known)) for known, number in self._functions.items()]
        period_type = _field(11, self._type(amount, "nanoseconds"))
        strings = [_field(6, text.encode("utf-8", "replace")) for text in self._strings]
        times = _number(9, time.time_ns()) + _number(10, int(seconds * 1e9))
        return b"".join((*types, *samples, *places, *functions, *strings, times, period_type, _number(12, period)))

    def _string(self, text: str) -> int:
        return self._strings.setdefault(text, len(self._strings))

    def _type(self, kind: str, unit: str) -> bytes:
        return _number(1, self._string(kind)) + _number(2, self._string(unit))

    def _sample(self, stack: Stack, values: tuple[int, int]) -> bytes:
        numbers = [self._places.setdefault(place, len(self._places) + 1) for place in stack]
        return _packed(1, numbers) + _packed(2, list(values))

    def _location(self, number: int, place: Place) -> bytes:
        file, name, first, line = place
        function = self._functions.setdefault((file, name, first), len(self._functions) + 1)
        return _number(1, number) + _field(4, _number(1, function) + _number(2, line))

    def _function(self, number: int, known: tuple[str, str, int]) -> bytes:
        file, name, first = known
        text = self._string(name)
        return b"".join(
            (_number(1, number), _number(2, text), _number(3, text), _number(4, self._string(file)), _number(5, first))
        )


def _number(field: int, value: int) -> bytes:
    return encode_tag(field, VARINT) + encode_varint(value)


def _field(field: int, data: bytes) -> bytes:
    return delimited(encode_tag(field, BYTES), data)


def _packed(field: int, values: list[int]) -> bytes:
    return _field(field, b"".join(map(encode_varint, values)))
