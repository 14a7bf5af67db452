"""What limits the requests of a cluster: priority and fairness, or two plain limits where that is switched off."""

from __future__ import annotations

from typing import Any, Final

from pilothouse.cluster.workers import Workers
from pilothouse.endpoints.request import APIRequest
from pilothouse.endpoints.responses import PLAIN_TEXT
from pilothouse.flowcontrol.controller import FlowController
from pilothouse.flowcontrol.dumps import dump_levels, dump_queues, dump_requests, level_rows, queue_rows, request_rows
from pilothouse.flowcontrol.max_in_flight import MaxInFlight
from pilothouse.flowcontrol.sizes import ResourceSizes
from pilothouse.net.messages import Response
from pilothouse.options import ServerOptions
from pilothouse.server.generic import GenericAPIServer
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


def install_flow_control_dumps(
    server: GenericAPIServer, controller: FlowController | MaxInFlight, workers: Workers
) -> None:
    """Show the state of priority and fairness in all processes, where it is on."""
    if isinstance(controller, MaxInFlight):
        return

    async def rows(name: str, *details: bool) -> Any:
        if name == "levels":
            return level_rows(controller)
        return queue_rows(controller) if name == "queues" else request_rows(controller, details=any(details))

    gathered = workers.gather("flow control", rows)

    async def levels(request: APIRequest) -> Response:
        return _page(dump_levels(await gathered("levels")))

    async def queues(request: APIRequest) -> Response:
        return _page(dump_queues(await gathered("queues")))

    async def requests(request: APIRequest) -> Response:
        details = bool(request.options.text("includeRequestDetails"))
        return _page(dump_requests(await gathered("requests", details), details=details))

    for name, page in (("dump_priority_levels", levels), ("dump_queues", queues), ("dump_requests", requests)):
        server.routes.add(_PREFIX + name, page, hidden=True)


def _page(text: str) -> Response:
    return Response(200, text.encode(), PLAIN_TEXT)
