"""Tells of every flow schema whether the priority level it names exists: its ``Dangling`` condition."""

from __future__ import annotations

import asyncio
from typing import Any, Final

from pilothouse.controllers.backoff import Backoff
from pilothouse.controllers.following import Follower
from pilothouse.controllers.own_objects import condition_of, set_condition, update_status
from pilothouse.controllers.running import Controller
from pilothouse.controllers.work_queue import WorkQueue
from pilothouse.controlplane.bootstrap.flow_control import MANDATORY
from pilothouse.machinery.go_quote import quote
from pilothouse.machinery.times import now
from pilothouse.registry.store.store import Store

CONSUMER: Final = "api-priority-and-fairness-config-consumer-v1"
# Conflicts are between servers and take a while to go away.
_FIRST_BACKOFF: Final = 0.2
_ALL: Final = "flow schemas"


class FlowSchemaStatus:
    """Follows both kinds and judges all schemas anew after any change."""

    def __init__(self, flow_schemas: Store, priority_levels: Store) -> None:
        self._schemas, self._levels = flow_schemas, priority_levels
        queue: WorkQueue[str] = WorkQueue(Backoff(_FIRST_BACKOFF))
        self._controller = Controller("flow schema status", self._reconcile, queue)
        self._followers = [
            Follower(store, lambda obj: queue.add(_ALL), lambda namespace, name: queue.add(_ALL))
            for store in (flow_schemas, priority_levels)
        ]

    async def start(self) -> None:
        """Begin, and wait until both kinds are known."""
        for follower in self._followers:
            follower.start()
        for follower in self._followers:
            await follower.synced.wait()
        self._controller.start()

    async def stop(self) -> None:
        """Stop following and judging."""
        for follower in self._followers:
            await follower.stop()
        await self._controller.stop()

    async def _reconcile(self, key: str) -> None:
        levels = {entry.name for entry in self._levels.cache.entries()} | MANDATORY
        schemas = [self._schemas.decode(entry) for entry in self._schemas.cache.entries()]
        await asyncio.gather(*(self._judge(schema, levels) for schema in schemas))

    async def _judge(self, schema: dict[str, Any], levels: set[str]) -> None:
        verdict = dangling(schema, levels)
        known = condition_of(schema, "Dangling") or {}
        if all(known.get(key) == verdict[key] for key in ("status", "reason", "message")):
            return

        def change(stored: dict[str, Any]) -> dict[str, Any]:
            set_condition(stored, {**verdict, "lastTransitionTime": now()})
            return stored

        name = schema["metadata"]["name"]
        await update_status(self._schemas, "", name, change, manager=CONSUMER, operation="Apply")


def dangling(schema: dict[str, Any], levels: set[str]) -> dict[str, str]:
    """The condition a flow schema should have, without its time."""
    level = schema["spec"]["priorityLevelConfiguration"].get("name", "")
    found = level in levels
    ending = "and it exists" if found else "but there is no such object"
    message = f"This FlowSchema references the PriorityLevelConfiguration object named {quote(level)} {ending}"
    return {
        "type": "Dangling",
        "status": "False" if found else "True",
        "reason": "Found" if found else "NotFound",
        "message": message,
    }
