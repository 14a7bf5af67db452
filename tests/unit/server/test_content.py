"""Serving documents: conditions and ranges."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from pilothouse.net.messages import Response
from pilothouse.server.content import serve_content

BODY = b"0123456789"
OLD, MADE, NEW = (f"Mon, 0{day} Jan 2024 00:00:00 GMT" for day in (1, 2, 3))
MODIFIED = 1704153600.5


def ask(method: str = "GET", **headers: str) -> Response:
    lower = {name.replace("_", "-").encode(): value.encode() for name, value in headers.items()}
    request: Any = SimpleNamespace(method=method, headers=lower)
    return serve_content(request, BODY, b"text/x", MODIFIED, [(b"vary", b"Accept")], b'"t"')


def test_whole() -> None:
    answer = ask()
    assert (answer.status, answer.body, answer.content_type) == (200, BODY, b"text/x")
    assert answer.headers == [
        (b"vary", b"Accept"),
        (b"etag", b'"t"'),
        (b"last-modified", b"Tue, 02 Jan 2024 00:00:00 GMT"),
        (b"accept-ranges", b"bytes"),
    ]


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"if_match": '"x"'}, 412),
        ({"if_match": '"x", "t"'}, 200),
        ({"if_match": 'W/"t"'}, 412),
        ({"if_match": "*"}, 200),
        ({"if_match": '"t"', "if_unmodified_since": OLD}, 200),
        ({"if_unmodified_since": OLD}, 412),
        ({"if_unmodified_since": MADE}, 200),
        ({"if_unmodified_since": "never"}, 200),
        ({"if_none_match": '"t"'}, 304),
        ({"if_none_match": '"x", W/"t"'}, 304),
        ({"if_none_match": "*"}, 304),
        ({"if_none_match": '"x"', "if_modified_since": NEW}, 200),
        ({"if_modified_since": NEW}, 304),
        ({"if_modified_since": MADE}, 304),
        ({"if_modified_since": OLD}, 200),
    ],
)
def test_conditions(headers: dict[str, str], status: int) -> None:
    assert ask(**headers).status == status


def test_conditions_of_other_methods() -> None:
    assert ask("POST", if_none_match="*").status == 412
    assert ask("POST", if_modified_since=NEW).status == 200


@pytest.mark.parametrize(
    ("wanted", "status", "body"),
    [
        ("bytes=0-3", 206, b"0123"),
        ("bytes=8-", 206, b"89"),
        ("bytes=8-100", 206, b"89"),
        ("bytes=-3", 206, b"789"),
        ("bytes=-30", 206, BODY),
        ("bytes= 1 - 2 ", 206, b"12"),
        ("bytes=", 200, BODY),
        ("bytes=0-1,4-5", 200, BODY),
        ("bytes=10-", 416, b"invalid range: failed to overlap\n"),
        ("bytes=5-2", 416, b"invalid range\n"),
        ("bytes=a-b", 416, b"invalid range\n"),
        ("bytes=-", 416, b"invalid range\n"),
        ("lines=1-2", 416, b"invalid range\n"),
    ],
)
def test_ranges(wanted: str, status: int, body: bytes) -> None:
    answer = ask(range=wanted)
    assert (answer.status, answer.body) == (status, body)


def test_where_a_part_belongs() -> None:
    assert dict(ask(range="bytes=2-3").headers)[b"content-range"] == b"bytes 2-3/10"
    assert dict(ask(range="bytes=10-").headers) == {
        b"vary": b"Accept",
        b"content-range": b"bytes */10",
        b"x-content-type-options": b"nosniff",
    }


@pytest.mark.parametrize(
    ("condition", "status"), [('"t"', 206), ('W/"t"', 200), ('"x"', 200), (MADE, 206), (OLD, 200), ("x", 200)]
)
def test_parts_of_what_the_client_has(condition: str, status: int) -> None:
    assert ask(range="bytes=0-1", if_range=condition).status == status
