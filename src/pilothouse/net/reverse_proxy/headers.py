"""Which headers travel through a proxy, and which it adds.

Headers of one connection stay on it. Credentials never travel: whoever is asked knows the user from elsewhere, and what
a client claims about itself in the names that front proxies use would be believed.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from typing import Final

from pilothouse.net.client.head import Headers, ReplyHead
from pilothouse.net.header_lists import list_tokens
from pilothouse.net.messages import Request
from pilothouse.net.request_body import Trailers

HOP_BY_HOP: Final = frozenset(
    {
        b"connection",
        b"proxy-connection",
        b"keep-alive",
        b"proxy-authenticate",
        b"proxy-authorization",
        b"te",
        b"trailer",
        b"transfer-encoding",
        b"upgrade",
    }
)
_FRAMING: Final = frozenset({b"host", b"content-length", b"expect"})
_CREDENTIALS: Final = (b"authorization", b"x-remote-", b"impersonate-")
_CORS: Final = frozenset(
    {
        b"access-control-allow-credentials",
        b"access-control-allow-headers",
        b"access-control-allow-methods",
        b"access-control-allow-origin",
    }
)
_FORWARDED_FOR: Final = b"x-forwarded-for"
_ORDINARY_NAME: Final = 128  # longer ones are not worth remembering
_NOT_SENT: Final = _FRAMING | HOP_BY_HOP | {_FORWARDED_FOR}
_NOT_RETURNED: Final = HOP_BY_HOP | {b"content-length", b"date"}
_NOT_RETURNED_BUT_OWN: Final = _NOT_RETURNED | _CORS


def request_headers(request: Request, host: bytes, *, upgrade: bool = False) -> Headers:
    """What is sent on, Host first. With ``upgrade``, the wish for another protocol travels too."""
    refused = _NOT_SENT
    if b"connection" in request.headers:
        refused |= listed(request.header_values(b"connection"))
    headers: Headers = [(b"Host", host)]
    headers += [
        (canonical(name), value)
        for name, value in request.header_pairs()
        if name not in refused and not name.startswith(_CREDENTIALS)
    ]
    if b"te" in request.headers and any(b"trailers" in value.lower() for value in request.header_values(b"te")):
        headers.append((b"Te", b"trailers"))
    if upgrade:
        headers.append((b"Connection", b"Upgrade"))
        headers += [(b"Upgrade", value) for value in request.header_values(b"upgrade")]
    hops = [value for value in request.header_values(_FORWARDED_FOR) if value]
    peer = request.connection.peer[0].encode()
    if peer:
        hops.append(peer)
    if hops:
        headers.append((b"X-Forwarded-For", b", ".join(hops)))
    return headers


def reply_headers(head: ReplyHead, *, cors: bool = False) -> Headers:
    """What of an answer goes back to the client. Length and date are this server's to say."""
    refused, returned = head.findings.get(cors) or _judge_headers(head, cors)
    if head.further:
        return [*returned, *[pair for name, pair in head.further if name not in refused]]
    return list(returned)


def _judge_headers(head: ReplyHead, cors: bool) -> tuple[frozenset[bytes], Headers]:
    """Which names do not go back, and what of the lines that answers have in common does; found once for all these."""
    refused = _NOT_RETURNED if cors else _NOT_RETURNED_BUT_OWN
    if b"connection" in head:
        refused |= listed(head.values(b"connection"))
    found = head.findings[cors] = (refused, [pair for name, pair in head.core if name not in refused])
    return found


def announced(value: bytes) -> list[bytes]:
    """The trailers that a Trailer header names, without those that would change how the message is read."""
    named = dict.fromkeys(map(canonical, list_tokens([value])))
    return [name for name in named if _is_passed_on(name)]


def passing(trailers: Trailers) -> Headers:
    """The trailers that travel."""
    return [(canonical(name), value) for name, value in trailers if _is_passed_on(name)]


def _is_passed_on(name: bytes) -> bool:
    lower = name.lower()
    return bool(name) and lower not in _NOT_SENT and not lower.startswith(_CREDENTIALS)


def canonical(name: bytes) -> bytes:
    """The name of a header as Go writes it."""
    return _recall_canonical(name) if len(name) <= _ORDINARY_NAME else name.title()


_recall_canonical: Final = lru_cache(maxsize=1024)(bytes.title)


def listed(values: Iterable[bytes]) -> frozenset[bytes]:
    """The headers that Connection names as its own."""
    return frozenset(token.lower() for token in list_tokens(values) if token)
