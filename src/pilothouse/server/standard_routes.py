"""Routes every API server has beside its resources: version, metrics."""

from __future__ import annotations

import asyncio
import platform
import time
from collections.abc import Iterable
from functools import cache
from typing import Any

from pilothouse import KUBERNETES_VERSION, __version__
from pilothouse.endpoints.request import APIRequest
from pilothouse.machinery.metrics import Instrument, read_aside, render_pieces
from pilothouse.net.messages import Response
from pilothouse.server.generic import GenericAPIServer, json_route, only_get, only_json

METRICS_TYPE = b"text/plain; version=0.0.4; charset=utf-8; escaping=underscores"


@cache
def version_info() -> dict[str, Any]:
    """What ``/version`` says."""
    major, minor = KUBERNETES_VERSION.split(".")
    machine = {"x86_64": "amd64", "aarch64": "arm64"}.get(platform.machine(), platform.machine())
    return {
        "major": major,
        "minor": minor,
        "emulationMajor": major,
        "emulationMinor": minor,
        "minCompatibilityMajor": major,
        "minCompatibilityMinor": str(int(minor) - 1),
        "gitVersion": f"v{KUBERNETES_VERSION}.0",
        "gitCommit": f"pilothouse-{__version__}",
        "gitTreeState": "clean",
        "buildDate": "1970-01-01T00:00:00Z",
        "goVersion": f"python{platform.python_version()}",
        "compiler": platform.python_implementation().lower(),
        "platform": f"{platform.system().lower()}/{machine}",
    }


def install_standard_routes(server: GenericAPIServer, instruments: Iterable[Instrument]) -> None:
    """Add them to the first server of a chain."""
    version = only_get(only_json(json_route(version_info)))
    server.routes.add("/version", version)
    server.routes.add("/version/", version, hidden=True)
    server.routes.add("/metrics", _scrape(instruments))
    server.routes.add("/metrics/slis", _scrape(server.checks.instruments()))


def _scrape(instruments: Iterable[Instrument]) -> Any:
    started = (b"process-start-time-unix", b"%d" % time.time())

    async def serve(request: APIRequest) -> Response:
        await asyncio.to_thread(read_aside, tuple(instruments))
        pieces = []
        for piece in render_pieces(instruments):
            pieces.append(piece)
            await asyncio.sleep(0)  # a page may be long
        return Response(200, b"".join(pieces), METRICS_TYPE, [started])

    return serve
