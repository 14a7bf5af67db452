"""Proxies to pods, services and nodes: ``…/pods/https:web:8443/proxy/some/path``.

Only addresses that other machines could reach are proxied to; the server must not be talked into connecting to itself.
"""

from __future__ import annotations

import asyncio
import ipaddress
import random
import socket
from collections.abc import Awaitable, Callable
from typing import Any, Final

import orjson

from pilothouse.apis.resources import Resource, Subresource
from pilothouse.apis.strategy import Object
from pilothouse.endpoints.request import APIRequest
from pilothouse.endpoints.scope import Endpoint, ResourceScope
from pilothouse.endpoints.subresources.connecting import DIAL_SECONDS, admit_connect, refuse_dry_run
from pilothouse.endpoints.subresources.dialing import DialError, dial
from pilothouse.endpoints.subresources.kubelets import find_kubelet
from pilothouse.endpoints.subresources.making import StoreOf, working_endpoint
from pilothouse.machinery import errors, labels
from pilothouse.machinery.go_quote import quote
from pilothouse.net.messages import Response
from pilothouse.registry.store.listing import ListOptions, list_entries
from pilothouse.registry.store.store import Store

Target = tuple[str, str]
"""Host and port; the port may be missing."""
Locate = Callable[[ResourceScope, APIRequest, "Reference"], Awaitable[Target]]
_METHODS: Final = ("get", "create", "update", "patch", "delete", "")
_SERVICE_LABEL: Final = "kubernetes.io/service-name"
_UNSUPPORTED: Final = "proxying is not supported"
_NOT_ALLOWED: Final = "address not allowed"


class Reference:
    """``name``, ``name:port`` or ``scheme:name:port``."""

    __slots__ = ("name", "port", "scheme")

    def __init__(self, text: str, kind: str) -> None:
        parts = text.split(":")
        scheme, name, port = {1: ("", text, ""), 2: ("", *parts)}.get(len(parts), (*parts, "", "", "")[:3])
        if len(parts) > 3 or not name or scheme not in ("", "http", "https"):
            raise errors.bad_request(f"invalid {kind} request {quote(text)}")
        self.scheme, self.name, self.port = scheme, name, port


def is_reachable_by_others(address: str) -> bool:
    """Whether an address is one of a single machine, and not just of this one or its link."""
    try:
        ip = ipaddress.ip_address(address)
    except ValueError:
        return False
    broadcast = str(ip) == "255.255.255.255"
    return not (ip.is_unspecified or ip.is_loopback or ip.is_multicast or ip.is_link_local or broadcast)


def make_proxy_endpoint(resource: Resource, sub: Subresource | None, store_of: StoreOf) -> Endpoint:
    """The proxy of pods, services or nodes."""
    store = store_of("", resource.name)
    locate: Locate
    if resource.name == "pods":
        locate = _locate_pod
    elif resource.name == "nodes":
        locate = _locate_node
    else:
        locate = _service_locator(store_of("discovery.k8s.io", "endpointslices"), store_of("", "pods"))

    async def proxy(scope: ResourceScope, request: APIRequest) -> Response:
        return await _proxy(scope, request, locate)

    scope = working_endpoint(resource, sub, store, dict.fromkeys(_METHODS, proxy))
    scope.takes_path = True
    return scope


async def _proxy(scope: ResourceScope, request: APIRequest, locate: Locate) -> Response:
    refuse_dry_run(request)
    await admit_connect(scope, request, {"metadata": {}, "path": "/".join(request.info.parts[3:])})
    reference = Reference(request.info.name, scope.resource.singular)
    host, port = await locate(scope, request, reference)
    if len(request.info.parts) == 3 and not request.path.endswith("/") and request.method in ("GET", "HEAD"):
        location = f"{request.path}/?{request.query}" if request.query else f"{request.path}/"
        return Response(301, content_type=b"", headers=[(b"location", location.encode())])
    number = int(port) if port.isdigit() else 443 if reference.scheme == "https" else 80
    try:
        _, writer = await dial(host, number, None, DIAL_SECONDS)
    except DialError as error:
        raise errors.unavailable(f"error trying to reach service: {error}") from None
    writer.close()
    raise errors.unavailable(_UNSUPPORTED)


