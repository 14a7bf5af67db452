"""Counting requests and their durations, and the access log, which needs the same figures."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Final, NamedTuple

from pilothouse.endpoints.request import APIRequest
from pilothouse.filters.access_log import SLOW_SECONDS, log_answer, logger
from pilothouse.filters.request_metrics import Key, RequestMetrics
from pilothouse.filters.types import Handler
from pilothouse.filters.upgrades import until_ended, until_lost
from pilothouse.machinery.metrics import OTHER, Value
from pilothouse.machinery.verbosity import REQUESTS
from pilothouse.net.messages import Response

_VERBS: Final = {"list": "LIST", "watch": "WATCH", "deletecollection": "DELETECOLLECTION"}
_METHODS: Final = {"HEAD": "GET", **{each: each for each in ("CONNECT", "DELETE", "GET", "PATCH", "POST", "PUT")}}

_VALIDATED: Final = frozenset({"POST", "PUT", "PATCH"})
_VALIDATIONS: Final = frozenset({"Ignore", "Warn", "Strict"})
_READS: Final = frozenset({"GET", "LIST", "WATCH"})
_APPLY: Final = frozenset({b"application/apply-patch+yaml", b"application/apply-patch+cbor"})


def with_instrumentation(following: Handler, metrics: RequestMetrics) -> Handler:
    """Measure every request that is served."""
    clock, observe, is_logged = time.perf_counter, metrics.observe, logger.isEnabledFor

    async def handle(request: APIRequest) -> Response:
        started = clock()
        code = 500
        size: int | None = 0
        response: Response | None = None
        try:
            response = await following(request)
            code = response.status
            size = len(response.body) or response.length
            return response
        finally:
            info = request.info
            counted = info.counted
            if type(counted) is not Counted:
                counted = info.counted = counted_as(request)
            key, validation = counted
            if key[0] == "PATCH" and validation is not None and request.headers.get(b"content-type") in _APPLY:
                key = ("APPLY", *key[1:])
            if request.weight and info.is_resource and key[0] not in _READS:
                metrics.observe_body(info, request.weight)
            seconds = clock() - started
            nowhere = info.fitting is None
            observe(key, code, seconds, size, request.queued_seconds, validation, leads_nowhere=nowhere)
            if size is None and response is not None and response.parts is not None:
                response.parts = _counted(response.parts, partial(metrics.observe_size, key))
            if request.removed_release is not None:
                metrics.note_deprecated(info, request.removed_release)
            if seconds > SLOW_SECONDS or is_logged(REQUESTS):
                log_answer(request, seconds, code)
            if response is not None and (response.stream is not None or response.upgrade is not None):
                _count_while_it_lasts(request, response, metrics.long_running(key))

    return handle


class Counted(NamedTuple):
    """As what requests of one line are counted, but for what their headers say."""

    key: Key
    validation: str | None
    """The field validation that a write asked for; None for what is no such write."""


def counted_as(request: APIRequest) -> Counted:
    """The labels of a request."""
    info = request.info
    scope = ""
    if info.is_resource:
        scope = "resource" if info.name else "namespace" if info.namespace else "cluster"
    verb, dry_run = _VERBS.get(info.verb) or _METHODS.get(request.method, OTHER), ""
    validation = None
    if info.is_resource and verb not in _READS:
        dry_run = _dry_run(request) if request.query else ""
        if verb in _VALIDATED:
            validation = _field_validation(request) if request.query else ""
    return Counted((verb, dry_run, info.group, info.version, info.resource, info.subresource, scope), validation)


def _counted(parts: Iterable[bytes], tell: Callable[[int], None]) -> Iterator[bytes]:
    """All parts, and how many bytes of them were taken when nobody takes any more."""
    size = 0
    try:
        for part in parts:
            size += len(part)
            yield part
    finally:
        tell(size)


def _field_validation(request: APIRequest) -> str:
    """The label: what was asked for, nothing, or that it was something else."""
    if "fieldValidation" not in request.query:
        return ""
    asked = request.options.all("fieldValidation")
    return asked[0] if len(asked) == 1 and asked[0] in _VALIDATIONS else "invalid"


def _dry_run(request: APIRequest) -> str:
    """The label: ``All``, nothing, or that it was something else."""
    if "dryRun" not in request.query:
        return ""
    asked = set(request.options.all("dryRun"))
    return ",".join(sorted(asked)) if asked <= {"All"} else "invalid"


def _count_while_it_lasts(request: APIRequest, response: Response, series: Value) -> None:
    if request.method == "HEAD":
        return
    series.value += 1
    lasting = True

    def end() -> None:
        nonlocal lasting
        if lasting:
            lasting = False
            series.value -= 1

    if response.upgrade is not None:
        response.upgrade = until_lost(response.upgrade, end)
    elif response.stream is not None:
        request.on_disconnect(end)  # the client may go before the stream begins
        response.stream = until_ended(response.stream, end)
