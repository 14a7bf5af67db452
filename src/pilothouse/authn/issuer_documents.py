"""How the documents of OpenID Connect issuers are had, by whoever can fetch: a server without issuers needs no more."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

# Gets a document by HTTPS, trusting the issuer's own authority if it has one. Raises FetchFailed.
Fetch = Callable[[str], Awaitable[bytes]]


class FetchFailed(Exception):
    """A document could not be had."""
