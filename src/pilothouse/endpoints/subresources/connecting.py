"""Endpoints that connect a client with a container through the kubelet of its node: exec, attach, port-forward, logs.

Everything up to the connection itself is decided here: which container, which node, what the client must ask for.
"""

from __future__ import annotations

from typing import Any, Final
from urllib.parse import urlencode

import orjson

from pilothouse.apis.core.pod_spec.walking import containers_of
from pilothouse.apis.resources import Resource, Subresource
from pilothouse.apis.strategy import Object
from pilothouse.apis.validating import NEGATIVE
from pilothouse.endpoints.admission import CONNECT
from pilothouse.endpoints.query import Query
from pilothouse.endpoints.request import APIRequest
from pilothouse.endpoints.scope import Endpoint, EndpointVerb, ResourceScope
from pilothouse.endpoints.subresources.dialing import DialError, dial
from pilothouse.endpoints.subresources.kubelets import Kubelet, find_kubelet
from pilothouse.endpoints.subresources.making import StoreOf, working_endpoint
from pilothouse.endpoints.writing import attributes_of
from pilothouse.machinery import errors, times
from pilothouse.machinery.field_errors import WHOLE, FieldError, Path, forbidden, invalid, not_supported
from pilothouse.machinery.go_quote import quote
from pilothouse.machinery.gvk import GroupKind, GroupResource
from pilothouse.net.messages import Response
from pilothouse.registry.store.store import Store

PODS: Final = GroupResource("", "pods")
DIAL_SECONDS: Final = 30.0
_NEEDS_CREATE: Final = "AuthorizePodWebsocketUpgradeCreatePermission"
_ALL: Final = "All"
_STREAMS: Final = (_ALL, "Stderr", "Stdout")
_NOT_POSITIVE: Final = "must be greater than 0"
_UNSUPPORTED: Final = "connections to kubelets are not supported"


def refuse_dry_run(request: APIRequest) -> None:
    """A connection cannot be tried without being made."""
    if request.query and request.options.all("dryRun"):
        raise errors.bad_request("dryRun is not supported")


async def admit_connect(scope: ResourceScope, request: APIRequest, options: Object) -> None:
    """Let admission refuse the connection."""
    admission = scope.admission
    if admission is not None and admission.handles(CONNECT):
        attributes = attributes_of(scope, request, scope.context(request), CONNECT, options, None)
        attributes.name = request.info.name
        await admission.admit(attributes)
        await admission.validate(attributes)


def make_connecting_endpoint(resource: Resource, sub: Subresource | None, store_of: StoreOf) -> Endpoint:
    """``pods/exec``, ``pods/attach`` and ``pods/portforward``."""
    nodes = store_of("", "nodes")

    async def connect(scope: ResourceScope, request: APIRequest) -> Response:
        return await _connect(scope, request, nodes)

    return working_endpoint(resource, sub, store_of("", "pods"), {"get": connect, "create": connect})


async def _connect(scope: ResourceScope, request: APIRequest, nodes: Store) -> Response:
    refuse_dry_run(request)
    query = request.options
    ports = [_port(text) for text in query.all("ports")] if scope.subresource == "portforward" else []
    options: Object = {"metadata": {}, "container": query.text("container"), "command": query.all("command")}
    await admit_connect(scope, request, {**options, "ports": ports} if ports else options)
    await _require_create(scope, request)
    pod = await _pod(scope, request)
    if scope.subresource != "portforward":
        choose_container(pod, query.text("container"))
    node = pod["spec"].get("nodeName")
    if not node:
        raise errors.bad_request(f"pod {request.info.name} does not have a host assigned")
    kubelet = await find_kubelet(nodes, node, PODS)
    if b"upgrade" not in request.headers.get(b"connection", b"").lower():
        raise errors.bad_request("Upgrade request required")
    await reach(kubelet, "error dialing backend: ")
    raise errors.unavailable(_UNSUPPORTED)


