"""What other servers serve, for the one document that lists all resources (aggregated discovery).

A server is asked for its own aggregated document, and where it has none, for the list of the group version. It is asked
again every minute and whenever its APIService changes. While it does not answer, what it said last stays listed and is
marked as stale, so that clients can tell "unknown" from "none".
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, Final

import orjson

from pilothouse.aggregator.proxy import AggregationProxy
from pilothouse.aggregator.remote import RemoteApi
from pilothouse.aggregator.server import RemoteApis
from pilothouse.controllers.runtime.controller import Controller
from pilothouse.endpoints.discovery import Document, RemoteVersion
from pilothouse.machinery.gvk import GroupVersion
from pilothouse.machinery.supervision import Supervisor
from pilothouse.net.dialing import OutgoingError
from pilothouse.net.messages import BodyTooLarge

REFRESH_SECONDS: Final = 60.0
_LIMIT: Final = 8 << 20
_AGGREGATED: Final = (
    "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,"
    "application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList"
)
_CURRENT, _STALE = "Current", "Stale"
Note = Callable[[GroupVersion, RemoteVersion | None], object]


class RemoteDiscovery:
    """Keeps ``note`` informed of every remote group version and its resources."""

    def __init__(self, remotes: RemoteApis, proxy: AggregationProxy, note: Note) -> None:
        self._remotes, self._proxy, self._note = remotes, proxy, note
        self._known: dict[GroupVersion, Document] = {}
        self.controller: Controller[GroupVersion] = Controller("discovery of remote APIs", self.reconcile, workers=2)
        remotes.tell(self._changed)

    async def start(self, supervisor: Supervisor) -> None:
        """Ask those there are, then go on."""
        self.controller.start(supervisor)

    def _changed(self, gv: GroupVersion, remote: RemoteApi | None) -> None:
        if remote is None:
            self._known.pop(gv, None)
            self._note(gv, None)
            return
        self._list(remote, self._known.get(gv) or {"version": gv.version, "resources": []}, _STALE)
        self.controller.queue.add(gv)

    async def reconcile(self, gv: GroupVersion) -> float | None:
        """Ask one server and list what it said."""
        remote = self._remotes.found.get(gv)
        if remote is None:
            return None
        try:
            entry = await self._fetch(remote)
        except (OutgoingError, BodyTooLarge, TimeoutError, ValueError, LookupError, TypeError):
            self._list(remote, self._known.get(gv) or {"version": gv.version, "resources": []}, _STALE)
        else:
            self._known[gv] = entry
            self._list(remote, entry, _CURRENT)
        return REFRESH_SECONDS

    def _list(self, remote: RemoteApi, entry: Document, freshness: str) -> None:
        group, version = remote.group_version
        shown = {**entry, "version": version, "freshness": freshness}
        self._note(remote.group_version, RemoteVersion(group, version, remote.priority, entry=shown))

    async def _fetch(self, remote: RemoteApi) -> Document:
        group, version = remote.group_version
        status, data, _ = await self._proxy.fetch(remote, "/apis", _AGGREGATED, _LIMIT)
        document = await asyncio.to_thread(orjson.loads, data) if status == 200 else {}
        if document.get("kind") == "APIGroupDiscoveryList":
            for item in document.get("items") or ():
                if (item.get("metadata") or {}).get("name", "") == group:
                    for entry in item.get("versions") or ():
                        if entry.get("version") == version:
                            return dict(entry)
            raise LookupError("the group version is not listed")
        status, data, _ = await self._proxy.fetch(remote, remote.path, "application/json", _LIMIT)
        if status != 200:
            raise OutgoingError(f"bad status {status}")
        return listed_resources(await asyncio.to_thread(orjson.loads, data))


def listed_resources(document: dict[str, Any]) -> Document:
    """The list of a group version (APIResourceList) as aggregated discovery tells it."""
    found: dict[str, Document] = {}
    for resource in document.get("resources") or ():
        name, _, sub = resource["name"].partition("/")
        kind = {key: resource.get(key, "") for key in ("group", "version", "kind")}
        if not sub:
            entry: Document = {
                "resource": name,
                "responseKind": kind,
                "scope": "Namespaced" if resource.get("namespaced") else "Cluster",
                "singularResource": resource.get("singularName", ""),
                "verbs": list(resource.get("verbs") or ()),
            }
            entry |= {key: resource[key] for key in ("shortNames", "categories") if resource.get(key)}
            found[name] = {**entry, **{key: value for key, value in found.get(name, {}).items() if key not in entry}}
            continue
        parent = found.setdefault(name, {"resource": name})
        verbs = list(resource.get("verbs") or ())
        parent.setdefault("subresources", []).append({"subresource": sub, "responseKind": kind, "verbs": verbs})
    return {"resources": list(found.values())}
