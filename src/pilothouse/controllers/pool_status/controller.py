"""Each request is answered once, from what is known then; an answer is kept for an hour, a question for a day.

Where slices of a pool are yet to be published the answer waits for them, some seconds at the most.
"""

from __future__ import annotations

import contextlib
from typing import Final

from pilothouse.controllers.manager.context import ControllerContext
from pilothouse.controllers.pool_status.pools import pool_statuses
from pilothouse.controllers.runtime.batches import attempt_all
from pilothouse.controllers.runtime.controller import Controller, Periodic
from pilothouse.controllers.runtime.indexer import Key, copy_of, key_of
from pilothouse.machinery import errors
from pilothouse.machinery.objects import Object
from pilothouse.machinery.supervision import Supervisor
from pilothouse.machinery.times import Instant, format_time, parse_time

_NAME: Final = "resourcepoolstatusrequest-controller"
_MOST_TRIES: Final = 5
_CLEAN_SECONDS: Final = 600.0
_ANSWERED_SECONDS: Final = 3600.0
_PENDING_SECONDS: Final = 24 * 3600.0
_MOST_POOLS: Final = 100
"""How many pools an answer has where the request does not say."""


class PoolIncomplete(Exception):
    """A pool has slices that are not there yet."""


class PoolStatus:
    """See the module's docstring. Keys are requests."""

    def __init__(self, context: ControllerContext) -> None:
        informers, self._clock = context.informers, context.clock
        self._requests = informers.of("resource.k8s.io", "v1alpha3", "resourcepoolstatusrequests")
        self._slices = informers.of("resource.k8s.io", "v1", "resourceslices")
        self._claims = informers.of("resource.k8s.io", "v1", "resourceclaims")
        self._rules = informers.of("resource.k8s.io", "v1", "devicetaintrules")
        self._client = context.client(_NAME).of("resource.k8s.io", "v1alpha3", "resourcepoolstatusrequests")
        waits = [self._requests, self._slices, self._claims, self._rules]
        self._controller: Controller[Key] = Controller(_NAME, self._reconcile, wait_for=waits, clock=context.clock)
        self._cleaning = Periodic(f"{_NAME}, cleaning", self._clean, _CLEAN_SECONDS, clock=context.clock)
        self._requests.add_handler(self._seen, lambda old, new: self._seen(new), name=_NAME)

    def start(self, supervisor: Supervisor) -> None:
        """Begin to answer."""
        self._controller.start(supervisor)
        self._cleaning.start(supervisor)

    def _seen(self, request: Object) -> None:
        if not request.get("status"):
            self._controller.queue.add(key_of(request))

    async def _reconcile(self, key: Key) -> None:
        request = self._requests.lister.get(*key)
        if request is None or request.get("status"):
            return
        status = self._status(request)
        if any(_is_incomplete(pool) for pool in status["pools"]):
            if self._controller.queue.num_requeues(key) < _MOST_TRIES:
                raise PoolIncomplete("incomplete pools detected, requeueing")
            return
        try:
            await self._client.update_status({**copy_of(request), "status": status})
        except errors.NotFound:
            return

    def _status(self, request: Object) -> Object:
        spec = request["spec"]
        pools = pool_statuses(spec, self._slices.lister.list(), self._claims.lister.list(), self._rules.lister.list())
        shown = pools[: spec.get("limit", _MOST_POOLS)]
        incomplete = sum("validationError" in pool for pool in shown)
        message = f"Calculated status for {len(shown)} pools" + (f" ({incomplete} incomplete)" if incomplete else "")
        condition = {
            "type": "Complete",
            "status": "True",
            "lastTransitionTime": format_time(self._clock.now()),
            "reason": "CalculationComplete",
            "message": message,
        }
        return {"poolCount": len(pools), "pools": shown, "conditions": [condition]}

    async def _clean(self) -> None:
        await self._requests.wait_synced()
        now = self._clock.now()
        await attempt_all([each for each in self._requests.lister.list() if is_over(each, now)], self._delete)

    async def _delete(self, request: Object) -> None:
        with contextlib.suppress(errors.NotFound, errors.Conflict):
            await self._client.delete("", request["metadata"]["name"], uid=request["metadata"]["uid"])


def _is_incomplete(pool: Object) -> bool:
    return str(pool.get("validationError") or "").startswith("PoolIncomplete:")


def is_over(request: Object, now: Instant) -> bool:
    """Whether a request has been there for long enough."""
    created = request["metadata"]["creationTimestamp"]
    if not request.get("status"):
        return now.since(parse_time(created)) > _PENDING_SECONDS
    settled = (each for each in request["status"].get("conditions") or () if each["type"] in ("Complete", "Failed"))
    since = next((each["lastTransitionTime"] for each in settled), created)
    return now.since(parse_time(since)) > _ANSWERED_SECONDS
