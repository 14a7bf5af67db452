from __future__ import annotations

import pytest

from pilothouse.filters.answer_headers import with_answer_headers
from pilothouse.filters.warnings import quote_warning, warning_headers

from .handlers import Ask, answering


async def test_warnings(ask: Ask) -> None:
    request = ask()
    for text in ("one", "two", "one"):
        request.warn(text)
    response = await with_answer_headers(answering(422))(request)
    assert response.headers[:-1] == [(b"warning", b'299 - "one"'), (b"warning", b'299 - "two"')]


@pytest.mark.parametrize(
    ("text", "header"),
    [
        ("plain", b'299 - "plain"'),
        ('say "hi" \\', b'299 - "say \\"hi\\" \\\\"'),
        ("é", '299 - "é"'.encode()),
    ],
)
def test_quoting_warnings(text: str, header: bytes) -> None:
    assert quote_warning(text) == header


def test_long_warnings_are_cut_and_then_dropped() -> None:
    (one,) = warning_headers(["x" * 4000])
    assert len(one[1]) > 4000
    cut = warning_headers([f"{n}" + "x" * 4000 for n in range(2)])
    assert [len(value) for _, value in cut] == [264, 264]
    assert len(warning_headers([f"{n}" + "x" * 500 for n in range(100)])) == 16
    assert len(warning_headers([f"{n:03}" + "x" * 17 for n in range(1000)])) == 205
    assert [len(value) for _, value in warning_headers(["ä" * 4000, "b"])] == [8008, 9]


def test_warnings_with_control_characters_are_not_sent() -> None:
    assert warning_headers(["a\r\nSet-Cookie: x", "b\x85", "", "c"]) == [(b"warning", b'299 - "c"')]
