"""Kubeconfigs: one file with everything in it, ready for ``kubectl --kubeconfig``.

A file holds a private key or a token: it is readable by its owner only, appears whole, and is left alone when nothing
changed.
"""

from __future__ import annotations

import base64
import json
from pathlib import Path

from pilothouse.credentials.pki import write_atomically

CONTEXT = "pilothouse"
_TEMPLATE = """\
apiVersion: v1
kind: Config
current-context: {context}
clusters:
- name: {context}
  cluster:
    server: {server}
    certificate-authority-data: {ca}
contexts:
- name: {context}
  context:
    cluster: {context}
    user: {user}
users:
- name: {user}
  user:
{credentials}
"""


def write_kubeconfig(path: Path, server_url: str, ca: Path, cert: Path, key: Path) -> None:
    """Write the administrator's, with the contents of the three PEM files embedded."""
    pair = cert.read_bytes(), key.read_bytes()
    store_kubeconfig(path, kubeconfig(server_url, ca.read_bytes(), "kubernetes-admin", pair=pair))


def kubeconfig(
    server_url: str, ca: bytes, user: str, *, pair: tuple[bytes, bytes] | None = None, token: str = ""
) -> str:
    """A kubeconfig for somebody with a certificate and key, or with a token."""
    lines = [f"    token: {json.dumps(token)}"] if token else []
    if pair is not None:
        cert, key = pair
        lines += [f"    client-certificate-data: {_encoded(cert)}", f"    client-key-data: {_encoded(key)}"]
    return _TEMPLATE.format(
        context=CONTEXT,
        server=json.dumps(server_url),
        ca=_encoded(ca),
        user=user if user == "kubernetes-admin" else json.dumps(user),
        credentials="\n".join(lines),
    )


def store_kubeconfig(path: Path, text: str) -> None:
    """Put it into a file of its owner's alone."""
    data = text.encode()
    if path.exists() and path.read_bytes() == data:
        path.chmod(0o600)
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(path, data, 0o600)


def _encoded(data: bytes) -> str:
    return base64.b64encode(data).decode()
