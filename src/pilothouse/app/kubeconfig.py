"""The administrator's kubeconfig: one file with everything in it, ready for ``kubectl --kubeconfig``.

The file holds a private key: it is readable by its owner only, appears whole, and is left alone when nothing changed.
"""

from __future__ import annotations

import base64
import json
from pathlib import Path

from pilothouse.app.pki import write_atomically

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
    user: kubernetes-admin
users:
- name: kubernetes-admin
  user:
    client-certificate-data: {cert}
    client-key-data: {key}
"""


def write_kubeconfig(path: Path, server_url: str, ca: Path, cert: Path, key: Path) -> None:
    """Write a kubeconfig for the server, with the contents of the three PEM files embedded."""
    text = _TEMPLATE.format(
        context=CONTEXT,
        server=json.dumps(server_url),
        ca=_encoded(ca),
        cert=_encoded(cert),
        key=_encoded(key),
    ).encode()
    if path.exists() and path.read_bytes() == text:
        path.chmod(0o600)
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(path, text, 0o600)


def _encoded(path: Path) -> str:
    return base64.b64encode(path.read_bytes()).decode()
