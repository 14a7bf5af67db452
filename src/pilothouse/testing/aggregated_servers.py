"""What an API server in front of another, and the one behind it, are told; the same for ours and for those of Go.

Benchmarks and tests put servers behind each other with it in every pairing.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from pilothouse.credentials.pki import Pki

SERVICES = "/api/v1/namespaces/default/services"
API_SERVICES = "/apis/apiregistration.k8s.io/v1/apiservices"


def front_proxy_flags(pki: Pki) -> list[str]:
    """For the server in front: as whom it asks, and whom it would believe in turn."""
    return [
        f"--requestheader-client-ca-file={pki.front_proxy_ca_cert}",
        "--requestheader-allowed-names=front-proxy-client",
        "--requestheader-username-headers=X-Remote-User",
        "--requestheader-group-headers=X-Remote-Group",
        "--requestheader-extra-headers-prefix=X-Remote-Extra-",
        f"--proxy-client-cert-file={pki.front_proxy_client_cert}",
        f"--proxy-client-key-file={pki.front_proxy_client_key}",
    ]


def aggregated_flags(port: int, kubeconfig: Path) -> list[str]:
    """For the server behind: where it listens, and whom it asks about users and rights."""
    asked = [f"--{kind}kubeconfig={kubeconfig}" for kind in ("", "authentication-", "authorization-")]
    return [f"--secure-port={port}", "--bind-address=127.0.0.1", *asked]


def write_kubeconfig(path: Path, url: str, pki: Pki, token: str) -> Path:
    """A kubeconfig for whoever has the token."""
    cluster = {"server": url, "certificate-authority": str(pki.ca_cert)}
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "main",
        "clusters": [{"name": "main", "cluster": cluster}],
        "users": [{"name": "user", "user": {"token": token}}],
        "contexts": [{"name": "main", "context": {"cluster": "main", "user": "user"}}],
    }
    path.write_text(json.dumps(config))
    return path


def loopback_service(name: str, port: int) -> dict[str, Any]:
    """The service that leads to a port of this machine."""
    spec = {"type": "ExternalName", "externalName": "localhost", "ports": [{"port": port}]}
    return {"metadata": {"name": name}, "spec": spec}


def api_service(group: str, version: str, service: str, port: int, *, priority: int = 10) -> dict[str, Any]:
    """The APIService of a group version behind that service."""
    spec = {
        "group": group,
        "version": version,
        "groupPriorityMinimum": 1000,
        "versionPriority": priority,
        "insecureSkipTLSVerify": True,
        "service": {"namespace": "default", "name": service, "port": port},
    }
    return {"metadata": {"name": f"{version}.{group}"}, "spec": spec}
