"""Building the aggregator: the first server, which decides whose path it is."""

from __future__ import annotations

from collections.abc import Iterable

from pilothouse.endpoints.installed import InstalledVersion
from pilothouse.server.generic import GenericAPIServer


def build_aggregator(own: Iterable[InstalledVersion], delegate: GenericAPIServer) -> GenericAPIServer:
    """APIServices, and everything local through the delegate."""
    server = GenericAPIServer("kube-aggregator", delegate)
    for version in own:
        server.install_version(version)
    return server
