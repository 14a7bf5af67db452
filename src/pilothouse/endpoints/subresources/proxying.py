"""Proxies to pods, services and nodes: ``…/pods/https:web:8443/proxy/some/path``.

Only addresses that other machines could reach are proxied to, checked again when connecting; the server must not be
talked into connecting to itself.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Awaitable, Callable
from typing import Any, Final
from urllib.parse import quote as escape
from urllib.parse import unquote_to_bytes

import orjson

from pilothouse.apis.resources import Resource, Subresource
from pilothouse.endpoints.admission import Admission
from pilothouse.endpoints.request import APIRequest
from pilothouse.endpoints.scope import Endpoint, ResourceScope
from pilothouse.endpoints.subresources.connecting import admit_connect, refuse_dry_run
from pilothouse.endpoints.subresources.endpoints import StoreOf, working_endpoint
from pilothouse.endpoints.subresources.links import ANYBODY, Links
from pilothouse.machinery import errors
from pilothouse.machinery.go_quote import quote
from pilothouse.machinery.objects import Object
from pilothouse.machinery.workers import weighed
from pilothouse.net.dialing import OutgoingError, Target
from pilothouse.net.messages import Response
from pilothouse.net.reverse_proxy import BadLocation, Destination, forward, pass_upgrade, wants_upgrade
from pilothouse.registry.service_routing import candidates, slices_of
from pilothouse.registry.store.store import Store

Locate = Callable[[ResourceScope, APIRequest, "Reference"], Awaitable[Target]]
_METHODS: Final = ("get", "create", "update", "patch", "delete", "")
_LAST_PORT: Final = (1 << 16) - 1
_LONGEST_PORT: Final = 20
_NOT_ALLOWED: Final = "address not allowed"
_SAFE: Final = "/:@!$&'()*+,;=-._~"


class Reference:
    """``name``, ``name:port`` or ``scheme:name:port``."""

    __slots__ = ("name", "port", "scheme")

    def __init__(self, text: str, kind: str) -> None:
        parts = text.split(":")
        scheme, name, port = {1: ("", text, ""), 2: ("", *parts)}.get(len(parts), (*parts, "", "", "")[:3])
        if len(parts) > 3 or not name or scheme not in ("", "http", "https"):
            raise errors.bad_request(f"invalid {kind} request {quote(text)}")
        self.scheme, self.name, self.port = scheme, name, port


def make_proxy_endpoint(
    resource: Resource, sub: Subresource | None, store_of: StoreOf, admission: Admission | None, links: Links
) -> Endpoint:
    """The proxy of pods, services or nodes."""
    locator = _Locator(links, store_of)
    locate = {"pods": locator.find_pod, "nodes": locator.find_node, "services": locator.find_service}[resource.name]

    async def proxy(scope: ResourceScope, request: APIRequest) -> Response:
        return await _proxy(scope, request, links, locate)

    verbs = dict.fromkeys(_METHODS, proxy)
    return working_endpoint(resource, sub, store_of("", resource.name), verbs, admission=admission, takes_path=True)


async def _proxy(scope: ResourceScope, request: APIRequest, links: Links, locate: Locate) -> Response:
    refuse_dry_run(request)
    parts = request.info.parts[3:]
    await admit_connect(scope, request, {"path": "/" + "/".join(parts)} if parts else {})
    reference = Reference(request.info.name, scope.resource.singular)
    target = await locate(scope, request, reference)
    prefix, rest = await weighed(len(request.raw_path), split_path, request)
    query = request.query.encode("latin-1")
    destination = Destination(target, rest, query, prefix=prefix)
    if wants_upgrade(request):
        return await _upgrade(links, request, destination)
    if not rest and request.method in ("GET", "HEAD"):
        location = f"{request.path}/?{request.query}" if request.query else f"{request.path}/"
        return Response(301, content_type=b"", headers=[(b"location", location.encode())])
    try:
        return await forward(links.client, request, destination)
    except BadLocation as error:
        raise errors.internal_error(str(error)) from None
    except OutgoingError as error:
        raise errors.unavailable(f"error trying to reach service: {error}") from None


async def _upgrade(links: Links, request: APIRequest, destination: Destination) -> Response:
    try:
        return await pass_upgrade(links.client, request, destination, links.max_bytes_per_second)
    except OutgoingError as error:
        raise errors.generic(str(error)) from None


def split_path(request: APIRequest) -> tuple[str, bytes]:
    """What of a path leads to the proxy, and the rest, which goes on byte for byte.

    Where escapes hide the borders between the segments that were judged, what was judged is sent, escaped anew.
    """
    depth = request.path.strip("/").count("/") + 1 - len(request.info.parts) + 3
    lead = len(request.path) - len(request.path.lstrip("/"))
    plain = request.path[lead:].split("/", depth)
    raw = request.raw_path[lead:].split("/", depth)
    prefix = "/" + "/".join(plain[:depth])
    if [_unescape(segment) for segment in raw[:depth]] == plain[:depth]:
        rest = raw[depth:]
    else:
        rest = [escape(each, _SAFE) for each in plain[depth:]]
    return prefix, "".join(f"/{each}" for each in rest).encode("latin-1")


def _unescape(segment: str) -> str:
    return unquote_to_bytes(segment).decode("utf-8", "replace")


class _Locator:
    """Finds what a reference leads to."""

    def __init__(self, links: Links, store_of: StoreOf) -> None:
        self._links = links
        self._pods = store_of("", "pods")
        self._slices = store_of("discovery.k8s.io", "endpointslices")

    def _target(self, host: str, port: str, scheme: str) -> Target:
        secure = scheme == "https"
        number = _port_number(host, port) if port else 443 if secure else 80
        return Target(host, number, ANYBODY if secure else None, self._links.guard)

    async def find_pod(self, scope: ResourceScope, request: APIRequest, reference: Reference) -> Target:
        """A pod's own address."""
        entry = await scope.store.get(request.info.namespace, reference.name)
        pod: Object = orjson.loads(entry.data)
        status: dict[str, Any] = pod.get("status") or {}
        addresses = status.get("podIPs") or [{"ip": status.get("podIP", "")}]
        address = addresses[0].get("ip", "")
        if not self._links.guard(address):
            raise errors.bad_request(_NOT_ALLOWED)
        return self._target(address, reference.port or _first_port(pod), reference.scheme)

    async def find_node(self, scope: ResourceScope, request: APIRequest, reference: Reference) -> Target:
        """The kubelet of a node, or another port of its machine."""
        links = self._links
        kubelet = (await links.find_kubelet(scope.store, reference.name, scope.resource.group_resource)).target
        try:
            found = await asyncio.get_running_loop().getaddrinfo(kubelet.host, None, type=socket.SOCK_STREAM)
        except OSError:
            raise errors.bad_request(f"lookup {kubelet.host}: no such host") from None
        if not all(links.guard(str(address[4][0])) for address in found):
            raise errors.bad_request(_NOT_ALLOWED)
        if reference.port in ("", str(kubelet.port)):
            return Target(kubelet.host, kubelet.port, kubelet.tls, links.guard)
        return self._target(kubelet.host, reference.port, reference.scheme)

    async def find_service(self, scope: ResourceScope, request: APIRequest, reference: Reference) -> Target:
        """A ready endpoint that really is a pod of the namespace."""
        namespace, port = request.info.namespace, reference.port
        if _is_number(port):
            port = await _port_name(scope.store, namespace, reference)
        slices = await slices_of(self._slices, namespace, reference.name)
        for endpoint, (address, number) in candidates(slices, port, "IPv4"):
            if await self._is_pod(endpoint, namespace):
                return self._target(address, str(number), reference.scheme)
        raise errors.unavailable(f"no endpoints available for service {quote(reference.name)}")

    async def _is_pod(self, endpoint: Object, namespace: str) -> bool:
        reference = endpoint.get("targetRef")
        if reference is None or reference.get("namespace", "") != namespace:
            return False
        try:
            pod = orjson.loads((await self._pods.get(namespace, reference.get("name", ""))).data)
        except errors.StatusError:
            return False
        known = [each.get("ip") for each in (pod.get("status") or {}).get("podIPs") or ()]
        return endpoint["addresses"][0] in known


def _is_number(port: str) -> bool:
    """Whether Go reads it as one; what is longer is a name."""
    return port.isascii() and port.isdigit() and len(port) < 20 and int(port) < 1 << 63


def _port_number(host: str, port: str) -> int:
    """The number that a port is given as. Raises what dialling anything else ends with."""
    if not (port.isascii() and port.isdigit()):
        raise errors.unavailable(f"error trying to reach service: dial tcp: lookup {host}:{port}: no such host")
    if len(port) > _LONGEST_PORT or int(port) > _LAST_PORT:
        raise errors.unavailable(f"error trying to reach service: dial tcp: address {port}: invalid port")
    return int(port)


def _first_port(pod: Object) -> str:
    for container in pod["spec"].get("containers") or ():
        for port in container.get("ports") or ():
            return str(port.get("containerPort", 0))
    return ""


async def _port_name(services: Store, namespace: str, reference: Reference) -> str:
    service = orjson.loads((await services.get(namespace, reference.name)).data)
    for port in service["spec"].get("ports") or ():
        if port.get("port") == int(reference.port):
            name: str = port.get("name", "")
            return name
    number, name = int(reference.port), quote(reference.name)
    raise errors.unavailable(f"no service port {number} found for service {name}")
