"""Serving a document as Go's ``http.ServeContent`` serves it: with its date and tag, whole, in part, or not again.

A client may ask for what it does not have yet, for what has not changed since, or for one range of bytes. Several
ranges at once are answered with the whole.
"""

from __future__ import annotations

import re
from typing import Final

from pilothouse.endpoints.request import APIRequest
from pilothouse.net.dates import http_date
from pilothouse.net.messages import Response

Headers = list[tuple[bytes, bytes]]
_PLAIN_TEXT: Final = b"text/plain; charset=utf-8"
_RANGE: Final = re.compile(rb"[ \t]*+([0-9]*+)[ \t]*+-[ \t]*+([0-9]*+)[ \t]*+")
_MOST_DIGITS: Final = 19
_UNITS: Final = b"bytes="


def serve_content(
    request: APIRequest,
    body: bytes,
    content_type: bytes,
    modified: float,
    headers: Headers,
    etag: bytes = b"",
    made: float = 0.0,
) -> Response:
    """Answer with the document, with as much of it as is asked for, or with nothing but a status.

    ``made`` is for documents that always say that they are as new as the request for them: when they really changed.
    """
    tagged = [*headers, (b"etag", etag)] if etag else headers
    dated = [*tagged, (b"last-modified", http_date(modified))]
    asked = request.headers
    status = _precondition(request, modified, etag, made)
    if status == 304:
        return Response(304, b"", b"", tagged if etag else dated)
    if status:
        return Response(status, b"", content_type, dated)
    wanted = asked.get(b"range", b"")
    if wanted and _is_current(asked.get(b"if-range", b""), modified, etag):
        return _partial(wanted, body, content_type, dated)
    return Response(200, body, content_type, [*dated, (b"accept-ranges", b"bytes")])


def _precondition(request: APIRequest, modified: float, etag: bytes, made: float) -> int:
    """The status that stands in the way, or 0."""
    asked, reads = request.headers, request.method in ("GET", "HEAD")
    if match := asked.get(b"if-match"):
        if not _names(match, etag, strong=True):
            return 412
    elif (since := _seconds(asked.get(b"if-unmodified-since", b""))) is not None and int(modified) > since:
        return 412
    if known := asked.get(b"if-none-match"):
        if _names(known, etag, strong=False):
            return 304 if reads else 412
    elif reads and (since := _seconds(asked.get(b"if-modified-since", b""))) is not None:
        return 304 if int(modified) <= since and int(made) < since else 0
    return 0


def _names(tags: bytes, etag: bytes, *, strong: bool) -> bool:
    """Whether a list of tags has this one; weak ones count unless the comparison is ``strong``."""
    for each in tags.split(b","):
        tag = each.strip()
        if tag == b"*" or (etag and (tag if strong else tag.removeprefix(b"W/")) == etag):
            return True
    return False


def _seconds(date: bytes) -> int | None:
    from email.utils import mktime_tz, parsedate_tz  # few clients ask by date

    parsed = parsedate_tz(date.decode("latin-1")) if date else None
    return None if parsed is None else mktime_tz(parsed)


def _is_current(condition: bytes, modified: float, etag: bytes) -> bool:
    """Whether a range may be served, or what the client has of the document is of another one."""
    if not condition:
        return True
    if condition.startswith((b'"', b"W/")):
        return condition == etag
    return _seconds(condition) == int(modified)


def _partial(wanted: bytes, body: bytes, content_type: bytes, headers: Headers) -> Response:
    size = len(body)
    if not wanted.startswith(_UNITS):
        return _unsatisfiable(b"invalid range\n", headers, b"")
    found = _RANGE.fullmatch(wanted[len(_UNITS) :])
    if wanted == _UNITS or (found is None and b"," in wanted):
        return Response(200, body, content_type, [*headers, (b"accept-ranges", b"bytes")])
    if found is None or not (found[1] or found[2]) or max(map(len, found.groups())) > _MOST_DIGITS:
        return _unsatisfiable(b"invalid range\n", headers, b"")
    if found[1]:
        start, end = int(found[1]), min(int(found[2]) + 1, size) if found[2] else size
        if found[2] and int(found[2]) < start:
            return _unsatisfiable(b"invalid range\n", headers, b"")
    else:
        start, end = max(size - int(found[2]), 0), size
    if start >= size:
        return _unsatisfiable(b"invalid range: failed to overlap\n", headers, b"bytes */%d" % size)
    headers = [*headers, (b"accept-ranges", b"bytes"), (b"content-range", b"bytes %d-%d/%d" % (start, end - 1, size))]
    return Response(206, body[start:end], content_type, headers)


def _unsatisfiable(why: bytes, headers: Headers, content_range: bytes) -> Response:
    kept = [header for header in headers if header[0] not in (b"etag", b"last-modified", b"cache-control")]
    if content_range:
        kept.append((b"content-range", content_range))
    return Response(416, why, _PLAIN_TEXT, [*kept, (b"x-content-type-options", b"nosniff")])
