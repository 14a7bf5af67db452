"""Profiles, read back by the rules of protobuf."""

from __future__ import annotations

import gzip
import threading
from collections.abc import Iterator

from pilothouse.machinery.pprof import PROCESSOR, encode, sample, sample_values

STACK = (("/a.py", "inner", 1, 3), ("/a.py", "Outer.run", 10, 12))


def varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[at]
        value |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if byte < 0x80:
            return value, at


def fields(data: bytes) -> Iterator[tuple[int, int | bytes]]:
    at = 0
    while at < len(data):
        tag, at = varint(data, at)
        value, at = varint(data, at)
        if tag & 7 == 2:
            yield tag >> 3, data[at : at + value]
            at += value
        else:
            yield tag >> 3, value


def test_a_profile_holds_stacks_counts_and_names() -> None:
    message = list(fields(gzip.decompress(encode(sample_values({STACK: 300}), PROCESSOR, 3.0))))
    strings = [value for field, value in message if field == 6]
    assert strings[0] == b""
    assert {b"samples", b"cpu", b"nanoseconds", b"inner", b"Outer.run", b"/a.py"} <= set(strings)
    (one,) = (value for field, value in message if field == 2)
    assert isinstance(one, bytes)
    places, values = (value for _, value in fields(one))
    assert places == b"\x01\x02"
    assert isinstance(values, bytes)
    count, at = varint(values, 0)
    assert (count, varint(values, at)[0]) == (300, 3_000_000_000)
    assert len([field for field, _ in message if field in (4, 5)]) == 4


def test_other_threads_are_sampled() -> None:
    ready, end = threading.Event(), threading.Event()

    def wait_here() -> None:
        ready.set()
        end.wait()

    thread = threading.Thread(target=wait_here)
    thread.start()
    ready.wait()
    seen = sample(0.05)
    end.set()
    thread.join()
    assert any(place[1].endswith("wait_here") for stack in seen for place in stack)
