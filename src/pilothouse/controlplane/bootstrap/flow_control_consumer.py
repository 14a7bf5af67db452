"""Takes flow schemas and priority levels into use as they change, and tells of every schema whether the level it names
exists: its ``Dangling`` condition."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any, Final

from pilothouse.controllers.own_objects import condition_of, set_condition, update_status
from pilothouse.controllers.runtime.controller import Controller
from pilothouse.controllers.runtime.informers import InformerFactory
from pilothouse.controllers.runtime.work_queue import WorkQueue
from pilothouse.controlplane.bootstrap.flow_control import MANDATORY
from pilothouse.machinery.backoff import Backoff
from pilothouse.machinery.go_quote import quote
from pilothouse.machinery.objects import Object
from pilothouse.machinery.supervision import Supervisor
from pilothouse.machinery.times import now
from pilothouse.registry.store.store import Store

CONSUMER: Final = "api-priority-and-fairness-config-consumer-v1"
# Conflicts are between servers and take a while to go away.
_FIRST_BACKOFF: Final = 0.2
_ALL: Final = "flow schemas"


Configure = Callable[[Sequence[Object], Sequence[Object]], None]
"""Takes priority levels and flow schemas into use."""


class FlowControlConsumer:
    """Follows both kinds; after any change all of them are taken into use, and all schemas judged anew."""

    def __init__(
        self, flow_schemas: Store, priority_levels: Store, informers: InformerFactory, configure: Configure
    ) -> None:
        self._schemas, self._levels, self._configure = flow_schemas, priority_levels, configure
        queue: WorkQueue[str] = WorkQueue(Backoff(_FIRST_BACKOFF), name="priority_and_fairness_config_queue")
        self._controller = Controller("flow control", self._reconcile, queue=queue)
        self._informers = [
            informers.of("flowcontrol.apiserver.k8s.io", "v1", resource)
            for resource in ("flowschemas", "prioritylevelconfigurations")
        ]
        for informer in self._informers:
            informer.add_handler(self._changed, lambda old, new: self._changed(new), self._changed, name="status")

    async def start(self, supervisor: Supervisor) -> None:
        """Begin, and wait until both kinds are known."""
        for informer in self._informers:
            await informer.wait_synced()
        self._controller.start(supervisor)

    def _changed(self, obj: Object) -> None:
        self._controller.queue.add(_ALL)

    async def _reconcile(self, key: str) -> None:
        levels = [self._levels.decode(entry) for entry in self._levels.cache.entries()]
        schemas = [self._schemas.decode(entry) for entry in self._schemas.cache.entries()]
        self._configure(levels, schemas)
        names = {level["metadata"]["name"] for level in levels} | MANDATORY
        await asyncio.gather(*(self._judge(schema, names) for schema in schemas))

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
