"""Flags of the HTTPS port: address, certificates, TLS versions and ciphers."""

from __future__ import annotations

import errno
import os
import socket
from collections.abc import Iterable, Sequence, Set
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from pilothouse.machinery.go_quote import quote
from pilothouse.net.tls_names import GROUPS, OPENSSL_NAMES, VERSIONS
from pilothouse.options.declaring import FlagGroup, flag
from pilothouse.options.kinds import BOOL, INT, INT32_SLICE, IP, NAMED_CERT_KEYS, STRING, STRINGS, NamedCertKey

if TYPE_CHECKING:
    from pilothouse.net.http2.settings import Http2Options
    from pilothouse.net.tls import TlsFiles

_BIND_REMEDIES: Final = {
    errno.EADDRINUSE: "stop what listens there, or choose another port with --secure-port",
    errno.EACCES: "ports below 1024 are for root alone: choose another one with --secure-port",
    errno.EADDRNOTAVAIL: "this machine has no such address: choose another one with --bind-address",
}


@dataclass
class SecureServingOptions(FlagGroup):
    """The ``secure serving`` section."""

    section = "secure serving"

    bind_address: str = flag(
        "bind-address", IP, "0.0.0.0", "IP address to listen on; 0.0.0.0 and :: mean every interface."
    )
    cert_dir: str = flag(
        "cert-dir",
        STRING,
        "/var/run/kubernetes",
        "Folder of apiserver.crt and apiserver.key, used when given and "
        "--tls-cert-file is not; they are made there when missing. Without it they are kept in --data-dir.",
    )
    disable_http2_serving: bool = flag("disable-http2-serving", BOOL, False, "Do not offer HTTP/2.")
    http2_max_streams_per_connection: int = flag(
        "http2-max-streams-per-connection",
        INT,
        0,
        "Streams a client may open on one HTTP/2 connection; 0 is the default.",
    )
    permit_address_sharing: bool = flag(
        "permit-address-sharing", BOOL, False, "Listen with SO_REUSEADDR.", moot="always so, as in Go"
    )
    permit_port_sharing: bool = flag("permit-port-sharing", BOOL, False, "Listen with SO_REUSEPORT.")
    secure_port: int = flag("secure-port", INT, 6443, "Port to serve HTTPS on. It cannot be switched off.")
    tls_cert_file: str = flag(
        "tls-cert-file",
        STRING,
        "",
        "Serving certificate, followed by its intermediates. Default: one made at the first start.",
    )
    tls_cipher_suites: tuple[str, ...] = flag(
        "tls-cipher-suites", STRINGS, (), "Cipher suites of TLS 1.2 and older, by their IANA names."
    )
    tls_curve_preferences: tuple[int, ...] = flag(
        "tls-curve-preferences", INT32_SLICE, (), "Key exchanges allowed, as numbers of the TLS registry."
    )
    tls_min_version: str = flag(
        "tls-min-version",
        STRING,
        "",
        f"Oldest TLS version accepted: {', '.join(VERSIONS)}. Default: VersionTLS12.",
    )
    tls_private_key_file: str = flag("tls-private-key-file", STRING, "", "Key of --tls-cert-file.")
    tls_sni_cert_key: tuple[NamedCertKey, ...] = flag(
        "tls-sni-cert-key",
        NAMED_CERT_KEYS,
        (),
        "Certificate for some names: cert,key[:name,*.name]. Repeatable.",
    )

    def tls_files(self, client_authorities: Iterable[str]) -> TlsFiles:
        """What TLS is made of here; ``client_authorities`` are named to clients as those they may show."""
        from pilothouse.net.tls import SniCertificate, TlsFiles

        return TlsFiles(
            self.tls_cert_file,
            self.tls_private_key_file,
            tuple(client_authorities),
            tuple(SniCertificate(each.cert_file, each.key_file, each.names) for each in self.tls_sni_cert_key),
            self.tls_min_version or "VersionTLS12",
            self.tls_cipher_suites,
            ("http/1.1",) if self.disable_http2_serving else ("h2", "http/1.1"),
            self.tls_curve_preferences,
        )

    def http2_options(self, goaway_chance: float) -> Http2Options:
        """How HTTP/2 is spoken here."""
        from pilothouse.net.http2.settings import Http2Options

        return Http2Options(self.http2_max_streams_per_connection or 100, goaway_chance)

    def bind(self) -> socket.socket:
        """The socket to listen on. Raises OSError, which says what to do."""
        from pilothouse.net.listener import bind

        try:
            return bind(self.bind_address, self.secure_port, reuse_port=self.permit_port_sharing)
        except OSError as error:
            remedy = _BIND_REMEDIES.get(error.errno or 0, "see --bind-address and --secure-port")
            where = f"{self.bind_address}:{self.secure_port}"
            raise OSError(f"cannot listen on {where}: {os.strerror(error.errno or 0)}; {remedy}") from error

    def validate(self, given: Set[str]) -> list[str]:
        """Port, and names of TLS versions and ciphers."""
        errors = []
        if not 1 <= self.secure_port <= 65535:
            errors.append(
                f"--secure-port {self.secure_port} must be between 1 and 65535, inclusive. "
                "It cannot be turned off with 0"
            )
        if bool(self.tls_cert_file) != bool(self.tls_private_key_file):
            errors.append("--tls-cert-file and --tls-private-key-file must be specified together")
        if self.tls_min_version and self.tls_min_version not in VERSIONS:
            errors.append(f"unknown tls version {quote(self.tls_min_version)}")
        for suite in self.tls_cipher_suites:
            if suite not in OPENSSL_NAMES:
                errors.append(f"Cipher suite {suite} not supported or doesn't exist")
                break
        return errors + _curve_errors(self.tls_curve_preferences)


def _curve_errors(numbers: Sequence[int]) -> list[str]:
    for position, number in enumerate(numbers):
        if not 0 < number <= 65535:
            return [f"curve preference {number} is out of range (must be 1-65535)"]
        if number in numbers[:position]:
            return [f"duplicate curve preference {number}"]
        if number not in GROUPS:
            return [f"curve preference {number} is not supported"]
    return []
