"""Bearer tokens: in the Authorization header, or as a WebSocket subprotocol for browsers, which cannot set headers.

A client repeats its header on every request of a connection and the HTTP server keeps the parsed header block, so
the very same bytes object comes back. The identity is remembered with it on the connection: the usual request costs
a dict lookup, an identity test and a look at the clock.
"""

from __future__ import annotations

import base64
import binascii
import hmac
import re
import time
from collections.abc import Callable
from typing import Final, Protocol

from pilothouse.authn.authenticator import Authenticated, InvalidCredentials
from pilothouse.authn.metrics import TokenCacheMetrics
from pilothouse.net.messages import Request

_PROTOCOL_PREFIX: Final = "base64url.bearer.authorization.k8s.io."
_INVALID: Final = "invalid bearer token"
_BASE64URL = re.compile(r"[A-Za-z0-9_-]*").fullmatch


class CachingTokenAuthenticator(Protocol):
    """A token authenticator that says until when its answer may be reused (``token_cache`` provides it)."""

    async def lookup(self, token: str, audiences: tuple[str, ...]) -> tuple[Authenticated | None, float]:
        """The identity and the monotonic time until which it holds; raises InvalidCredentials."""
        ...

    @property
    def metrics(self) -> TokenCacheMetrics:
        """Counts answers that came from memory, here or there."""
        ...

    @property
    def epoch(self) -> int:
        """Grows when everything that was remembered must be forgotten."""
        ...


class Bearer:
    """Authenticates by ``Authorization: Bearer``."""

    def __init__(
        self,
        tokens: CachingTokenAuthenticator,
        audiences: tuple[str, ...] = (),
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._tokens = tokens
        self._audiences = audiences
        self._clock = clock

    async def authenticate(self, request: Request) -> Authenticated | None:
        """The identity behind the token; None without a bearer token."""
        header = request.headers.get(b"authorization")
        if header is None:
            return None
        found = self.recall(request)
        if found is None:
            found, until = await self.authenticate_header(header, self._audiences)
            request.connection.state[self] = (header, found, until, self._tokens.epoch)
        return found

    def recall(self, request: Request) -> Authenticated | None:
        """What the connection remembers about the same header, if that still holds."""
        known = request.connection.state.get(self)
        header = request.headers.get(b"authorization")
        if known is None or header is None or known[2] <= self._clock() or known[3] != self._tokens.epoch:
            return None
        identity: Authenticated | None = known[1]
        if known[0] is not header and not hmac.compare_digest(known[0], header):
            return None
        self._tokens.metrics.hit()
        return identity

    async def authenticate_header(
        self, header: bytes, audiences: tuple[str, ...]
    ) -> tuple[Authenticated | None, float]:
        """The identity behind the value of an Authorization header, and the monotonic time until which it holds."""
        token = bearer_token(header)
        if not token:
            return None, 0.0
        try:
            found, until = await self._tokens.lookup(token, audiences)
        except InvalidCredentials as refusal:
            # kube-apiserver first asks an authenticator that knows only its own loopback token.
            raise InvalidCredentials(_INVALID, *refusal.messages, annotations=refusal.annotations) from None
        if found is None:
            raise InvalidCredentials(_INVALID)
        return found, until


def bearer_token(header: bytes) -> str:
    """The token in an Authorization header; empty if it holds none.

    The scheme is matched in any case; words after the token are ignored; a second space leaves no token at all.
    """
    words = header.decode("utf-8", "replace").strip().split(" ", 2)
    if len(words) < 2 or words[0].lower() != "bearer":
        return ""
    return words[1]


class WebSocketBearer:
    """Authenticates by a token among the subprotocols of a WebSocket handshake, and takes it out of them."""

    def __init__(self, tokens: CachingTokenAuthenticator, audiences: tuple[str, ...] = ()) -> None:
        self._tokens = tokens
        self._audiences = audiences

    async def authenticate(self, request: Request) -> Authenticated | None:
        """The identity behind the token; None when the request is no WebSocket handshake or carries no token."""
        headers = request.headers
        if headers.get(b"upgrade", b"").lower() != b"websocket":
            return None
        if not any(b"upgrade" in value.lower() for value in request.header_values(b"connection")):
            return None
        token, others = _split_protocols(request.header_values(b"sec-websocket-protocol"))
        if not token:
            return None
        if not others:
            raise InvalidCredentials("missing additional subprotocol")
        found, _ = await self._tokens.lookup(token, self._audiences)
        if found is None:
            raise InvalidCredentials(_INVALID)
        request.replace_header(b"sec-websocket-protocol", ",".join(others).encode())
        return found


def _split_protocols(values: list[bytes]) -> tuple[str, list[str]]:
    token = ""
    seen = False
    others: list[str] = []
    for value in values:
        for item in value.decode("utf-8", "replace").split(","):
            protocol = item.strip()
            if not protocol.startswith(_PROTOCOL_PREFIX):
                others.append(protocol)
                continue
            if seen:
                raise InvalidCredentials("multiple base64.bearer.authorization tokens specified")
            seen = True
            token = _decode_token(protocol[len(_PROTOCOL_PREFIX) :])
    return token, others


def _decode_token(encoded: str) -> str:
    if not _BASE64URL(encoded) or len(encoded) % 4 == 1:
        raise InvalidCredentials("invalid base64.bearer.authorization token encoding")
    try:
        decoded = base64.urlsafe_b64decode(encoded + "=" * (-len(encoded) % 4))
    except binascii.Error:
        raise InvalidCredentials("invalid base64.bearer.authorization token encoding") from None
    try:
        return decoded.decode()
    except UnicodeDecodeError:
        raise InvalidCredentials("invalid base64.bearer.authorization token") from None
