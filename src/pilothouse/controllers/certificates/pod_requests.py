"""Deletes requests for pod certificates after a quarter of an hour: whoever wanted one has it by then."""

from __future__ import annotations

from contextlib import suppress
from typing import Final

from pilothouse.controllers.manager.context import ControllerContext
from pilothouse.controllers.runtime.batches import attempt_all
from pilothouse.controllers.runtime.controller import Periodic
from pilothouse.machinery import errors
from pilothouse.machinery.objects import Object
from pilothouse.machinery.times import Instant, parse_time

_KEPT_SECONDS: Final = 900.0
_ROUND_SECONDS: Final = 300.0


def start(context: ControllerContext) -> None:
    """Start the cleaner."""
    requests = context.informers.of("certificates.k8s.io", "v1", "podcertificaterequests")
    client = context.client("podcertificaterequestcleaner").of("certificates.k8s.io", "v1", "podcertificaterequests")

    async def clean() -> None:
        await requests.wait_synced()
        now = context.clock.now()
        await attempt_all([each["metadata"] for each in requests.lister.list() if is_old(each, now)], delete)

    async def delete(metadata: Object) -> None:
        with suppress(errors.NotFound, errors.Conflict):
            await client.delete(metadata["namespace"], metadata["name"], uid=metadata["uid"])

    def is_old(request: Object, now: Instant) -> bool:
        return now.since(parse_time(request["metadata"]["creationTimestamp"])) >= _KEPT_SECONDS

    Periodic("podcertificaterequest-cleaner-controller", clean, _ROUND_SECONDS, clock=context.clock).start(
        context.supervisor
    )
