"""How to speak TLS to others: whom to trust, what to show, under which name to ask.

Contexts are made in threads and kept; those that come from files are made anew when the files have changed, so that a
renewed certificate is shown from the next connection on.
"""

from __future__ import annotations

import asyncio
import os
import ssl
from collections import OrderedDict
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Final

_MAX_CONTEXTS: Final = 1024
Stamp = tuple[tuple[int, int, int] | None, ...]


@dataclass(frozen=True, slots=True)
class Tls:
    """How to speak TLS. Equal settings share connections."""

    authorities: bytes = b""
    """PEM; empty for those of the system."""
    server_name: str = ""
    cert_file: str = ""
    key_file: str = ""
    insecure: bool = False
    certificate: bytes = field(default=b"", repr=False)
    """PEM of a certificate and its key, for those that are not in files."""
    authorities_file: str = ""
    protocols: tuple[str, ...] = ("http/1.1",)
    """What is offered in the handshake, the preferred first."""

    @property
    def files(self) -> tuple[str, ...]:
        """Every file whose change matters."""
        return tuple(filter(None, (self.cert_file, self.key_file, self.authorities_file)))


PLAIN: Final = Tls()
EITHER: Final = ("h2", "http/1.1")
"""For servers that may be asked many things side by side."""


class Contexts:
    """The contexts in use, each made once for its settings and the state of its files."""

    def __init__(self) -> None:
        self._made: OrderedDict[Tls, tuple[Stamp, ssl.SSLContext]] = OrderedDict()

    async def find(self, tls: Tls) -> ssl.SSLContext:
        """The context for the next connection. Raises OSError and ssl.SSLError for files that are no good."""
        made = self._made.get(tls)
        if made is not None and not tls.files:
            return made[1]
        stamp, context = await asyncio.to_thread(_renew, tls, made)
        self._made[tls] = stamp, context
        self._made.move_to_end(tls)
        if len(self._made) > _MAX_CONTEXTS:
            self._made.popitem(last=False)
        return context


def _renew(tls: Tls, made: tuple[Stamp, ssl.SSLContext] | None) -> tuple[Stamp, ssl.SSLContext]:
    stamp = tuple(_stamp(path) for path in tls.files)
    if made is not None and made[0] == stamp:
        return made
    try:
        return stamp, make_context(tls)
    except (OSError, ValueError):
        if made is None:
            raise
        return made  # half-written files: the old certificate is better than none


def _stamp(path: str) -> tuple[int, int, int] | None:
    with suppress(OSError):
        status = os.stat(path)
        return status.st_mtime_ns, status.st_size, status.st_ino
    return None


def make_context(tls: Tls) -> ssl.SSLContext:
    """A context for connections of our own."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    # As Go does: whatever is named is trusted, be it no authority. envtest names a webhook's own certificate.
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    context.hostname_checks_common_name = False  # nor does Go look at the common name of who has no other
    if tls.insecure:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    elif tls.authorities:
        with suppress(ssl.SSLError):
            context.load_verify_locations(cadata=tls.authorities.decode("latin-1"))
    elif tls.authorities_file:
        context.load_verify_locations(tls.authorities_file)
    else:
        context.load_default_certs()
    if tls.cert_file:
        context.load_cert_chain(tls.cert_file, tls.key_file or None)
    if tls.certificate:
        _load_certificate(context, tls.certificate)
    context.set_alpn_protocols(list(tls.protocols))
    return context


def _load_certificate(context: ssl.SSLContext, pem: bytes) -> None:
    """The module takes certificates from files only: this one lives as long as the call, for its owner's eyes."""
    from tempfile import TemporaryDirectory  # few have such a certificate

    with TemporaryDirectory(prefix="pilothouse-") as folder:
        path = os.path.join(folder, "client.pem")
        with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
            file.write(pem)
        context.load_cert_chain(path)