async def _locate_pod(scope: ResourceScope, request: APIRequest, reference: Reference) -> Target:
    entry = await scope.store.get(request.info.namespace, reference.name)
    pod: Object = orjson.loads(entry.data)
    status: dict[str, Any] = pod.get("status") or {}
    addresses = status.get("podIPs") or [{"ip": status.get("podIP", "")}]
    address = addresses[0].get("ip", "")
    if not is_reachable_by_others(address):
        raise errors.bad_request(_NOT_ALLOWED)
    return address, reference.port or _first_port(pod)


def _first_port(pod: Object) -> str:
    for container in pod["spec"].get("containers") or ():
        for port in container.get("ports") or ():
            return str(port.get("containerPort", 0))
    return ""


async def _locate_node(scope: ResourceScope, request: APIRequest, reference: Reference) -> Target:
    kubelet = await find_kubelet(scope.store, reference.name, scope.resource.group_resource)
    try:
        found = await asyncio.get_running_loop().getaddrinfo(kubelet.host, None, type=socket.SOCK_STREAM)
    except OSError:
        raise errors.bad_request(f"lookup {kubelet.host}: no such host") from None
    if not all(is_reachable_by_others(str(address[4][0])) for address in found):
        raise errors.bad_request(_NOT_ALLOWED)
    return kubelet.host, reference.port or str(kubelet.port)


def _service_locator(slices: Store, pods: Store) -> Locate:
    async def locate(scope: ResourceScope, request: APIRequest, reference: Reference) -> Target:
        namespace, port = request.info.namespace, reference.port
        if port.isascii() and port.isdigit():
            port = await _port_name(scope.store, namespace, reference)
        wanted = labels.from_labels({_SERVICE_LABEL: reference.name})
        page = await list_entries(slices, namespace, ListOptions(labels=wanted))
        for entry in random.sample(page.entries, len(page.entries)):
            target = await _ready_endpoint(orjson.loads(entry.data), port, pods, namespace)
            if target is not None:
                return target
        raise errors.unavailable(f"no endpoints available for service {quote(reference.name)}")

    return locate


async def _port_name(services: Store, namespace: str, reference: Reference) -> str:
    service = orjson.loads((await services.get(namespace, reference.name)).data)
    for port in service["spec"].get("ports") or ():
        if port.get("port") == int(reference.port):
            name: str = port.get("name", "")
            return name
    number, name = int(reference.port), quote(reference.name)
    raise errors.unavailable(f"no service port {number} found for service {name}")


async def _ready_endpoint(piece: Object, port: str, pods: Store, namespace: str) -> Target | None:
    """An endpoint of a slice that is ready and really is a pod of the namespace."""
    for listed in piece.get("ports") or ():
        if listed.get("name", "") != port or listed.get("port") is None:
            continue
        endpoints = piece.get("endpoints") or []
        for endpoint in random.sample(endpoints, len(endpoints)):
            ready = (endpoint.get("conditions") or {}).get("ready")
            if ready is not False and await _is_pod(endpoint, pods, namespace):
                return endpoint["addresses"][0], str(listed["port"])
    return None


async def _is_pod(endpoint: Object, pods: Store, namespace: str) -> bool:
    reference = endpoint.get("targetRef")
    if reference is None or reference.get("namespace", "") != namespace:
        return False
    try:
        pod = orjson.loads((await pods.get(namespace, reference.get("name", ""))).data)
    except errors.StatusError:
        return False
    known = [each.get("ip") for each in (pod.get("status") or {}).get("podIPs") or ()]
    return endpoint["addresses"][0] in known
