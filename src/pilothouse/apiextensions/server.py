"""Building the extensions server."""

from __future__ import annotations

from collections.abc import Iterable

from pilothouse.endpoints.installed import InstalledVersion
from pilothouse.server.generic import GenericAPIServer


def build_extensions(own: Iterable[InstalledVersion], livez_grace_seconds: float = 0.0) -> GenericAPIServer:
    """The end of the chain: CustomResourceDefinitions, and not found for everything else."""
    server = GenericAPIServer("apiextensions", livez_grace_seconds=livez_grace_seconds)
    for version in own:
        server.install_version(version)
    return server
