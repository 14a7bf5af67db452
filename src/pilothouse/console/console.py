"""Which chain of filters a path below ``/console`` takes; everything else goes on to the API.

    /console, /console/<file>        assets       no credentials: the filters that come before authentication
    /console/login, /console/logout  sessions     likewise: a ticket or the token itself is the credential
    /console/history/<object>        history      all filters, as a get of that object
    /console/tickets                 sessions     all filters, as a path: ``post`` on the nonResourceURL
    /console/requests                recorder     all filters, as a path: ``get`` on the nonResourceURL

All chains are made of the one list of filters, so that refusals, audit and metrics are those of the API.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import orjson

from pilothouse.admission.chain import AdmissionChain
from pilothouse.authn.bearer import bearer_token
from pilothouse.console.assets import PREFIX, Assets
from pilothouse.console.history import HISTORY, ObjectHistory, with_object_info
from pilothouse.console.lookout import Lookout
from pilothouse.console.recorder import Recorder
from pilothouse.console.request_stream import RequestStream
from pilothouse.console.sessions import SESSION_SECONDS, TICKET_SECONDS
from pilothouse.console.shared_sessions import SharedSessions
from pilothouse.console.vitals import Vitals
from pilothouse.console.workers import Workers
from pilothouse.endpoints.request import APIRequest
from pilothouse.endpoints.responses import error_response
from pilothouse.filters.chain import ChainConfig, Filter, filters
from pilothouse.filters.types import Handler, Serving
from pilothouse.flowcontrol.controller import FlowController
from pilothouse.flowcontrol.max_in_flight import MaxInFlight
from pilothouse.machinery import errors
from pilothouse.net.messages import BodyTooLarge, Response
from pilothouse.server.generic import GenericAPIServer
from pilothouse.server.lifecycle import Lifecycle
from pilothouse.server.route_handlers import RouteHandler, only_get
from pilothouse.storage.stack import StorageStack

_BARE: Final = PREFIX[:-1]
_TICKET_LIMIT: Final = 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsoleParts:
    """What the console looks into."""

    filters: ChainConfig
    front: GenericAPIServer
    admission: AdmissionChain
    flow_control: FlowController | MaxInFlight
    storage: StorageStack
    root: str
    lifecycle: Lifecycle
    workers: Workers


class Console:
    """The console of one cluster."""

    def __init__(self, sessions: SharedSessions, parts: ConsoleParts) -> None:
        self._sessions = sessions
        chain = filters(parts.filters)
        names = [name for name, _ in chain]
        public = chain[: names.index("authentication")]
        object_chain = [(name, with_object_info if name == "request-info" else each) for name, each in chain]
        self.recorder = Recorder(chain, parts.front, parts.admission, parts.flow_control)
        vitals = Vitals(parts.storage, parts.root, parts.flow_control)
        stream = RequestStream(Lookout(self.recorder, vitals, parts.workers), parts.lifecycle)
        self._assets = _behind(public, Assets().serve)
        self._history = _behind(object_chain, ObjectHistory(parts.front).serve)
        self._routes: dict[str, Handler] = {
            PREFIX + "login": _behind(public, _only_post(self._login)),
            PREFIX + "logout": _behind(public, _only_post(self._logout)),
            PREFIX + "tickets": _behind(chain, _only_post(self._issue_ticket)),
            PREFIX + "requests": _behind(chain, only_get(stream.serve)),
        }

    def in_front_of(self, api: Handler) -> Handler:
        """The handler of all requests."""
        recorder = self.recorder

        def handle(request: APIRequest) -> Serving:
            if request.path.startswith(_BARE):
                return self._find(request.path, api)(request)
            return recorder.handle(request) if recorder.viewers else api(request)

        return handle

    def _find(self, path: str, api: Handler) -> Handler:
        found = self._routes.get(path)
        if found is not None:
            return found
        if path.startswith(HISTORY):
            return self._history
        return self._assets if path.startswith(PREFIX) or path == _BARE else api

    async def _issue_ticket(self, request: APIRequest) -> Response:
        ticket = await self._sessions.issue_ticket(request.user)
        answer = {"ticket": ticket, "path": f"{PREFIX}#ticket={ticket}", "seconds": int(TICKET_SECONDS)}
        return Response(201, orjson.dumps(answer))

    async def _login(self, request: APIRequest) -> Response:
        try:
            ticket = (await request.body(_TICKET_LIMIT)).decode("ascii", "replace")
        except BodyTooLarge:
            ticket = ""
        token = await self._sessions.redeem(ticket)
        if token is None:
            why = "this ticket is not, or no longer, good: run `pilothouse console` for another"
            return error_response(request, errors.unauthorized(why))
        return Response(200, orjson.dumps({"token": token, "seconds": int(SESSION_SECONDS)}))

    async def _logout(self, request: APIRequest) -> Response:
        await self._sessions.end(bearer_token(request.headers.get(b"authorization", b"")))
        return Response(200, b"{}")


def _behind(chain: Sequence[tuple[str, Filter]], route: RouteHandler) -> Handler:
    async def serve(request: APIRequest) -> Response:
        return await route(request)

    handler: Handler = serve
    for _, wrap in reversed(chain):
        handler = wrap(handler)
    return handler


def _only_post(route: RouteHandler) -> RouteHandler:
    async def serve(request: APIRequest) -> Response:
        if request.method != "POST":
            return error_response(request, errors.method_not_allowed())
        return await route(request)

    return serve
