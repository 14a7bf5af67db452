"""Continue tokens of paged lists, interchangeable with upstream's.

A token names the revision the first page was read at and the key to go on from, relative to the prefix that is
listed. A negative revision asks to go on at whatever revision is current (an *inconsistent* continuation, offered
after the old one expired).
"""

from __future__ import annotations

import base64
import json
from dataclasses import dataclass
from typing import Any

import orjson

from pilothouse.machinery.go_json import explain, json_type

VERSION = "meta.k8s.io/v1"


class InvalidContinue(ValueError):
    """A token that cannot be used; the text is the one clients see."""


@dataclass(frozen=True, slots=True)
class Continuation:
    """Where a list goes on: from the key `start`, at `revision`, or at the current one when that is negative."""

    start: str
    revision: int


def encode_continue(start: str, prefix: str, revision: int) -> str:
    """Make a token for going on from a key below a prefix. Raises ValueError when the key is not below it."""
    if not prefix or not start.startswith(prefix):
        raise ValueError("unable to encode next field: the key and key prefix do not match")
    content = b'{"v":"%s","rv":%d,"start":%s}' % (VERSION.encode(), revision, _go_string(start[len(prefix) :]))
    return base64.urlsafe_b64encode(content).rstrip(b"=").decode()


def continue_after(key: str, prefix: str, revision: int) -> str:
    """Make a token for going on right after a key."""
    return encode_continue(key + "\0", prefix, revision)


def decode_continue(token: str, prefix: str) -> Continuation:
    """Read a token that continues a list of `prefix`. Raises InvalidContinue."""
    content = _load(token)
    version, revision, start = content.get("v", ""), content.get("rv", 0), content.get("start", "")
    if version != VERSION:
        raise InvalidContinue(f"continue key is not valid: server does not recognize this encoded version {version}")
    if revision == 0:
        raise InvalidContinue(
            "continue key is not valid: incorrect encoded start resourceVersion (version meta.k8s.io/v1)"
        )
    if not start:
        raise InvalidContinue("continue key is not valid: encoded start key empty (version meta.k8s.io/v1)")
    key = start if start.startswith("/") else "/" + start
    if not _is_clean(key):
        raise InvalidContinue(f"continue key is not valid: {start}")
    return Continuation(prefix + key[1:], revision)


def _load(token: str) -> dict[str, Any]:
    data = _decode_base64(token)
    try:
        content = orjson.loads(data)
    except orjson.JSONDecodeError:
        raise InvalidContinue(f"continue key is not valid: {explain(data)}") from None
    if content is None:
        return {}
    if not isinstance(content, dict):
        raise _mistyped(content, "value of type storage.continueToken")
    fields = {name.lower(): value for name, value in content.items() if value is not None}
    for name in ("v", "start"):
        if not isinstance(fields.get(name, ""), str):
            raise _mistyped(fields[name], f"struct field continueToken.{name} of type string")
    if not _is_int64(fields.get("rv", 0)):
        raise _mistyped(fields["rv"], "struct field continueToken.rv of type int64")
    return fields


def _is_int64(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and -(2**63) <= value < 2**63


def _mistyped(value: Any, where: str) -> InvalidContinue:
    found = json_type(value)
    if found == "number" and where.endswith("int64"):
        found += f" {value}"
    return InvalidContinue(f"continue key is not valid: json: cannot unmarshal {found} into Go {where}")


_ALPHABET = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_")


def _decode_base64(token: str) -> bytes:
    """Unpadded URL alphabet; line ends are ignored, as Go's decoder does."""
    quantum = 0
    for place, char in enumerate(token):
        if char in "\r\n":
            continue
        if char not in _ALPHABET:
            raise _illegal_base64(len(token[:place].encode(errors="replace")))
        quantum = (quantum + 1) % 4
    if quantum == 1:
        raise _illegal_base64(len(token) - 1)
    text = token.replace("\r", "").replace("\n", "")
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


def _illegal_base64(place: int) -> InvalidContinue:
    return InvalidContinue(f"continue key is not valid: illegal base64 data at input byte {place}")


def _go_string(text: str) -> bytes:
    """JSON text as Go writes it, which also escapes what is special in HTML."""
    encoded = json.dumps(text, ensure_ascii=False)
    for char in "<>&\u2028\u2029":
        encoded = encoded.replace(char, f"\\u{ord(char):04x}")
    return encoded.encode()


def _is_clean(path: str) -> bool:
    """No way up, no way around: the path is its own normal form."""
    return path == "/" or not any(part in ("", ".", "..") for part in path[1:].split("/"))
