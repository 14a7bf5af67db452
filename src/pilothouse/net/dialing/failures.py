"""Why a request of our own failed, in the words of Go's client, which users search for."""

from __future__ import annotations

import errno
import os
import re
import socket
import ssl
from datetime import UTC, datetime
from typing import Final

from pilothouse.net.dialing.refusals import RefusedCertificate, explain_refusal

_WORDS: Final = {
    errno.ECONNREFUSED: "connection refused",
    errno.EHOSTUNREACH: "no route to host",
    errno.ENETUNREACH: "network is unreachable",
    errno.ETIMEDOUT: "connection timed out",
    errno.ECONNRESET: "connection reset by peer",
    errno.EPIPE: "broken pipe",
}
# An alert of the other side, as OpenSSL spells it: SSLV3_ALERT_HANDSHAKE_FAILURE, TLSV1_UNRECOGNIZED_NAME.
_ALERT: Final = re.compile(r"\A(?:sslv3_alert|tlsv1_alert|tlsv13_alert|tlsv1)_(\w+)\Z")
# Where Go has more than these words, or others.
_ALERTS: Final = {
    "bad_record_mac": "bad record MAC",
    "certificate_expired": "expired certificate",
    "certificate_revoked": "revoked certificate",
    "certificate_unknown": "unknown certificate",
    "decode_error": "error decoding message",
    "decrypt_error": "error decrypting message",
    "insufficient_security": "insufficient security level",
    "protocol_version": "protocol version not supported",
    "unknown_ca": "unknown certificate authority",
    "unknown_psk_identity": "unknown PSK identity",
    "user_cancelled": "user canceled",
}


class OutgoingError(Exception):
    """No answer; ``timed_out`` tells whether the time was up."""

    def __init__(self, message: str, *, timed_out: bool = False) -> None:
        super().__init__(message)
        self.timed_out = timed_out


class DialError(OutgoingError):
    """A connection that could not be made."""


class NoCommonProtocol(DialError):
    """The other side speaks none of the protocols that were offered in the handshake."""


def join_host_port(host: str, port: int | str) -> str:
    """``10.0.0.1:80``, ``[fd00::1]:80``."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def explain_connecting(error: OSError, network: str, address: str) -> str:
    """What ``connect`` said."""
    number = error.errno or 0
    words = _WORDS.get(number) or os.strerror(number).lower()
    return f"dial {network} {address}: connect: {words}"


def explain_lookup(error: socket.gaierror, host: str) -> str:
    """What name resolution said."""
    if error.errno in (socket.EAI_NONAME, getattr(socket, "EAI_NODATA", socket.EAI_NONAME)):
        return f"dial tcp: lookup {host}: no such host"
    return f"dial tcp: lookup {host}: {(error.strerror or 'server misbehaving').lower()}"


def explain_handshake(error: BaseException, host: str) -> str:
    """What went wrong between connecting and speaking TLS."""
    if isinstance(error, RefusedCertificate):
        return explain_refusal(error, host, datetime.now(UTC))
    if isinstance(error, ssl.SSLError):
        text = str(error)
        plain = "WRONG_VERSION_NUMBER" in text or "RECORD_LAYER_FAILURE" in text
        if plain:
            return "http: server gave HTTP response to HTTPS client"
    return explain_reading(error)


def handshake_failure(error: BaseException, host: str) -> DialError:
    """The same as an error to raise."""
    message = explain_handshake(error, host)
    # The alert has no code of its own in Python, and one of two spellings.
    if isinstance(error, ssl.SSLError) and "no application protocol" in str(error).replace("_", " ").lower():
        return NoCommonProtocol(message)
    return DialError(message)


def explain_reading(error: BaseException | None) -> str:
    """What ended a connection that was in use."""
    if error is None:
        return "EOF"
    if isinstance(error, ssl.SSLError):
        return _explain_alert(error) or f"tls: {error.reason or error}"
    if isinstance(error, OSError) and error.errno in _WORDS:
        return f"read: {_WORDS[error.errno]}"
    return str(error) or type(error).__name__


def _explain_alert(error: ssl.SSLError) -> str:
    """What the other side complained about in TLS's own words; empty if it did not."""
    # Python knows most reasons as constants, the others as OpenSSL's sentences with spaces.
    text = error.reason or str(error).partition("] ")[2].partition(" (_ssl.c")[0]
    found = _ALERT.match(text.lower().replace(" ", "_"))
    return f"remote error: tls: {_ALERTS.get(found[1]) or found[1].replace('_', ' ')}" if found else ""
