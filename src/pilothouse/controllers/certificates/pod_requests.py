"""Deletes requests for pod certificates after a quarter of an hour: whoever wanted one has it by then."""

from __future__ import annotations

from typing import Final

from pilothouse.controllers.manager.context import ControllerContext
from pilothouse.controllers.runtime.controller import Periodic
from pilothouse.machinery import errors
from pilothouse.machinery.times import parse_time

_KEPT_SECONDS: Final = 900.0
_ROUND_SECONDS: Final = 300.0


def start(context: ControllerContext) -> None:
    """Start the cleaner."""
    requests = context.informers.of("certificates.k8s.io", "v1", "podcertificaterequests")
    client = context.client("podcertificaterequestcleaner").of("certificates.k8s.io", "v1", "podcertificaterequests")

    async def clean() -> None:
        await requests.wait_synced()
        now = context.clock.now()
        for request in requests.lister.list():
            metadata = request["metadata"]
            if now.since(parse_time(metadata["creationTimestamp"])) < _KEPT_SECONDS:
                continue
            try:
                await client.delete(metadata["namespace"], metadata["name"], uid=metadata["uid"])
            except (errors.NotFound, errors.Conflict):
                continue

    Periodic("podcertificaterequest-cleaner-controller", clean, _ROUND_SECONDS, clock=context.clock).start(
        context.supervisor
    )
