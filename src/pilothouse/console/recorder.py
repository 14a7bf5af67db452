"""What happens to requests, told to those who look.

While nobody looks, requests take the ordinary chain, and all this costs is the question whether somebody does. The
first viewer switches recording on: from then on requests take a chain of the same filters with a probe behind each,
admission makes a span of each of its steps, and what is found is offered to every viewer. The last switches it off.

A viewer keeps a bounded number of records until the next batch goes out, and counts what it had no room for. Records
are made and encoded once for all viewers.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from pilothouse.admission.chain import AdmissionChain
from pilothouse.console.traces import CURRENT, HANDLER, Trace, observe_step, probe, spanned
from pilothouse.endpoints.request import APIRequest
from pilothouse.filters.chain import Filter
from pilothouse.filters.types import Handler
from pilothouse.flowcontrol.controller import FlowController
from pilothouse.flowcontrol.max_in_flight import MaxInFlight
from pilothouse.machinery.kept_json import dumps_to_keep
from pilothouse.net.messages import Response
from pilothouse.server.generic import GenericAPIServer

MOST_VIEWERS: Final = 16
MOST_RECORDS: Final = 500

Record = tuple[float, bytes]
"""When a request began, and what there is to tell of it, as JSON."""


class Viewer:
    """Somebody who looks."""

    def __init__(self) -> None:
        self._records: list[Record] = []
        self._missed = 0

    @property
    def has_room(self) -> bool:
        """Whether one more record would be kept."""
        return len(self._records) < MOST_RECORDS

    def offer(self, record: Record | None) -> None:
        """Keep a record, or count it where there is no room (or it was not made for that reason)."""
        if record is not None and self.has_room:
            self._records.append(record)
        else:
            self._missed += 1

    def take(self) -> tuple[list[Record], int]:
        """What has come since the last time, and how many more there were."""
        taken = self._records, self._missed
        self._records, self._missed = [], 0
        return taken


class Recorder:
    """Records the requests of one cluster while there are ``viewers``."""

    def __init__(
        self,
        filters: Sequence[tuple[str, Filter]],
        front: GenericAPIServer,
        admission: AdmissionChain,
        flow_control: FlowController | MaxInFlight,
    ) -> None:
        self.viewers: list[Viewer] = []
        self._filters, self._front, self._admission = filters, front, admission
        self._flow_control = flow_control
        self._chain: Handler | None = None

    @property
    def has_room(self) -> bool:
        """Whether one more may look."""
        return len(self.viewers) < MOST_VIEWERS

    def join(self) -> Viewer | None:
        """Begin to look; None where too many do."""
        if not self.has_room:
            return None
        if not self.viewers:
            self._admission.observe(observe_step)
        viewer = Viewer()
        self.viewers.append(viewer)
        return viewer

    def leave(self, viewer: Viewer) -> None:
        """Look no more. Doing so again does nothing."""
        if viewer in self.viewers:
            self.viewers.remove(viewer)
            if not self.viewers:
                self._admission.observe(None)

    async def handle(self, request: APIRequest) -> Response:
        """Serve a request as ever, and tell of it."""
        chain = self._chain or self._build()
        before, trace = CURRENT.get(), Trace(request)
        CURRENT.set(trace)
        code, size = 0, 0
        try:
            response = await chain(request)
            code, size = response.status, len(response.body) or response.length or 0
            return response
        finally:
            CURRENT.set(before)
            self._tell(request, trace, code, size)

    def _build(self) -> Handler:
        """The chain with a probe behind each filter, made when it is first needed."""
        handler = probe(HANDLER, spanned(self._front.handle))
        for name, wrap in reversed(self._filters):
            handler = probe(name, wrap(handler))
        self._chain = handler
        return handler

    def _tell(self, request: APIRequest, trace: Trace, code: int, size: int) -> None:
        has_room = any(viewer.has_room for viewer in self.viewers) and hasattr(request, "info")
        record: Record | None = None
        if has_room:
            told = trace.record(code, size, self._front.answering(request), self._level(request))
            record = told["time"], dumps_to_keep(told)
        for viewer in self.viewers:
            viewer.offer(record)

    def _level(self, request: APIRequest) -> str:
        """The priority level that the request belongs to."""
        if isinstance(self._flow_control, MaxInFlight) or not hasattr(request, "user"):
            return ""
        return self._flow_control.classify(request.user, request.info).level.name
