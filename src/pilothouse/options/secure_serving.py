"""Flags of the HTTPS port: address, certificates, TLS versions and ciphers."""

from __future__ import annotations

from collections.abc import Set
from dataclasses import dataclass

from pilothouse.machinery.go_quote import quote
from pilothouse.net.tls_names import OPENSSL_NAMES, VERSIONS
from pilothouse.options.declaring import FlagGroup, flag
from pilothouse.options.kinds import BOOL, INT, INT32_SLICE, IP, NAMED_CERT_KEYS, STRING, STRINGS, NamedCertKey


@dataclass
class SecureServingOptions(FlagGroup):
    """The ``secure serving`` section."""

    section = "secure serving"

    bind_address: str = flag(
        "bind-address", IP, "0.0.0.0", "IP address to listen on; 0.0.0.0 and :: mean every interface.", effective=True
    )
    cert_dir: str = flag(
        "cert-dir",
        STRING,
        "/var/run/kubernetes",
        "Folder of apiserver.crt and apiserver.key, used when given and "
        "--tls-cert-file is not; they are made there when missing. Without it they are kept in --data-dir.",
        effective=True,
    )
    disable_http2_serving: bool = flag("disable-http2-serving", BOOL, False, "Do not offer HTTP/2.")
    http2_max_streams_per_connection: int = flag(
        "http2-max-streams-per-connection",
        INT,
        0,
        "Streams a client may open on one HTTP/2 connection; 0 is the default.",
    )
    permit_address_sharing: bool = flag("permit-address-sharing", BOOL, False, "Listen with SO_REUSEADDR.")
    permit_port_sharing: bool = flag("permit-port-sharing", BOOL, False, "Listen with SO_REUSEPORT.", effective=True)
    secure_port: int = flag(
        "secure-port", INT, 6443, "Port to serve HTTPS on. It cannot be switched off.", effective=True
    )
    tls_cert_file: str = flag(
        "tls-cert-file",
        STRING,
        "",
        "Serving certificate, followed by its intermediates. Default: one made at the first start.",
        effective=True,
    )
    tls_cipher_suites: tuple[str, ...] = flag(
        "tls-cipher-suites", STRINGS, (), "Cipher suites of TLS 1.2 and older, by their IANA names.", effective=True
    )
    tls_curve_preferences: tuple[int, ...] = flag(
        "tls-curve-preferences", INT32_SLICE, (), "Key exchanges allowed, as numbers of the TLS registry."
    )
    tls_min_version: str = flag(
        "tls-min-version",
        STRING,
        "",
        f"Oldest TLS version accepted: {', '.join(VERSIONS)}. Default: VersionTLS12.",
        effective=True,
    )
    tls_private_key_file: str = flag("tls-private-key-file", STRING, "", "Key of --tls-cert-file.", effective=True)
    tls_sni_cert_key: tuple[NamedCertKey, ...] = flag(
        "tls-sni-cert-key",
        NAMED_CERT_KEYS,
        (),
        "Certificate for some names: cert,key[:name,*.name]. Repeatable.",
        effective=True,
    )

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
        return errors
