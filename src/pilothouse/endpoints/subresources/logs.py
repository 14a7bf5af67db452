"""The log of a container, streamed from its kubelet as it is written."""

from __future__ import annotations

from typing import Any, Final
from urllib.parse import urlencode

from pilothouse.apis.resources import Resource, Subresource
from pilothouse.apis.validation import NEGATIVE
from pilothouse.endpoints.admission import Admission
from pilothouse.endpoints.negotiation import require_acceptable_stream
from pilothouse.endpoints.query import Query
from pilothouse.endpoints.request import APIRequest
from pilothouse.endpoints.scope import Endpoint, ResourceScope
from pilothouse.endpoints.subresources.connecting import choose_container, find_kubelet_of, find_pod
from pilothouse.endpoints.subresources.endpoints import StoreOf, working_endpoint
from pilothouse.endpoints.subresources.links import Links
from pilothouse.machinery import errors, times
from pilothouse.machinery.field_errors import WHOLE, FieldError, Path, forbidden, invalid, not_supported
from pilothouse.machinery.go_quote import quote
from pilothouse.machinery.gvk import GroupKind, GroupResource
from pilothouse.machinery.workers import weighed
from pilothouse.net.client import Outbound, Reply
from pilothouse.net.dialing import OutgoingError
from pilothouse.net.eager import ensure_task
from pilothouse.net.messages import Response
from pilothouse.net.reverse_proxy.forwarding import copy, read_beginning
from pilothouse.registry.store.store import Store

_LOGS: Final = GroupResource("", "pods/log")
_ALL: Final = "All"
_STREAMS: Final = (_ALL, "Stderr", "Stdout")
_NOT_POSITIVE: Final = "must be greater than 0"
_MOST_OF_AN_ERROR: Final = 50_000


def make_log_endpoint(
    resource: Resource, sub: Subresource | None, store_of: StoreOf, admission: Admission | None, links: Links
) -> Endpoint:
    """``pods/log``."""
    nodes = store_of("", "nodes")

    async def get(scope: ResourceScope, request: APIRequest) -> Response:
        return await _log(scope, request, nodes, links)

    return working_endpoint(resource, sub, store_of("", "pods"), {"get": get}, admission=admission)


async def _log(scope: ResourceScope, request: APIRequest, nodes: Store, links: Links) -> Response:
    """A pod's log; nothing (204) while it has no node."""
    require_acceptable_stream(request, "text/plain")
    is_insecure = request.options.boolean("insecureSkipTLSVerifyBackend")
    links.metrics.count_log(is_insecure=is_insecure)
    split = "PodLogsQuerySplitStreams" in scope.store.strategy.gates
    parameters = await weighed(
        len(request.query), lambda: read_log_parameters(request.info.name, request.options, split_streams=split)
    )
    pod = await find_pod(scope, request)
    container = choose_container(pod, request.options.text("container"))
    kubelet = await find_kubelet_of(pod, nodes, links)
    if kubelet is None:
        return Response(204, content_type=b"")
    if is_insecure:
        kubelet = kubelet.trusting_anybody()
    metadata, asked = pod["metadata"], urlencode(sorted(parameters.items()))
    path = f"/containerLogs/{metadata['namespace']}/{metadata['name']}/{container}" + (f"?{asked}" if asked else "")
    headers = [(b"Host", kubelet.target.authority.encode()), (b"User-Agent", b"kube-apiserver")]
    await ensure_task()
    what = f"Get {quote(kubelet.url + path)}: "
    try:
        reply = await links.client.send(kubelet.target, Outbound("GET", path.encode(), headers))
    except OutgoingError as error:
        if "x509: " in str(error):
            links.metrics.count_untrusted()
        raise errors.generic(f"{what}{error}") from None
    request.on_disconnect(reply.drop)
    if not 200 <= reply.status <= 206:
        raise await _refusal(reply, request.info.name, what)
    if request.asks_for_websocket:
        from pilothouse.endpoints.subresources.log_websocket import stream_log

        return await stream_log(request, reply)
    return Response(200, b"", b"text/plain", stream=lambda writer: copy(reply, writer))


async def _refusal(reply: Reply, name: str, what: str) -> errors.StatusError:
    """What the kubelet said, as a Status. Where it points elsewhere, nobody follows (CVE-2020-8559)."""
    if reply.status in (301, 302, 303, 307, 308) and reply.head.get(b"location"):
        await reply.abort()
        return errors.generic(f"{what}redirects forbidden")
    try:
        text = (await read_beginning(reply, _MOST_OF_AN_ERROR)).decode("utf-8", "replace")
    except OutgoingError as error:
        return errors.internal_error(str(error))
    finally:
        await reply.abort()
    if reply.status == 500:
        return errors.internal_error(text)
    if reply.status == 400:
        return errors.bad_request(text)
    return errors.server_response(reply.status, _LOGS, name, text)


def read_log_parameters(name: str, query: Query, *, split_streams: bool = False) -> dict[str, str]:
    """What to ask a kubelet for, as the client asked for it; 400 and 422 for what makes no sense."""
    numbers = {key: query.integer(key) for key in ("sinceSeconds", "tailLines", "limitBytes")}
    parameters = {key: "true" for key in ("follow", "previous", "timestamps") if query.boolean(key)}
    since = query.first("sinceTime")
    if since:
        try:
            parameters["sinceTime"] = times.format_time(times.parse_time(since))
        except times.TimeError as error:
            raise errors.bad_request(str(error)) from None
    stream = query.first("stream")
    errs = _log_errors(numbers, since)
    if split_streams:
        parameters["stream"] = stream = _ALL if stream is None else stream
        errs += _stream_errors(stream, numbers["tailLines"])
    elif stream is not None:
        errs.append(forbidden(Path("stream"), "may not be specified"))
    if errs:
        raise errors.invalid(GroupKind("", "PodLogOptions"), name, errs)
    parameters.update((key, str(number)) for key, number in numbers.items() if number is not None)
    return parameters


def _stream_errors(stream: str, lines: int | None) -> list[FieldError]:
    errs: list[FieldError] = []
    if stream not in _STREAMS:
        errs.append(not_supported(Path("stream"), stream, _STREAMS))
    if stream != _ALL and lines is not None:
        errs.append(forbidden(WHOLE, "`tailLines` and specific `stream` are mutually exclusive for now"))
    return errs


def _log_errors(numbers: dict[str, Any], since: str | None) -> list[FieldError]:
    errs: list[FieldError] = []
    seconds, lines, limit = numbers["sinceSeconds"], numbers["tailLines"], numbers["limitBytes"]
    if lines is not None and lines < 0:
        errs.append(invalid(Path("tailLines"), lines, NEGATIVE))
    if limit is not None and limit < 1:
        errs.append(invalid(Path("limitBytes"), limit, _NOT_POSITIVE))
    if seconds is not None and since:
        errs.append(forbidden(WHOLE, "at most one of `sinceTime` or `sinceSeconds` may be specified"))
    elif seconds is not None and seconds < 1:
        errs.append(invalid(Path("sinceSeconds"), seconds, _NOT_POSITIVE))
    return errs
