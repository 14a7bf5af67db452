"""Finding what is behind a service: its cluster address, or one of its endpoints where the server routes by itself.

Webhooks, aggregated servers and the proxy of services share this reading of services and endpoint slices.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Final

import orjson

from pilothouse.machinery.go_quote import quote
from pilothouse.machinery.objects import Object
from pilothouse.net.dialing import OutgoingError
from pilothouse.registry.storage import StorageFactory
from pilothouse.registry.store.store import Store
from pilothouse.storage.cacher.entries import Entry

SERVICE_NAME: Final = "kubernetes.io/service-name"
_SUFFIX: Final = ".svc"
_MOST_SPECS: Final = 1000
_ROUTED: Final = ("ClusterIP", "LoadBalancer", "NodePort")
Address = tuple[str, int]


@dataclass(slots=True)
class Located:
    """Where a service's port was, and what that was read from; None where every request is to look anew."""

    address: Address
    key: str
    entry: Entry | None
    revision: int
    """Of the latest change to any service with which this was known to hold."""


class ServiceResolver:
    """Where a service's port is."""

    def __init__(self, storage: StorageFactory, *, by_endpoints: bool = False) -> None:
        self._services = storage.store("", "v1", "services")
        self._slices = storage.store("discovery.k8s.io", "v1", "endpointslices")
        self._by_endpoints = by_endpoints
        self._specs: dict[str, tuple[Entry, Object]] = {}
        """What the service last asked for under a key says, for as long as it is the same."""

    async def dial(self, host: str, port: int) -> Address | None:
        """The address behind ``name.namespace.svc``; raises OutgoingError."""
        name, _, rest = host.partition(".")
        return await self.resolve(rest.removesuffix(_SUFFIX), name, port)

    async def resolve(self, namespace: str, name: str, port: int) -> Address:
        """The address to connect to; raises OutgoingError."""
        return (await self.locate(namespace, name, port)).address

    def is_current(self, located: Located) -> bool:
        """Whether the same would be found again."""
        cache = self._services.cache
        if located.entry is None or not cache.ready:
            return False
        if located.revision != cache.changed_revision:
            if cache.get(located.key) is not located.entry:
                return False
            located.revision = cache.changed_revision
        return True

    async def locate(self, namespace: str, name: str, port: int) -> Located:
        """The same in a form that can be held against the present; raises OutgoingError."""
        cache = self._services.cache
        if not cache.ready:
            await cache.wait_ready()
        key = self._services.key(namespace, name)
        if (entry := cache.get(key)) is None:
            await cache.wait_fresh()
            entry = cache.get(key)
        if entry is None:
            raise OutgoingError(f"service {quote(name)} not found")
        spec = self._spec(key, entry)
        if self._by_endpoints:
            return Located(await self._find_endpoint(namespace, name, spec, port), key, None, 0)
        return Located(_cluster_address(name, spec, port), key, entry, cache.changed_revision)

    def _spec(self, key: str, entry: Entry) -> Object:
        known = self._specs.get(key)
        if known is not None and known[0] is entry:
            return known[1]
        if len(self._specs) >= _MOST_SPECS:
            self._specs.clear()
        spec: Object = orjson.loads(entry.data).get("spec") or {}
        self._specs[key] = entry, spec
        return spec

    async def _find_endpoint(self, namespace: str, name: str, spec: Object, port: int) -> Address:
        if spec.get("type", "ClusterIP") not in _ROUTED:
            raise OutgoingError(f"unsupported service type {quote(spec.get('type', ''))}")
        wanted = _find_port(name, spec, port).get("name", "")
        families = spec.get("ipFamilies") or [""]
        for _, address in candidates(await slices_of(self._slices, namespace, name), wanted, families[0]):
            return address
        raise OutgoingError(f"no endpoints available for service {quote(name)}")


async def slices_of(slices: Store, namespace: str, service: str) -> list[Object]:
    """The endpoint slices of a service."""
    await slices.cache.wait_ready()
    entries = slices.cache.entries(f"{slices.prefix}{namespace}/")
    return [orjson.loads(entry.data) for entry in entries if entry.labels.get(SERVICE_NAME) == service]


def candidates(
    slices: Iterable[Object], port_name: str, family: str, rng: random.Random | None = None
) -> Iterator[tuple[Object, Address]]:
    """Ready endpoints that serve a port, in the order to try them: of the preferred family first, else at random."""
    rng = rng or random.Random()
    shuffled = list(slices)
    rng.shuffle(shuffled)
    shuffled.sort(key=lambda each: each.get("addressType") != family)
    for piece in shuffled:
        for port in piece.get("ports") or ():
            endpoints = piece.get("endpoints") or []
            if port.get("name", "") != port_name or port.get("port") is None or not endpoints:
                continue
            offset = rng.randrange(len(endpoints))
            for endpoint in endpoints[offset:] + endpoints[:offset]:
                if endpoint.get("addresses") and (endpoint.get("conditions") or {}).get("ready") is not False:
                    yield endpoint, (endpoint["addresses"][0], int(port["port"]))


def _cluster_address(name: str, spec: Object, port: int) -> Address:
    kind = spec.get("type", "ClusterIP")
    if kind == "ExternalName":
        return str(spec.get("externalName", "")), port
    if kind == "ClusterIP" and spec.get("clusterIP") == "None":
        raise OutgoingError('cannot route to service with ClusterIP "None"')
    if kind not in _ROUTED:
        raise OutgoingError(f"unsupported service type {quote(kind)}")
    return str(spec.get("clusterIP", "")), int(_find_port(name, spec, port)["port"])


def _find_port(name: str, spec: Object, port: int) -> dict[str, Any]:
    for each in spec.get("ports") or ():
        if each.get("port") == port:
            found: dict[str, Any] = each
            return found
    raise OutgoingError(f"no service port {port} found for service {quote(name)}")
