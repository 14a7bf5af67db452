"""Building the server of the built-in API."""

from __future__ import annotations

from collections.abc import Iterable

from pilothouse.endpoints.installed import InstalledVersion
from pilothouse.server.generic import GenericAPIServer


def build_control_plane(own: Iterable[InstalledVersion], delegate: GenericAPIServer) -> GenericAPIServer:
    """Every built-in group version."""
    server = GenericAPIServer("kube-apiserver", delegate)
    for version in own:
        server.install_version(version)
    return server
