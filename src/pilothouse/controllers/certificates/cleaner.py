"""Deletes signing requests that nobody needs: an hour after they were settled, a day if nobody settles them."""

from __future__ import annotations

import contextlib
from typing import Final

from pilothouse.apis.certificates.pem import blocks
from pilothouse.apis.certificates.x509 import read_certificate
from pilothouse.controllers.certificates.conditions import conditions_of, has, is_issued
from pilothouse.controllers.manager.context import ControllerContext
from pilothouse.controllers.runtime.batches import attempt_all
from pilothouse.controllers.runtime.controller import Periodic
from pilothouse.machinery import base64_text, errors
from pilothouse.machinery.objects import Object
from pilothouse.machinery.times import Instant, parse_time

_HOUR: Final = 3600.0
_DAY: Final = 24 * _HOUR


def start(context: ControllerContext) -> None:
    """Start the cleaner."""
    requests = context.informers.of("certificates.k8s.io", "v1", "certificatesigningrequests")
    client = context.client("certificate-controller").of("certificates.k8s.io", "v1", "certificatesigningrequests")

    async def delete(request: Object) -> None:
        with contextlib.suppress(errors.NotFound, errors.Conflict):
            await client.delete("", request["metadata"]["name"], uid=request["metadata"]["uid"])

    async def clean() -> None:
        await requests.wait_synced()
        now = context.clock.now()
        await attempt_all([each for each in requests.lister.list() if is_over(each, now)], delete)

    Periodic("certificatesigningrequest-cleaner-controller", clean, _HOUR, clock=context.clock).start(
        context.supervisor
    )


def is_over(request: Object, now: Instant) -> bool:
    """Whether nobody needs a request any more."""
    conditions = conditions_of(request)
    if not conditions:
        return now.since(parse_time(request["metadata"]["creationTimestamp"])) > _DAY
    if has(request, "Approved") and is_issued(request) and _has_expired(request, now):
        return True
    limits = {"Denied": _HOUR, "Failed": _HOUR, "Approved": _HOUR if is_issued(request) else _DAY}
    return any(
        each.get("lastUpdateTime") and now.since(parse_time(each["lastUpdateTime"])) > limits[each["type"]]
        for each in conditions
        if each["type"] in limits
    )


def _has_expired(request: Object, now: Instant) -> bool:
    block = next(blocks(base64_text.decode(request["status"]["certificate"])), None)
    certificate = None if block is None else read_certificate(block.content)
    return certificate is not None and certificate.not_valid_after_utc.timestamp() < now.seconds
