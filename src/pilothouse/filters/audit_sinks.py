"""Auditing for AuditSinks: beside what the flags ask for, every sink gets what its own policy names.

Sinks come and go while the server runs. While there is one, events are gathered whole and each back end gets its part;
while there is none, nothing differs from auditing by flags alone.
"""

from __future__ import annotations

import asyncio
from typing import Final

from pilothouse.admission.objects import Objects
from pilothouse.audit.events import Event
from pilothouse.audit.metrics import AuditMetrics
from pilothouse.audit.policy import NONE, REQUEST_RESPONSE, Policy, Verdict
from pilothouse.audit.registered_sinks import RegisteredSink, SinkConnections
from pilothouse.audit.sinks import Joined
from pilothouse.endpoints.request import APIRequest
from pilothouse.filters.audit import Auditing
from pilothouse.machinery.objects import Object
from pilothouse.machinery.supervision import Supervisor
from pilothouse.machinery.user import User
from pilothouse.machinery.workers import weighed

_NOTHING: Final = Verdict(NONE)


class SinkAuditing(Auditing):
    """What flags ask for (``static``, where they do) and what the stored sinks want."""

    def __init__(
        self,
        static: Auditing | None,
        objects: Objects,
        connections: SinkConnections,
        metrics: AuditMetrics,
        supervisor: Supervisor,
    ) -> None:
        policy, sink = (Policy((), _NOTHING), Joined(())) if static is None else (static.policy, static.sink)
        super().__init__(policy, sink, metrics, supervisor)
        self._static, self._objects, self._connections = static, objects, connections
        self._sinks: dict[str, tuple[Object, RegisteredSink]] = {}
        self._tasks = supervisor

    async def start(self) -> None:
        """Read the stored sinks."""
        await self._objects.ready()

    def judge(self, request: APIRequest, user: User | None) -> Verdict:
        """All there is where a sink may want it; else what the flags' policy says."""
        static = _NOTHING if self._static is None else self._static.policy.judge(user, request.info)
        verdict = static
        if any(each.verdict.level != NONE for each in self._registered()):
            verdict = Verdict(REQUEST_RESPONSE, static=static)
        self.metrics.note_level(verdict.level)
        return verdict

    async def store(self, event: Event, stage: str) -> bool:
        """Give every back end its part of an event."""
        if event.static is None:
            return await super().store(event, stage)
        stored = True
        if event.static.level != NONE and stage not in event.static.omitted:
            stored = await super().store(event.judged(event.static), stage)
        for each in self._registered():
            if each.verdict.level != NONE and stage not in each.verdict.omitted:
                self.metrics.events.value += 1
                await each.sink.process((await weighed(event.weight, event.judged(each.verdict).record, stage),))
        return stored

    def _registered(self) -> list[RegisteredSink]:
        return [] if self._objects.is_empty else self._objects.remembered(self, self._connect)

    def _connect(self) -> list[RegisteredSink]:
        """Back ends of the sinks as they are now; those that stay the same go on, the others are let go."""
        before, self._sinks = self._sinks, {}
        for obj in self._objects.list():
            known = before.pop(obj["metadata"]["uid"], None)
            same = known is not None and known[0]["spec"] == obj["spec"]
            made = known[1] if known is not None and same else self._connections.connect(obj)
            if known is not None and not same:
                before[obj["metadata"]["uid"]] = known
            self._sinks[obj["metadata"]["uid"]] = (obj, made)
        for _, old in before.values():
            self._tasks.spawn("closing an audit sink", old.sink.close())
        return [made for _, made in self._sinks.values()]

    async def close(self) -> None:
        """Let the last events out. What flags made belongs to the process."""
        await asyncio.gather(*self._storing, return_exceptions=True)
        for _, each in self._sinks.values():
            await each.sink.close()
        await self._connections.close()
