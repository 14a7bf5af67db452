"""Front proxies: a trusted peer authenticates users itself and names them in headers.

The peer is trusted by its client certificate, signed by an authority of its own and, if names are configured, with
one of them. Without that the headers mean nothing.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING
from urllib.parse import unquote

from pilothouse.authn.authenticator import Authenticated, InvalidCredentials
from pilothouse.authn.client_certificate import VerifiedCertificates, common_name
from pilothouse.machinery.user import User
from pilothouse.net.messages import Request

if TYPE_CHECKING:
    from cryptography import x509

_BAD_ESCAPE = re.compile(r"%(?![0-9A-Fa-f]{2})").search


class RequestHeader:
    """Authenticates by headers that a verified front proxy sets, and takes them off the request."""

    def __init__(
        self,
        certificates: VerifiedCertificates,
        allowed_names: Sequence[str],
        username_headers: Sequence[str],
        uid_headers: Sequence[str],
        group_headers: Sequence[str],
        extra_prefixes: Sequence[str],
        audiences: tuple[str, ...] = (),
    ) -> None:
        self._certificates = certificates
        self._allowed_names = frozenset(allowed_names)
        self._username_headers = _lower(username_headers)
        self._uid_headers = _lower(uid_headers)
        self._group_headers = _lower(group_headers)
        self._extra_prefixes = _lower(extra_prefixes)
        self._audiences = audiences

    async def authenticate(self, request: Request) -> Authenticated | None:
        """The user named by the proxy; None if the peer sent no certificate or names nobody."""
        if request.connection.peer_certificate is None:
            return None
        certificate = self._certificates.verified(request.connection)
        if certificate is None:
            return None
        state = request.connection.state
        known = state.get(self)
        if known is None or known[0] is not certificate:
            known = state[self] = (certificate, self._refusal(certificate))
        if known[1]:
            raise InvalidCredentials(known[1])
        return self._named_user(request)

    def _refusal(self, certificate: x509.Certificate) -> str:
        name = common_name(certificate)
        if not self._allowed_names or name in self._allowed_names:
            return ""
        return f"x509: subject with cn={name} is not in the allowed list"

    def _named_user(self, request: Request) -> Authenticated | None:
        name = _first(request, self._username_headers)
        if not name:
            return None
        groups = tuple(
            _text(value) for header in self._group_headers for value in request.header_values(header) if value
        )
        user = User(name, _first(request, self._uid_headers), groups, self._extra(request))
        self._clear(request)
        return Authenticated(user, self._audiences)

    def _extra(self, request: Request) -> dict[str, tuple[str, ...]]:
        extra: dict[str, tuple[str, ...]] = {}
        for prefix in self._extra_prefixes:
            for header in request.headers:
                if header.startswith(prefix):
                    key = unescape_key(_text(header[len(prefix) :]))
                    extra[key] = extra.get(key, ()) + tuple(_text(v) for v in request.header_values(header))
        return extra

    def _clear(self, request: Request) -> None:
        headers = request.headers
        for name in (*self._username_headers, *self._uid_headers, *self._group_headers):
            headers.pop(name, None)
        for name in [name for name in headers if name.startswith(self._extra_prefixes)]:
            del headers[name]


def unescape_key(key: str) -> str:
    """A percent-encoded key of extra attributes; as it is when the encoding is malformed."""
    if "%" not in key or _BAD_ESCAPE(key):
        return key
    return unquote(key, errors="replace")


def _lower(names: Sequence[str]) -> tuple[bytes, ...]:
    return tuple(name.strip().lower().encode() for name in names)


def _first(request: Request, names: Sequence[bytes]) -> str:
    for name in names:
        value = request.headers.get(name)
        if value:
            return _text(value)
    return ""


def _text(value: bytes) -> str:
    return value.decode("utf-8", "replace")
