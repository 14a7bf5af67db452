"""Front proxies: a trusted peer authenticates users itself and names them in headers.

The peer is trusted by its client certificate, signed by an authority of its own and, if names are configured, with
one of them. Without that the headers mean nothing.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final, NamedTuple
from urllib.parse import unquote

from pilothouse.authn.authenticator import Authenticated, InvalidCredentials
from pilothouse.authn.client_certificate import VerifiedCertificates, common_name
from pilothouse.machinery.user import User
from pilothouse.net.messages import Request

if TYPE_CHECKING:
    from cryptography import x509

_Said = tuple[tuple[bytes, tuple[bytes, ...]], ...]
_MOST_KNOWN: Final = 1000
_SHORT: Final = 4096
_BAD_ESCAPE = re.compile(r"%(?![0-9A-Fa-f]{2})").search


class _Named(NamedTuple):
    """Whom headers named, and all of them that say so, with their first values and whatever was repeated."""

    lines: tuple[tuple[bytes, bytes], ...]
    repeated: dict[bytes, list[bytes]]
    identity: Authenticated

    def holds_for(self, request: Request) -> bool:
        """Whether the headers of this request are these. Their names are: those whose names differ share nothing."""
        get = request.headers.get
        for name, value in self.lines:
            if get(name) is not value:
                return False
        return self.repeated is request.block.repeated


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
        self._names = (*self._username_headers, *self._uid_headers, *self._group_headers)
        self._audiences = audiences
        self._known: dict[_Said, Authenticated] = {}
        """Whom headers named lately: one user of many requests, so that what others know of a user is found again."""

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

    def recall(self, request: Request) -> Authenticated | None:
        """The same without a coroutine, where the proxy is known on this connection and has named the user there."""
        connection = request.connection
        named: _Named | None = request.block.findings.get(self)
        known = connection.state.get(self)
        if named is None or known is None or known[1] or not named.holds_for(request):
            return None
        return named.identity if known[0] is self._certificates.recall(connection) else None

    def _refusal(self, certificate: x509.Certificate) -> str:
        name = common_name(certificate)
        if not self._allowed_names or name in self._allowed_names:
            return ""
        return f"x509: subject with cn={name} is not in the allowed list"

    def _named_user(self, request: Request) -> Authenticated | None:
        findings, headers = request.block.findings, request.headers
        named: _Named | None = findings.get(self)
        if named is None or not named.holds_for(request):
            found = self._find(request)
            if found is None:
                return None
            named = findings[self] = found
        for name, _ in named.lines:
            headers.pop(name, None)
        return named.identity

    def _find(self, request: Request) -> _Named | None:
        said = self._said(request)
        found = self._known.get(said)
        if found is None:
            found = self._read_user(request)
            if found is None:
                return None
            if len(self._known) >= _MOST_KNOWN:
                self._known.clear()
            if sum(len(value) for _, values in said for value in values) <= _SHORT:
                self._known[said] = found
        lines = tuple((name, request.headers[name]) for name, _ in said)
        return _Named(lines, request.block.repeated, found)

    def _said(self, request: Request) -> _Said:
        """All that the headers say of a user."""
        headers = request.headers
        names = [name for name in self._names if name in headers]
        names += [name for name in headers if name.startswith(self._extra_prefixes)]
        return tuple([(name, tuple(request.header_values(name))) for name in names])

    def _read_user(self, request: Request) -> Authenticated | None:
        name = _first(request, self._username_headers)
        if not name:
            return None
        groups = tuple(
            _text(value) for header in self._group_headers for value in request.header_values(header) if value
        )
        user = User(name, _first(request, self._uid_headers), groups, self._extra(request))
        return Authenticated(user, self._audiences)

    def _extra(self, request: Request) -> dict[str, tuple[str, ...]]:
        extra: dict[str, tuple[str, ...]] = {}
        for prefix in self._extra_prefixes:
            for header in request.headers:
                if header.startswith(prefix):
                    key = unescape_key(_text(header[len(prefix) :]))
                    extra[key] = extra.get(key, ()) + tuple(_text(v) for v in request.header_values(header))
        return extra


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
