"""Spans for a collector of traces: made by the OpenTelemetry SDK, sent as OTLP over gRPC.

The SDK samples, numbers and batches spans; a thread of its own hands batches over. They leave by this server's own
gRPC client, so that connections take the way that ``--egress-selector-config-file`` has for the control plane. A
collector that is away is asked again for a minute; what it has not taken by then is dropped and logged, and requests
never wait for any of it.

Imported only where traces are asked for: the SDK is an extra (``pip install 'pilothouse[tracing]'``).
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Final

from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult
from opentelemetry.sdk.trace.sampling import ALWAYS_OFF, ParentBased, TraceIdRatioBased
from opentelemetry.trace import Link, SpanKind, Status, StatusCode, Tracer, get_current_span, set_span_in_context
from opentelemetry.trace import Span as TelemetrySpan
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from pilothouse.machinery.spans import Fields, LazyFields, resolved
from pilothouse.net.grpc import Channel, RpcError

if TYPE_CHECKING:
    from opentelemetry.context import Context

logger = logging.getLogger(__name__)
_METHOD: Final = "/opentelemetry.proto.collector.trace.v1.TraceService/Export"
_SCOPE: Final = "pilothouse"
_CALL_SECONDS: Final = 10.0
_FIRST_PAUSE_SECONDS: Final = 1.0
_MOST_PAUSE_SECONDS: Final = 30.0
_PATIENCE_SECONDS: Final = 60.0
_CLOSE_SECONDS: Final = 5.0
_AGAIN: Final = frozenset({"CANCELLED", "DEADLINE_EXCEEDED", "ABORTED", "OUT_OF_RANGE", "UNAVAILABLE", "DATA_LOSS"})
_CONTEXT: Final = TraceContextTextMapPropagator()
_GIVEN: Final = ("traceparent", "tracestate")


class ExportedSpan:
    """One span of the SDK's, as ``machinery.spans`` wants it."""

    __slots__ = ("_span", "_started", "_tracer")

    def __init__(self, tracer: Tracer, span: TelemetrySpan, started: int = 0) -> None:
        self._tracer, self._span, self._started = tracer, span, started

    def child(self, name: str, fields: LazyFields) -> ExportedSpan:
        """A span that begins now within this one."""
        context = set_span_in_context(self._span)
        return ExportedSpan(self._tracer, self._tracer.start_span(name, context, attributes=resolved(fields)))

    def past(self, name: str, seconds: float) -> None:
        """A child that began with it and lasted so long."""
        context = set_span_in_context(self._span)
        span = self._tracer.start_span(name, context, start_time=self._started)
        span.end(self._started + _nanoseconds(seconds))

    def event(self, name: str, fields: Fields) -> None:
        """Something happened now."""
        self._span.add_event(name, fields)

    def add(self, fields: Fields) -> None:
        """More is known of it now."""
        self._span.set_attributes(fields)

    def fail(self) -> None:
        """It is an error of the server's."""
        self._span.set_status(Status(StatusCode.ERROR))

    def end(self, error: BaseException | None) -> None:
        """It is over; with an error, it failed."""
        if error is not None:
            self._span.set_status(Status(StatusCode.ERROR, type(error).__name__))
        self._span.end()

    def headers(self) -> dict[str, str]:
        """What tells a peer that its work is part of this."""
        carrier: dict[str, str] = {}
        _CONTEXT.inject(carrier, set_span_in_context(self._span))
        return carrier


class TraceExport:
    """Traces of one process. To be made on the event loop; spans leave from ``start`` on."""

    def __init__(self, channel: Channel, rate_per_million: int, identity: str) -> None:
        """A trace that nobody else has decided about is sampled at a rate; at 0 only those that others sample are."""
        root = TraceIdRatioBased(rate_per_million / 1_000_000) if rate_per_million else ALWAYS_OFF
        resource = Resource({"service.name": "apiserver", "service.instance.id": identity})
        self._exporter = CollectorExporter(channel)
        self._provider = TracerProvider(ParentBased(root), resource, shutdown_on_exit=False)
        self._tracer = self._provider.get_tracer(_SCOPE)

    def start(self) -> None:
        """Begin to send spans."""
        self._exporter.start()
        self._provider.add_span_processor(BatchSpanProcessor(self._exporter))

    def begin(
        self, name: str, headers: Mapping[bytes, bytes], fields: Callable[[], Fields], trusted: bool, seconds: float
    ) -> ExportedSpan | None:
        """The span of a request that came ``seconds`` ago, None if it is not sampled."""
        started = time.time_ns() - _nanoseconds(seconds)
        context = _read_context(headers) if b"traceparent" in headers else None
        links: Sequence[Link] = ()
        if context is not None and not trusted:
            named = get_current_span(context).get_span_context()
            context, links = None, [Link(named)] if named.is_valid else ()
        span = self._tracer.start_span(name, context, SpanKind.SERVER, None, links, started)
        if not span.is_recording():
            return None
        span.set_attributes(fields())
        return ExportedSpan(self._tracer, span, started)

    async def close(self) -> None:
        """Send what is left, if the collector takes it in time."""
        self._exporter.hurry()
        await asyncio.to_thread(self._provider.shutdown)
        await self._exporter.close()


class CollectorExporter(SpanExporter):
    """Sends batches. ``export`` is called by the SDK's thread, everything else on the event loop."""

    def __init__(self, channel: Channel) -> None:
        self._channel = channel
        self._loop: asyncio.AbstractEventLoop | None = None
        self._patience = _PATIENCE_SECONDS

    def start(self) -> None:
        """Send from this loop."""
        self._loop = asyncio.get_running_loop()

    def hurry(self) -> None:
        """Give up sooner from now on: the server is about to stop."""
        self._patience = _CLOSE_SECONDS

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        """Send a batch and wait until it is taken or given up."""
        assert self._loop is not None
        message = encode_spans(spans).SerializeToString()
        asyncio.run_coroutine_threadsafe(self._send(message, len(spans)), self._loop).result()
        return SpanExportResult.SUCCESS

    async def _send(self, message: bytes, number: int) -> None:
        began, pause = time.monotonic(), _FIRST_PAUSE_SECONDS
        while True:
            try:
                await self._channel.unary(_METHOD, message, min(_CALL_SECONDS, self._patience))
            except RpcError as error:
                if error.code not in _AGAIN or time.monotonic() - began + pause > self._patience:
                    logger.warning("traces export: %d spans are dropped: %s", number, error)
                    return
            else:
                return
            await asyncio.sleep(pause)
            pause = min(pause * 2, _MOST_PAUSE_SECONDS)

    async def close(self) -> None:
        """End the connection."""
        await self._channel.close()


def _read_context(headers: Mapping[bytes, bytes]) -> Context:
    given = {name: headers[name.encode()].decode("latin-1") for name in _GIVEN if name.encode() in headers}
    return _CONTEXT.extract(given)


def _nanoseconds(seconds: float) -> int:
    return int(seconds * 1_000_000_000)
