"""Endpoints that connect a client with a container through the kubelet of its node: exec, attach, port-forward.

Which container, which node and what the client must ask for is decided here. The connection itself is

    passed on       as it is: SPDY from older clients, old WebSocket protocols, and everything for kubelets that speak
                    today's WebSocket protocols themselves (``status.declaredFeatures``)
    translated      WebSocket v5 into SPDY, for exec and attach (stream_translation.py)
    tunnelled       SPDY inside of a WebSocket taken out of it, for port-forward (stream_tunnel.py)
"""

from __future__ import annotations

from typing import Final
from urllib.parse import urlencode

import orjson

from pilothouse.apis.core.pod_spec.traversal import containers_of
from pilothouse.apis.resources import Resource, Subresource
from pilothouse.endpoints.admission import CONNECT, Admission
from pilothouse.endpoints.query import Query
from pilothouse.endpoints.request import APIRequest
from pilothouse.endpoints.scope import Endpoint, ResourceScope
from pilothouse.endpoints.subresources.endpoints import StoreOf, working_endpoint
from pilothouse.endpoints.subresources.links import Kubelet, Links
from pilothouse.endpoints.write_request import attributes_of
from pilothouse.machinery import errors
from pilothouse.machinery.go_quote import quote
from pilothouse.machinery.gvk import GroupResource
from pilothouse.machinery.objects import Object
from pilothouse.machinery.workers import weighed
from pilothouse.net.dialing import OutgoingError
from pilothouse.net.header_lists import list_tokens
from pilothouse.net.messages import Response
from pilothouse.net.reverse_proxy import Destination, pass_upgrade, wants_upgrade
from pilothouse.registry.store.store import Store

PODS: Final = GroupResource("", "pods")
_NEEDS_CREATE: Final = "AuthorizePodWebsocketUpgradeCreatePermission"
_WEBSOCKETS_TO_KUBELETS: Final = "ExtendWebSocketsToKubelet"
_TRANSLATED: Final = "v5.channel.k8s.io"
_TUNNELLED: Final = ("SPDY/3.1+", ".k8s.io")
_FLAGS: Final = ("stdin", "stdout", "stderr", "tty")
_PARAMETERS: Final = {"stdin": "input", "stdout": "output", "stderr": "error", "tty": "tty"}


def refuse_dry_run(request: APIRequest) -> None:
    """A connection cannot be tried without being made."""
    if request.query and request.options.all("dryRun"):
        raise errors.bad_request("dryRun is not supported")


async def admit_connect(scope: ResourceScope, request: APIRequest, options: Object) -> None:
    """Let admission refuse the connection. Options are no object of their own: they have no metadata."""
    admission = scope.admission
    if admission is not None and admission.handles(CONNECT):
        attributes = attributes_of(scope, request, scope.context(request), CONNECT, options, None)
        attributes.name = request.info.name
        await admission.admit(attributes)
        await admission.validate(attributes)


def make_connecting_endpoint(
    resource: Resource, sub: Subresource | None, store_of: StoreOf, admission: Admission | None, links: Links
) -> Endpoint:
    """``pods/exec``, ``pods/attach`` and ``pods/portforward``."""
    nodes = store_of("", "nodes")

    async def connect(scope: ResourceScope, request: APIRequest) -> Response:
        return await _connect(scope, request, nodes, links)

    return working_endpoint(
        resource, sub, store_of("", "pods"), {"get": connect, "create": connect}, admission=admission
    )


async def _connect(scope: ResourceScope, request: APIRequest, nodes: Store, links: Links) -> Response:
    refuse_dry_run(request)
    options = _read_options(scope.subresource, request.options)
    await admit_connect(scope, request, options)
    await _require_create(scope, request)
    pod = await find_pod(scope, request)
    path = _path_of(scope.subresource, pod, options)
    node = pod["spec"].get("nodeName")
    if not node:
        raise errors.bad_request(f"pod {request.info.name} does not have a host assigned")
    kubelet = await links.find_kubelet(nodes, node, PODS)
    if not wants_upgrade(request):
        raise errors.bad_request("Upgrade request required")
    is_native = _WEBSOCKETS_TO_KUBELETS in kubelet.features and _WEBSOCKETS_TO_KUBELETS in scope.store.strategy.gates
    links.metrics.count_stream(scope.subresource, is_native=is_native)
    told = await weighed(len(request.query), urlencode, _parameters(options))
    destination = Destination(kubelet.target, path.encode(), told.encode())
    try:
        return await _carry(scope, request, links, destination, options, is_native=is_native)
    except OutgoingError as error:
        raise errors.generic(str(error)) from None


async def _carry(
    scope: ResourceScope,
    request: APIRequest,
    links: Links,
    destination: Destination,
    options: Object,
    *,
    is_native: bool,
) -> Response:
    if request.asks_for_websocket and not is_native:
        protocols = asked_protocols(request)
        if scope.subresource == "portforward":
            if any(name.startswith(_TUNNELLED[0]) and name.endswith(_TUNNELLED[1]) for name in protocols):
                from pilothouse.endpoints.subresources.stream_tunnel import tunnel_streams

                return await tunnel_streams(links, request, destination, protocols)
        elif _TRANSLATED in protocols:
            from pilothouse.endpoints.subresources.stream_translation import Streams, translate_streams

            streams = Streams(*(bool(options.get(flag)) for flag in _FLAGS))
            return translate_streams(links, request, destination, streams)
    return await pass_upgrade(links.client, request, destination, links.max_bytes_per_second)


def asked_protocols(request: APIRequest) -> list[str]:
    """The WebSocket protocols that a client offers, best first."""
    tokens = list_tokens(request.header_values(b"sec-websocket-protocol"))
    return [name.decode("latin-1") for name in tokens if name]


def _read_options(subresource: str, query: Query) -> Object:
    """The options of the connection, as admission sees them."""
    if subresource == "portforward":
        ports = [_port(text) for text in query.all("ports")]
        return {"ports": ports} if ports else {}
    options: Object = {flag: True for flag in _FLAGS if query.boolean(flag)}
    if query.text("container"):
        options["container"] = query.text("container")
    if subresource == "exec":
        options["command"] = query.all("command")
    return options


def _parameters(options: Object) -> list[tuple[str, str]]:
    """What the kubelet is told, sorted as kube-apiserver sends it."""
    if "ports" in options:
        return [("port", ",".join(map(str, options["ports"])))]
    flags = [(_PARAMETERS[flag], "1") for flag in _FLAGS if options.get(flag)]
    return sorted([*flags, *(("command", word) for word in options.get("command", ()))], key=lambda pair: pair[0])


def _path_of(subresource: str, pod: Object, options: Object) -> str:
    where = f"{pod['metadata']['namespace']}/{pod['metadata']['name']}"
    if subresource == "portforward":
        return f"/portForward/{where}"
    return f"/{subresource}/{where}/{choose_container(pod, options.get('container', ''))}"


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


async def find_pod(scope: ResourceScope, request: APIRequest) -> Object:
    """The pod that a request is about."""
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


async def find_kubelet_of(pod: Object, nodes: Store, links: Links) -> Kubelet | None:
    """The kubelet of a pod's node; None while it has none."""
    node = pod["spec"].get("nodeName")
    return await links.find_kubelet(nodes, node, PODS) if node else None
