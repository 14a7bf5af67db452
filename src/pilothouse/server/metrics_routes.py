"""The pages for Prometheus: as text or as messages, of some families or all, of one process or several.

Messages hold what text does not: histograms with native buckets. Whoever sends a DELETE has counting begin anew.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from functools import cache, partial
from typing import Any, Final, NamedTuple, Protocol

from pilothouse.endpoints.output.compression import gzipped
from pilothouse.endpoints.request import APIRequest
from pilothouse.machinery.joined_metrics import ways_of_joining
from pilothouse.machinery.metric_messages import Encode, compact_text, delimited, encode_page, families, text
from pilothouse.machinery.metrics import Instrument, read_aside, render_pieces, reset
from pilothouse.net.messages import Response
from pilothouse.server.generic import GenericAPIServer
from pilothouse.server.route_handlers import RouteHandler

Page = Callable[[bool], Awaitable[bytes]]
"""Takes whether native buckets are wanted."""
Asking = Callable[..., Awaitable[list[Any]]]
_TEXT: Final = "text/plain; version=0.0.4; charset=utf-8"
_MESSAGES: Final = "application/vnd.google.protobuf"
_FAMILY: Final = "io.prometheus.client.MetricFamily"
_ENCODINGS: Final[dict[str, Encode]] = {"delimited": delimited, "text": text, "compact-text": compact_text}
_ESCAPINGS: Final = ("allow-utf-8", "underscores", "dots", "values")
_MOST_CLAUSES: Final = 64


class Processes(Protocol):
    """Those that serve together."""

    def join(self, name: str, page: Page, joining: Callable[[], Mapping[str, str]]) -> Page:
        """A page of this process as one of all."""
        ...

    def gather(self, name: str, answer: Callable[[], Awaitable[Any]]) -> Asking:
        """Answer a question here, and give what asks all."""
        ...


class OneProcess:
    """Nobody else serves."""

    def join(self, name: str, page: Page, joining: Callable[[], Mapping[str, str]]) -> Page:
        return page

    def gather(self, name: str, answer: Callable[[], Awaitable[Any]]) -> Asking:
        async def gathered() -> list[Any]:
            return [await answer()]

        return gathered


class Form(NamedTuple):
    """What the client takes."""

    content_type: bytes
    encode: Encode | None = None
    """Of messages; text has none."""


def install_metrics(
    server: GenericAPIServer,
    instruments: Iterable[Instrument],
    processes: Processes | None = None,
    *,
    native: bool = True,
) -> None:
    """Add them to the first server of a chain. Without ``native``, histograms have the declared buckets alone."""
    processes = processes or OneProcess()
    for path, shown in (("/metrics", instruments), ("/metrics/slis", server.checks.instruments())):
        page = processes.join(path, _page(shown), partial(ways_of_joining, shown))
        begin_anew = processes.gather(f"{path} reset", partial(_reset, shown))
        server.routes.add(path, _serving(page, begin_anew, native=native))


def _page(instruments: Iterable[Instrument]) -> Page:
    async def page(native: bool) -> bytes:
        await asyncio.to_thread(read_aside, tuple(instruments))
        return await _whole(render_pieces(instruments, native=native))

    return page


async def _whole(pieces: Iterator[bytes]) -> bytes:
    made = []
    for piece in pieces:
        made.append(piece)
        await asyncio.sleep(0)  # a page may be long
    return b"".join(made)


async def _reset(instruments: Iterable[Instrument]) -> None:
    for each in instruments:
        reset(each)


def _serving(page: Page, begin_anew: Asking, *, native: bool) -> RouteHandler:
    began = int(time.time())
    started = (b"process-start-time-unix", b"%d" % began)

    async def serve(request: APIRequest) -> Response:
        if request.method == "DELETE":
            await begin_anew()
            return Response(200, b"metrics reset\n", b"text/plain; charset=utf-8")
        form = negotiated(request.headers.get(b"accept", b"").decode("latin-1"))
        whole = await page(native and form.encode is not None)
        if names := set(request.options.all("name[]")):
            whole = b"".join(lines for name, lines in families(whole) if name in names)
        if form.encode is not None:
            whole = await _whole(encode_page(whole, form.encode, began))
        if not whole:
            return Response(200, content_type=b"")
        headers = [started]
        if takes_gzip(request.headers.get(b"accept-encoding", b"").decode("latin-1")):
            whole = await asyncio.to_thread(gzipped, whole)
            headers.append((b"content-encoding", b"gzip"))
        return Response(200, whole, form.content_type, headers)

    return serve


@cache
def _form(encoding: str, escaping: str) -> Form:
    if not encoding:
        return Form(f"{_TEXT}; escaping={escaping}".encode())
    kind = f"{_MESSAGES}; proto={_FAMILY}; encoding={encoding}; escaping={escaping}"
    return Form(kind.encode(), _ENCODINGS[encoding])


def negotiated(accept: str) -> Form:
    """The form that the header asks for first; text where it asks for none there is.

    How odd names would be escaped is said although none is odd, for clients that were told to look for it.
    """
    escaping = "underscores"
    for _, kind, parameters in sorted(_clauses(accept), key=lambda clause: -clause[0]):
        if parameters.get("escaping") in _ESCAPINGS:
            escaping = parameters["escaping"]
        if kind == _MESSAGES and parameters.get("proto") == _FAMILY and parameters.get("encoding") in _ENCODINGS:
            return _form(parameters["encoding"], escaping)
        if kind == "text/plain" and parameters.get("version", "0.0.4") in ("0.0.4", ""):
            break
    return _form("", escaping)


def _clauses(accept: str) -> list[tuple[float, str, dict[str, str]]]:
    """What a header takes: how much it is wanted, its name, and its parameters."""
    found = []
    for clause in accept.split(",", _MOST_CLAUSES)[:_MOST_CLAUSES]:
        kind, *pairs = clause.split(";")
        parameters = {}
        for pair in pairs:
            name, _, value = pair.partition("=")
            if value and "=" not in value:
                parameters[name.strip(" ")] = value.strip(" ")
        found.append((_quality(parameters.pop("q", "1")), kind.strip(" "), parameters))
    return found


def takes_gzip(accepted: str) -> bool:
    """Whether gzip is wanted more than the page as it is."""
    best, wanted = -1.0, ""
    clauses = _clauses(accepted)
    for offered in ("identity", "gzip"):
        for weight, name, _ in clauses:
            if name in (offered, "*") and weight > best:
                best, wanted = weight, offered
    return wanted == "gzip" and best > 0


def _quality(written: str) -> float:
    try:
        return float(written)
    except ValueError:
        return 0.0
