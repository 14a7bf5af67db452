"""One request on its way through the chain, noted while somebody looks.

What is noted is who, what, where and how long. Bodies, headers and unknown parameters never are: they may hold secrets.
Of texts that clients choose only the beginning is noted.
Filters are timed by probes; what happens behind them is told by spans (``machinery/spans.py``), of which a trace is the
outermost: those of verbs, of calls to the store and to webhooks, and, while somebody looks, of each admission plug-in.
"""

from __future__ import annotations

import time
from contextvars import ContextVar
from time import perf_counter
from typing import Any, Final

from pilothouse.admission.chain import Step
from pilothouse.audit.sources import source_addresses
from pilothouse.endpoints.admission import Attributes
from pilothouse.endpoints.request import APIRequest
from pilothouse.filters.types import Handler
from pilothouse.machinery.spans import Exported, Fields, LazyFields, Span
from pilothouse.net.messages import Response

HANDLER: Final = "handler"
ADMISSION: Final = "admission"
STORAGE: Final = "storage"
_ALWAYS: Final = float("inf")
_MOST_STEPS: Final = 100
_LONGEST: Final = 300
_SHOWN: Final = frozenset({
    "allowWatchBookmarks", "container", "continue", "dryRun", "fieldManager", "fieldSelector", "fieldValidation",
    "follow", "force", "gracePeriodSeconds", "includeObject", "labelSelector", "limit", "pretty", "propagationPolicy",
    "resourceVersion", "resourceVersionMatch", "sendInitialEvents", "tailLines", "timeout", "timeoutSeconds", "watch",
})  # fmt: skip
"""Parameters whose values are shown; of all others (commands, paths of proxies) only the names."""
_STORE_CALLS: Final = ("Create ", "GuaranteedUpdate ", "Delete ", "Get ", "List(")
"""What spans of calls to a store begin with; the kind of the store follows."""


class TraceStep:
    """Something that lasts, within the handler."""

    __slots__ = ("_began", "_trace", "depth", "detail", "failed", "kind", "name", "offset", "seconds")

    def __init__(self, trace: Trace, depth: int, name: str, fields: LazyFields) -> None:
        known = {} if callable(fields) else fields
        self._trace, self.depth, self.name = trace, depth, name
        self.detail = str(known.get("phase") or known.get("webhook") or "")[:_LONGEST]
        self.kind = ADMISSION if "phase" in known else STORAGE if _is_store_call(name, known) else ""
        self._began = perf_counter()
        self.offset = self._began - trace.began
        self.seconds, self.failed = 0.0, False

    def child(self, name: str, fields: LazyFields) -> Exported:
        """A step within this one."""
        return self._trace.begin(self.depth + 1, name, fields)

    def event(self, name: str, fields: Fields) -> None:
        """Moments are not shown."""

    def end(self, error: BaseException | None) -> None:
        """It is done."""
        self.seconds, self.failed = perf_counter() - self._began, error is not None

    def headers(self) -> dict[str, str]:
        """Nobody else is told."""
        return {}


class Trace:
    """What is known of one request so far; to spans, what they are told to."""

    def __init__(self, request: APIRequest) -> None:
        self._request, self._started, self.began = request, time.time(), perf_counter()
        self.spent: dict[str, float] = {}
        """Seconds from entering each filter to leaving it, innermost first."""
        self.steps: list[TraceStep] = []
        self._ended = False

    def begin(self, depth: int, name: str, fields: LazyFields) -> TraceStep:
        """A step begins. Work that goes on beside the request, or after it, is not its own, and there is a bound."""
        made = TraceStep(self, depth, name, fields)
        if not self._ended and len(self.steps) < _MOST_STEPS:
            self.steps.append(made)
        return made

    def child(self, name: str, fields: LazyFields) -> Exported:
        """A step of the handler."""
        return self.begin(0, name, fields)

    def event(self, name: str, fields: Fields) -> None:
        """Moments are not shown."""

    def end(self, error: BaseException | None) -> None:
        """The handler is done, as its probe knows."""

    def headers(self) -> dict[str, str]:
        """Nobody else is told."""
        return {}

    def record(self, code: int, size: int, server: str, level: str) -> dict[str, Any]:
        """The trace as those who look get it: seconds are of the filters alone, without what is inside of them."""
        self._ended = True
        request, info = self._request, self._request.info
        user, names = getattr(request, "user", None), list(self.spent)
        inner = dict(zip(names[1:], names, strict=False))
        return {
            "id": request.audit_id[:_LONGEST],
            "time": self._started,
            "method": request.method[:_LONGEST],
            "verb": info.verb[:_LONGEST],
            "path": request.path[:_LONGEST],
            "query": shown_query(request),
            "resource": info.resource[:_LONGEST],
            "subresource": info.subresource[:_LONGEST],
            "group": info.group[:_LONGEST],
            "namespace": info.namespace[:_LONGEST],
            "name": info.name[:_LONGEST],
            "user": "" if user is None else user.name[:_LONGEST],
            "agent": request.headers.get(b"user-agent", b"")[:_LONGEST].decode("latin-1"),
            "from": (source_addresses(request) or [""])[-1],
            "code": code,
            "bytes": size,
            "server": server if HANDLER in self.spent else "",
            "level": level,
            "queued": request.queued_seconds,
            "seconds": self.spent[names[-1]] if names else 0.0,
            "filters": [
                (name, self.spent[name] - self.spent.get(inner.get(name, ""), 0.0)) for name in reversed(names)
            ],
            "steps": [
                (step.depth, step.kind, step.name[:_LONGEST], step.detail, step.offset, step.seconds, step.failed)
                for step in self.steps
            ],
        }


CURRENT: Final[ContextVar[Trace | None]] = ContextVar("console trace", default=None)


def _is_store_call(name: str, fields: Fields) -> bool:
    return "key" in fields and name.startswith(_STORE_CALLS)


def shown_query(request: APIRequest) -> str:
    """The parameters, with the values of those that are harmless."""
    if not request.query:
        return ""
    values = request.options.values
    parts = [f"{name}={value}" if name in _SHOWN else f"{name}=…" for name, all in values.items() for value in all]
    return "&".join(parts)[:_LONGEST]


def probe(name: str, following: Handler) -> Handler:
    """Note how long a filter and all behind it take."""

    async def handle(request: APIRequest) -> Response:
        trace, started = CURRENT.get(), perf_counter()
        try:
            return await following(request)
        finally:
            if trace is not None:
                trace.spent[name] = perf_counter() - started

    return handle


def spanned(following: Handler) -> Handler:
    """Have the spans of the handler tell the trace."""

    async def handle(request: APIRequest) -> Response:
        with Span(HANDLER, threshold=_ALWAYS, exported=CURRENT.get()):
            return await following(request)

    return handle


def observe_step(plugin: str, phase: str, step: Step) -> Step:
    """Make a span of a step of admission."""

    async def observed(attributes: Attributes) -> None:
        with Span(plugin, {"phase": phase}, threshold=_ALWAYS):
            await step(attributes)

    return observed
