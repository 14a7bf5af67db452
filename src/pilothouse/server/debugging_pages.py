"""``/statusz`` and ``/flagz``: what runs here and how it was started, for people who look for an error.

Plain text for people, without any promise about its form; JSON and YAML only when the client names the kind it expects
(``Accept: application/json;as=Statusz;v=v1beta1;g=config.k8s.io``), and 406 for anything else.
"""

from __future__ import annotations

import datetime
import platform
import time
from collections.abc import Callable
from typing import Any, Final

from pilothouse import KUBERNETES_VERSION
from pilothouse.endpoints.negotiation import JSON, YAML, Media, wants_pretty
from pilothouse.endpoints.request import APIRequest
from pilothouse.endpoints.responses import PLAIN_TEXT, encode_object, error_response
from pilothouse.machinery import errors
from pilothouse.machinery.times import Instant, format_time
from pilothouse.net.messages import Response
from pilothouse.server.generic import GenericAPIServer
from pilothouse.server.route_handlers import RouteHandler

COMPONENT: Final = "apiserver"
_TEXT: Final = "text/plain"
_ACCEPTED: Final = (JSON, YAML, _TEXT)
_GROUP: Final = "config.k8s.io"
_VERSIONS: Final = ("v1beta1", "v1alpha1")
_DEPRECATED: Final = "v1alpha1"
_NOT_FOR_DEBUGGING: Final = frozenset({"/apis", "/api", "/openid", "/openapi", "/.well-known"})
_HEADING: Final = """
{component} {page}
Warning: This endpoint is not meant to be machine parseable, has no formatting compatibility guarantees and is for \
debugging purposes only.
"""

Fields = Callable[[], dict[str, Any]]
Text = Callable[[dict[str, Any]], str]


def install_debugging_pages(
    server: GenericAPIServer, flags: Callable[[], dict[str, str]], gates: frozenset[str], emulated: str
) -> None:
    """Add the pages whose gates are on to a chain's first server. ``flags``: every flag's name and value as text."""
    started = time.time()

    def status() -> dict[str, Any]:
        return _status(started, emulated, server.paths())

    if "ComponentFlagz" in gates:
        server.routes.add("/flagz", _page("flagz", "Flagz", lambda: {"flags": flags()}, _flags_text))
    if "ComponentStatusz" in gates:
        server.routes.add("/statusz", _page("statusz", "Statusz", status, _status_text))


def _status(started: float, emulated: str, paths: list[str]) -> dict[str, Any]:
    folders = {"/" + path.split("/")[1] for path in paths if path != "/"}
    return {
        "startTime": format_time(Instant(int(started))),
        "uptimeSeconds": max(0, int(time.time() - started)),
        "goVersion": f"python{platform.python_version()}",
        "binaryVersion": f"{KUBERNETES_VERSION}.0",
        "emulationVersion": emulated,
        "paths": sorted(folders - _NOT_FOR_DEBUGGING),
    }


def _status_text(status: dict[str, Any]) -> str:
    from html import escape  # only this page needs it

    up = status["uptimeSeconds"]
    return (
        f"\nStarted: {_unix_date(status['startTime'])}"
        f"\nUp: {up // 3600} hr {up // 60 % 60:02} min {up % 60:02} sec"
        f"\nGo version: {status['goVersion']}"
        f"\nBinary version: {status['binaryVersion']}"
        f"\nEmulation version: {status['emulationVersion']}"
        f"\nPaths: {escape(' '.join(status['paths']))}\n"
    )


def _unix_date(moment: str) -> str:
    return datetime.datetime.fromisoformat(moment).strftime("%a %b %e %H:%M:%S UTC %Y")


def _flags_text(content: dict[str, Any]) -> str:
    return "".join(f"{name}={value}\n" for name, value in sorted(content["flags"].items()))


def _page(page: str, kind: str, fields: Fields, text: Text) -> RouteHandler:
    async def serve(request: APIRequest) -> Response:
        chosen = choose(request.headers.get(b"accept", b"").decode("latin-1"), kind)
        if chosen is None:
            return error_response(request, errors.not_acceptable(_ACCEPTED))
        form, version = chosen
        if form == _TEXT:
            heading = _HEADING.format(component=COMPONENT, page=page)
            return Response(200, (heading + text(fields())).encode(), PLAIN_TEXT)
        obj = {"kind": kind, "apiVersion": f"{_GROUP}/{version}", "metadata": {"name": COMPONENT}, **fields()}
        headers = [(b"warning", _deprecation(page))] if version == _DEPRECATED else None
        body = encode_object(Media(form, pretty=wants_pretty(request)), obj)
        return Response(200, body, f"{form};g={_GROUP};v={version};as={kind}".encode(), headers)

    return serve


def _deprecation(page: str) -> bytes:
    return f'299 - "This version of the {page} endpoint is deprecated. Please use a newer version."'.encode()


def choose(accept: str, kind: str) -> tuple[str, str] | None:
    """(media type, version) for an Accept header, best first; None where nothing fits."""
    if not accept.strip():
        return _TEXT, ""
    for media_type, parameters in sorted(map(_clause, accept.split(",")), key=_quality, reverse=True):
        wanted = {name: parameters.get(name, "") for name in ("as", "g", "v")}
        for form in _ACCEPTED:
            if media_type not in (form, "*/*", form.split("/")[0] + "/*"):
                continue
            if form == _TEXT and not any(wanted.values()):
                return _TEXT, ""
            if form != _TEXT and wanted["as"] == kind and wanted["g"] == _GROUP and wanted["v"] in _VERSIONS:
                return form, wanted["v"]
    return None


def _clause(text: str) -> tuple[str, dict[str, str]]:
    media_type, *rest = text.split(";")
    pairs = (part.partition("=") for part in rest)
    return media_type.strip(), {name.strip(): value.strip() for name, _, value in pairs}


def _quality(clause: tuple[str, dict[str, str]]) -> float:
    try:
        return float(clause[1].get("q", 1.0))
    except ValueError:
        return 1.0