async def _require_create(scope: ResourceScope, request: APIRequest) -> None:
    """Who enters a container needs the right to create, even where browsers make it a GET."""
    if request.info.verb == "create" or _NEEDS_CREATE not in scope.store.strategy.gates:
        return
    if request.ask is None:
        raise errors.internal_error("no authorizer available")
    refusal = await request.ask(request, "create")
    if refusal is None:
        return
    if refusal.error.code != 403:
        raise errors.generic(refusal.reason)
    raise errors.forbidden(PODS, request.info.name, refusal.reason)


def _port(text: str) -> int:
    if not (text.isascii() and text.isdigit()):
        why = f"strconv.ParseUint: parsing {quote(text)}: invalid syntax"
        raise errors.bad_request(f"cannot convert to []int32: {why}")
    return int(text[:19])


async def _pod(scope: ResourceScope, request: APIRequest) -> Object:
    entry = await scope.store.get(request.info.namespace, request.info.name)
    pod: Object = orjson.loads(entry.data)
    return pod


def choose_container(pod: Object, wanted: str) -> str:
    """The container meant; a pod with a single one need not be told which."""
    name, spec = pod["metadata"]["name"], pod["spec"]
    known = [container.get("name", "") for container in containers_of(spec)]
    if wanted:
        if wanted not in known:
            raise errors.bad_request(f"container {wanted} is not valid for pod {name}")
        return wanted
    regular = spec.get("containers") or []
    if len(regular) == 1:
        only: str = regular[0]["name"]
        return only
    choices = f", choose one of: [{' '.join(known)}]" if regular else ""
    raise errors.bad_request(f"a container name must be specified for pod {name}{choices}")


async def reach(kubelet: Kubelet, prefix: str) -> None:
    """Find out whether there is a kubelet at all; a 500 in the original's words when there is none."""
    try:
        _, writer = await dial(kubelet.host, kubelet.port, None, DIAL_SECONDS)
    except DialError as error:
        raise errors.generic(f"{prefix}{error}") from None
    writer.close()


def make_log_endpoint(resource: Resource, sub: Subresource | None, store_of: StoreOf) -> Endpoint:
    """``pods/log``."""
    nodes = store_of("", "nodes")

    async def get(scope: ResourceScope, request: APIRequest) -> Response:
        return await _log(scope, request, nodes)

    verbs: dict[str, EndpointVerb] = {"get": get}
    return working_endpoint(resource, sub, store_of("", "pods"), verbs)


async def _log(scope: ResourceScope, request: APIRequest, nodes: Store) -> Response:
    """A pod's log; nothing (204) while it has no node."""
    split = "PodLogsQuerySplitStreams" in scope.store.strategy.gates
    parameters = read_log_parameters(request.info.name, request.options, split_streams=split)
    pod = await _pod(scope, request)
    container = choose_container(pod, request.options.text("container"))
    node = pod["spec"].get("nodeName")
    if not node:
        return Response(204, content_type=b"")
    kubelet = await find_kubelet(nodes, node, PODS)
    metadata = pod["metadata"]
    where = f"https://{kubelet.authority}/containerLogs/{metadata['namespace']}/{metadata['name']}/{container}"
    asked = urlencode(sorted(parameters.items()))
    await reach(kubelet, f"Get {quote(f'{where}?{asked}' if asked else where)}: ")
    raise errors.unavailable(_UNSUPPORTED)


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
    errs = _log_faults(numbers, since)
    if split_streams:
        parameters["stream"] = stream = _ALL if stream is None else stream
        errs += _stream_faults(stream, numbers["tailLines"])
    elif stream is not None:
        errs.append(forbidden(Path("stream"), "may not be specified"))
    if errs:
        raise errors.invalid(GroupKind("", "PodLogOptions"), name, errs)
    parameters.update((key, str(number)) for key, number in numbers.items() if number is not None)
    return parameters


def _stream_faults(stream: str, lines: int | None) -> list[FieldError]:
    errs: list[FieldError] = []
    if stream not in _STREAMS:
        errs.append(not_supported(Path("stream"), stream, _STREAMS))
    if stream != _ALL and lines is not None:
        errs.append(forbidden(WHOLE, "`tailLines` and specific `stream` are mutually exclusive for now"))
    return errs


def _log_faults(numbers: dict[str, Any], since: str | None) -> list[FieldError]:
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
