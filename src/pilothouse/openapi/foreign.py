"""Documents of other servers, looked at before they are kept: what is here can be merged and encoded."""

from __future__ import annotations

import hashlib
from typing import Any, NamedTuple

from pilothouse.machinery import large_json


class UnusableDocument(Exception):
    """What a server has sent is no OpenAPI document that could be shown."""


class Foreign(NamedTuple):
    """A document of another server, in JSON that can be decoded and encoded."""

    body: bytes
    etag: str


def swagger_below(data: bytes, prefix: str, etag: str) -> Foreign:
    """What a document of version 2 has below a prefix. Raises UnusableDocument."""
    from pilothouse.openapi import gnostic, merging  # many servers never see such a document

    try:
        kept = merging.only_below(_read(data), (prefix,))
        gnostic.encode_v2(kept)
        merging.merge_into({}, kept)
        return Foreign(large_json.dumps(kept), etag)
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
        raise UnusableDocument(f"{type(error).__name__}: {error}") from None


def converted_swagger(data: bytes, etag: str) -> Foreign:
    """A document of version 2 as version 3. Raises UnusableDocument."""
    from pilothouse.openapi import conversion, gnostic

    try:
        converted = conversion.convert(_read(data))
        gnostic.encode_v3(converted)
        return Foreign(large_json.dumps(converted), hashlib.sha512(etag.encode()).hexdigest().upper())
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
        raise UnusableDocument(f"{type(error).__name__}: {error}") from None


def _read(data: bytes) -> dict[str, Any]:
    document = large_json.loads(data)
    if not isinstance(document, dict):
        raise TypeError("the document is no object")
    return document
