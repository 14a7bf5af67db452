"""Pages of metrics as messages."""

from __future__ import annotations

import struct
from typing import Any

import pytest

from pilothouse.machinery.joined_metrics import join_pages
from pilothouse.machinery.metric_messages import Encode, compact_text, delimited, encode_page, families, text
from pilothouse.machinery.metrics import Counter, Gauge, Histogram, Instrument, render
from pilothouse.machinery.observations import SCHEMA, ZERO_THRESHOLD

Fields = dict[int, list[Any]]
STARTED = 1_800_000_000


def encoded(encode: Encode, *instruments: Instrument, native: bool = True) -> bytes:
    return b"".join(encode_page(render(instruments, native=native), encode, STARTED))


def fields(data: bytes) -> Fields:
    """A message by the numbers of its fields."""
    found: Fields = {}
    while data:
        tag, data = varint(data)
        value: bytes | int | float
        match tag & 7:
            case 0:
                value, data = varint(data)
            case 1:
                (value,), data = struct.unpack("<d", data[:8]), data[8:]
            case 2:
                length, data = varint(data)
                value, data = data[:length], data[length:]
        found.setdefault(tag >> 3, []).append(value)
    return found


def varint(data: bytes) -> tuple[int, bytes]:
    end = next(at for at, byte in enumerate(data) if byte < 128) + 1
    return sum((byte & 127) << 7 * at for at, byte in enumerate(data[:end])), data[end:]


def family(*instruments: Instrument, native: bool = True) -> Fields:
    length, message = varint(encoded(delimited, *instruments, native=native))
    assert length == len(message)
    return fields(message)


def histogram(message: Fields) -> Fields:
    return fields(fields(message[4][0])[7][0])


def signed(value: int) -> int:
    return value >> 1 ^ -(value & 1)


def test_a_counter_has_sorted_labels_and_a_beginning() -> None:
    requests = Counter("requests_total", "[BETA] Requests.", ("verb", "code"))
    requests.labelled('a"\\\n', "200").value = 3
    assert encoded(text, requests).decode() == (
        'name: "requests_total"\nhelp: "[BETA] Requests."\ntype: COUNTER\nmetric: {\n'
        '  label: {\n    name: "code"\n    value: "200"\n  }\n'
        '  label: {\n    name: "verb"\n    value: "a\\"\\\\\\n"\n  }\n'
        f"  counter: {{\n    value: 3\n    created_timestamp: {{\n      seconds: {STARTED}\n    }}\n  }}\n}}\n\n"
    )


def test_a_gauge_in_one_line() -> None:
    gauge = Gauge("level", "Level.")
    gauge.labelled().value = 1.5
    assert encoded(compact_text, gauge) == b'name:"level" help:"Level." type:GAUGE metric:{gauge:{value:1.5}}\n'


def test_a_histogram_has_both_kinds_of_buckets() -> None:
    seconds = Histogram("seconds", "Seconds.", ("verb",), (0.5, 2.0))
    for value in (0.0, 1.0, 1.0, 1.05, 4.0):
        seconds.labelled("GET").observe(value)
    message = family(seconds)
    assert (message[1], message[3]) == ([b"seconds"], [4])
    found = histogram(message)
    assert found[1] == [5]
    assert found[2] == pytest.approx([7.05])
    assert list(map(fields, found[3])) == [{1: [1], 2: [0.5]}, {1: [4], 2: [2.0]}]
    assert (signed(found[5][0]), found[6], found[7]) == (SCHEMA, [ZERO_THRESHOLD], [1])
    assert [(signed(run[1][0]), run[2]) for run in map(fields, found[12])] == [(0, [2]), (14, [1])]
    assert list(map(signed, found[13])) == [2, -1, 0]
    assert fields(found[15][0]) == {1: [STARTED]}


def test_what_weighs_time_and_what_is_switched_off_has_no_native_buckets() -> None:
    weighed, seconds = Histogram("a", "A.", native=False), Histogram("a", "A.")
    for each in (weighed, seconds):
        each.labelled().observe(1.0)
    assert 5 not in histogram(family(weighed))
    assert 5 not in histogram(family(seconds, native=False))
    assert b"_native" not in render([seconds])


def test_a_histogram_without_observations_is_native_too() -> None:
    found = histogram(family(Histogram("a", "A.")))
    assert signed(found[5][0]) == SCHEMA
    assert found[7] == [0]
    assert 12 not in found


def test_pages_of_several_processes() -> None:
    def page(*values: float) -> bytes:
        seconds = Histogram("seconds", "Seconds.", ("verb",), (1.0,))
        for value in values:
            seconds.labelled("GET").observe(value)
        seconds.labelled("LIST").observe(1.0)
        return render([seconds], native=True)

    joined = b"".join(encode_page(join_pages([page(1.0), page(1.0, 4.0)], {}), compact_text, STARTED)).decode()
    assert joined.count("metric:{") == 2
    assert "sample_count:3 sample_sum:6 bucket:{cumulative_count:2 upper_bound:1} schema:3" in joined
    assert "positive_span:{offset:0 length:1} positive_span:{offset:15 length:1} " in joined
    assert "positive_delta:2 positive_delta:-1" in joined


def test_families_of_a_page() -> None:
    page = render([Gauge("a", "A # HELP."), Gauge("b", "B.")])
    assert [name for name, _ in families(page)] == ["a", "b"]
    assert b"".join(lines for _, lines in families(page)) == page


def test_long_families_are_made_in_turns() -> None:
    counter = Counter("a", "A.", ("x",))
    for number in range(500):
        counter.labelled(str(number)).value = 1
    pieces = list(encode_page(render([counter]), delimited, STARTED))
    assert pieces.count(b"") >= 10
    assert sum(map(bool, pieces)) == 1
