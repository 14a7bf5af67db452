"""Routes every API server has beside its resources: version, metrics."""

from __future__ import annotations

import asyncio
import platform
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping
from functools import cache, partial
from typing import Any

from pilothouse import KUBERNETES_VERSION, __version__
from pilothouse.apis.emulation import PRESENT, Emulation
from pilothouse.endpoints.negotiation import JSON
from pilothouse.endpoints.request import APIRequest
from pilothouse.machinery.joined_metrics import ways_of_joining
from pilothouse.machinery.metrics import Instrument, read_aside, render_pieces
from pilothouse.net.messages import Response
from pilothouse.server.generic import GenericAPIServer
from pilothouse.server.route_handlers import RouteHandler, json_route, only_content, only_get, only_json

METRICS_TYPE = b"text/plain; version=0.0.4; charset=utf-8; escaping=underscores"


@cache
def version_info(emulation: Emulation = PRESENT) -> dict[str, Any]:
    """What ``/version`` says."""
    major, minor = KUBERNETES_VERSION.split(".")
    machine = {"x86_64": "amd64", "aarch64": "arm64"}.get(platform.machine(), platform.machine())
    return {
        "major": major,
        "minor": minor,
        "emulationMajor": str(emulation.version[0]),
        "emulationMinor": str(emulation.version[1]),
        "minCompatibilityMajor": str(emulation.compatible[0]),
        "minCompatibilityMinor": str(emulation.compatible[1]),
        "gitVersion": f"v{KUBERNETES_VERSION}.0",
        "gitCommit": f"pilothouse-{__version__}",
        "gitTreeState": "clean",
        "buildDate": "1970-01-01T00:00:00Z",
        "goVersion": f"python{platform.python_version()}",
        "compiler": platform.python_implementation().lower(),
        "platform": f"{platform.system().lower()}/{machine}",
    }


Page = Callable[[], Awaitable[bytes]]
Join = Callable[[str, Page, Callable[[], Mapping[str, str]]], Page]


def _unjoined(name: str, page: Page, joining: Callable[[], Mapping[str, str]]) -> Page:
    return page


def install_standard_routes(
    server: GenericAPIServer,
    instruments: Iterable[Instrument],
    join: Join = _unjoined,
    emulation: Emulation = PRESENT,
) -> None:
    """Add them to the first server of a chain. ``join`` makes a page of metrics one of several processes."""
    version = only_get(only_content(only_json(json_route(partial(version_info, emulation))), (JSON,)))
    server.routes.add_with_slash("/version", version)
    for path, shown in (("/metrics", instruments), ("/metrics/slis", server.checks.instruments())):
        server.routes.add(path, _scrape(join(path, _page(shown), partial(ways_of_joining, shown))))


def _page(instruments: Iterable[Instrument]) -> Page:
    async def page() -> bytes:
        await asyncio.to_thread(read_aside, tuple(instruments))
        pieces = []
        for piece in render_pieces(instruments):
            pieces.append(piece)
            await asyncio.sleep(0)  # a page may be long
        return b"".join(pieces)

    return page


def _scrape(page: Page) -> RouteHandler:
    started = (b"process-start-time-unix", b"%d" % time.time())

    async def serve(request: APIRequest) -> Response:
        return Response(200, await page(), METRICS_TYPE, [started])

    return serve
