"""The kubeconfig file of a webhook: where it is, how its certificate is checked, and how the server shows itself to it.

Only what a webhook needs is read: the current context's cluster and user. Paths in the file are relative to it. Kept
apart from the calls so that a wrong file is refused before the server starts.
"""

from __future__ import annotations

import base64
import binascii
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from pilothouse.machinery.go_quote import quote
from pilothouse.machinery.shapes import unknown_fields, without_nulls
from pilothouse.machinery.yaml_codec import load
from pilothouse.net.outgoing import Tls

_SHAPE: Final = {
    "current-context": str,
    "contexts": [{"name": str, "context": {"cluster": str, "user": str, "namespace": str}}],
    "clusters": [
        {
            "name": str,
            "cluster": {
                "server": str,
                "tls-server-name": str,
                "insecure-skip-tls-verify": bool,
                "certificate-authority": str,
                "certificate-authority-data": str,
                "proxy-url": str,
            },
        }
    ],
    "users": [
        {
            "name": str,
            "user": {
                "client-certificate": str,
                "client-certificate-data": str,
                "client-key": str,
                "client-key-data": str,
                "token": str,
                "tokenFile": str,
                "username": str,
                "password": str,
            },
        }
    ],
}


@dataclass(frozen=True, slots=True)
class WebhookEndpoint:
    """Where to send objects to, and with what."""

    url: str
    authority: bytes = b""
    """Certificate authorities in PEM; the system's own where empty."""
    server_name: str = ""
    insecure: bool = False
    certificate: bytes = b""
    key: bytes = field(default=b"", repr=False)
    token: str = field(default="", repr=False)
    token_file: str = ""
    basic: tuple[str, str] | None = field(default=None, repr=False)

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

    @property
    def tls(self) -> Tls:
        """How to connect."""
        certificate = self.certificate + b"\n" + self.key if self.certificate else b""
        return Tls(self.authority, self.server_name, insecure=self.insecure, certificate=certificate)


def read_webhook_kubeconfig(path: str) -> WebhookEndpoint:
    """Read the file. Raises ``OSError`` and ``ValueError``."""
    with open(path, "rb") as file:
        document = load(file.read())
    if not isinstance(document, dict):
        raise ValueError(f"{path} is not a kubeconfig file")
    unknown_fields(document, _SHAPE)
    document = without_nulls(document, _SHAPE)
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
        _content(cluster, "certificate-authority", folder),
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
