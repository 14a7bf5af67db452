"""What limits the requests of a cluster: priority and fairness, or two plain limits where that is switched off."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from pilothouse.endpoints.request import APIRequest
from pilothouse.endpoints.responses import PLAIN_TEXT
from pilothouse.flowcontrol.controller import FlowController
from pilothouse.flowcontrol.dumps import dump_levels, dump_queues, dump_requests
from pilothouse.flowcontrol.max_in_flight import MaxInFlight
from pilothouse.flowcontrol.sizes import ResourceSizes
from pilothouse.net.messages import Response
from pilothouse.options import ServerOptions
from pilothouse.server.generic import GenericAPIServer
from pilothouse.server.routes import RouteHandler
from pilothouse.storage.cacher import Cacher

_PREFIX: Final = "/debug/api_priority_and_fairness/"


def build_flow_control(
    options: ServerOptions, gates: frozenset[str], cacher: Cacher, root: str, workers: int = 1
) -> FlowController | MaxInFlight:
    """By ``--enable-priority-and-fairness`` and the two flags that say how many requests are served at once.

    Those are limits of the whole server: each of several workers has its part of them.
    """
    reads = _part(options.generic.max_requests_inflight, workers)
    writes = _part(options.generic.max_mutating_requests_inflight, workers)
    if not options.features.enable_priority_and_fairness:
        return MaxInFlight(reads, writes)
    return FlowController(reads + writes, ResourceSizes(cacher, root), gates)


def _part(limit: int, workers: int) -> int:
    """What one worker has of a limit, where 0 is none."""
    return -(-limit // workers)


def install_flow_control_dumps(server: GenericAPIServer, controller: FlowController | MaxInFlight) -> None:
    """Show the state of priority and fairness, where it is on."""
    if isinstance(controller, MaxInFlight):
        return
    pages: dict[str, Callable[[APIRequest], str]] = {
        "dump_priority_levels": lambda request: dump_levels(controller),
        "dump_queues": lambda request: dump_queues(controller),
        "dump_requests": lambda request: dump_requests(
            controller, details=bool(request.options.text("includeRequestDetails"))
        ),
    }
    for name, text in pages.items():
        server.routes.add(_PREFIX + name, _page(text), hidden=True)


def _page(text: Callable[[APIRequest], str]) -> RouteHandler:
    async def serve(request: APIRequest) -> Response:
        return Response(200, text(request).encode(), PLAIN_TEXT)

    return serve
