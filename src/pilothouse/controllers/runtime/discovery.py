"""What the server serves, for controllers that deal with objects of every kind."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from pilothouse.controllers.runtime.client import Client
from pilothouse.machinery.gvk import GroupVersionResource
from pilothouse.machinery.objects import Object

_AGGREGATED: Final = b"application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"


@dataclass(frozen=True, slots=True)
class ServedResource:
    """A resource in one version."""

    gvr: GroupVersionResource
    kind: str
    namespaced: bool
    verbs: frozenset[str]
    stale: bool = False
    """Said by an aggregated server that does not answer now."""


@dataclass(frozen=True, slots=True)
class Discovered:
    """All resources in the version that their group prefers, and the groups whose server does not answer."""

    preferred: tuple[ServedResource, ...]
    failing: tuple[str, ...]

    def with_verbs(self, *verbs: str, namespaced: bool | None = None) -> list[ServedResource]:
        """The resources that can do all of this."""
        return [
            each for each in self.preferred if each.verbs.issuperset(verbs) and namespaced in (None, each.namespaced)
        ]


async def discover(client: Client) -> Discovered:
    """Ask what is served now: two calls, whatever the number of groups."""
    groups: list[Object] = []
    for path in ("/api", "/apis"):
        groups += (await client.request("GET", path, accept=_AGGREGATED))["items"]
    found: dict[tuple[str, str], ServedResource] = {}
    failing: list[str] = []
    for group in groups:
        name = group["metadata"].get("name") or ""
        for version in group.get("versions") or ():
            if version.get("freshness") == "Stale":
                failing.append(f"{name}/{version['version']}")
            for resource in version.get("resources") or ():
                found.setdefault((name, resource["resource"]), _read(name, version, resource))
    return Discovered(tuple(found.values()), tuple(failing))


def _read(group: str, version: Object, resource: Object) -> ServedResource:
    return ServedResource(
        GroupVersionResource(group, version["version"], resource["resource"]),
        (resource.get("responseKind") or {}).get("kind") or "",
        resource["scope"] == "Namespaced",
        frozenset(resource.get("verbs") or ()),
        version.get("freshness") == "Stale",
    )
