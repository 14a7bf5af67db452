"""The kubeconfig file of a webhook: where it is, how its certificate is checked, and how the server shows itself to it.

Only what a webhook needs is read: the current context's cluster and user. Paths in the file are relative to it. Kept
apart from the calls so that a wrong file is refused before the server starts.
"""

from __future__ import annotations

import base64
import binascii
import os
import ssl
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from pilothouse.machinery.go_quote import quote
from pilothouse.machinery.yaml_codec import load


@dataclass(frozen=True, slots=True)
class WebhookEndpoint:
    """Where to send objects to, and with what."""

    url: str
    authority: str = ""
    """Certificate authorities in PEM; the system's own where empty."""
    server_name: str = ""
    insecure: bool = False
    certificate: bytes = b""
    key: bytes = b""
    token: str = ""
    token_file: str = ""
    basic: tuple[str, str] | None = None
    headers: Mapping[str, str] = field(default_factory=dict)

    def authorization(self) -> str:
        """The value of the Authorization header, empty without one. A token file is read anew every time."""
        if self.token_file:
            with open(self.token_file, encoding="utf-8") as file:
                return f"Bearer {file.read().strip()}"
        if self.token:
            return f"Bearer {self.token}"
        if self.basic is not None:
            return "Basic " + base64.b64encode(":".join(self.basic).encode()).decode()
        return ""

    def tls(self) -> ssl.SSLContext:
        """How to connect. Raises ``OSError`` or ``ssl.SSLError`` for files that are no certificates."""
        return client_context(self.authority, self.insecure, self.certificate, self.key)


def client_context(
    authority: str = "", insecure: bool = False, certificate: bytes = b"", key: bytes = b""
) -> ssl.SSLContext:
    """TLS 1.2 or later; trusts the given authorities only, or the system's where none are given."""
    context = ssl.create_default_context(cadata=authority or None)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    if insecure:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    if certificate:
        # The module takes certificates from files only.
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "client.pem")
            with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
                file.write(certificate + b"\n" + key)
            context.load_cert_chain(path)
    return context


def read_webhook_kubeconfig(path: str) -> WebhookEndpoint:
    """Read the file. Raises ``OSError`` and ``ValueError``."""
    with open(path, "rb") as file:
        document = load(file.read())
    if not isinstance(document, dict):
        raise ValueError(f"{path} is not a kubeconfig file")
    context = _named(document, "contexts", str(document.get("current-context") or ""), "context")
    cluster = _named(document, "clusters", str(context.get("cluster") or ""), "cluster")
    user = _named(document, "users", str(context.get("user") or ""), "user") if context.get("user") else {}
    if not cluster.get("server"):
        raise ValueError(f"{path}: the cluster of the current context names no server")
    folder = os.path.dirname(os.path.abspath(path))
    token_file = str(user.get("tokenFile") or "")
    basic = (str(user["username"]), str(user.get("password") or "")) if user.get("username") else None
    return WebhookEndpoint(
        str(cluster["server"]),
        _content(cluster, "certificate-authority", folder).decode("utf-8", "replace"),
        str(cluster.get("tls-server-name") or ""),
        bool(cluster.get("insecure-skip-tls-verify")),
        _content(user, "client-certificate", folder),
        _content(user, "client-key", folder),
        str(user.get("token") or ""),
        os.path.join(folder, token_file) if token_file else "",
        basic,
    )


def _named(document: Mapping[str, Any], section: str, name: str, word: str) -> Mapping[str, Any]:
    entries = document.get(section)
    for entry in entries if isinstance(entries, list) else ():
        if isinstance(entry, dict) and entry.get("name") == name and isinstance(entry.get(word), dict):
            found: Mapping[str, Any] = entry[word]
            return found
    raise ValueError(f"{word} {quote(name)} does not exist")


def _content(entry: Mapping[str, Any], name: str, folder: str) -> bytes:
    """A PEM file given inline or by its path."""
    inline = entry.get(f"{name}-data")
    if inline:
        try:
            return base64.b64decode(str(inline), validate=False)
        except binascii.Error as error:
            raise ValueError(f"{name}-data: {error}") from None
    path = entry.get(name)
    if not path:
        return b""
    with open(os.path.join(folder, str(path)), "rb") as file:
        return file.read()
