"""What other servers serve, for the one document that lists all resources (aggregated discovery).

A server is asked for its own aggregated document, and where it has none, for the list of the group version. It is asked
again every minute and whenever its APIService changes, and need not send again what has not changed (ETag). While it
does not answer, what it said last stays listed and is marked as stale, so that clients can tell "unknown" from "none".
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from pilothouse.aggregator.proxy import AggregationProxy
from pilothouse.aggregator.remote import RemoteApi
from pilothouse.aggregator.remote_documents import REFRESH_SECONDS, RemoteDocuments
from pilothouse.aggregator.server import RemoteApis
from pilothouse.endpoints.discovery import Document, RemoteVersion
from pilothouse.machinery import large_json
from pilothouse.machinery.gvk import GroupVersion
from pilothouse.machinery.workers import weighed
from pilothouse.net.dialing import OutgoingError
from pilothouse.net.messages import BodyTooLarge

_LIMIT: Final = 8 << 20
_AGGREGATED: Final = (
    "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,"
    "application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList"
)
_CURRENT, _STALE = "Current", "Stale"
Note = Callable[[GroupVersion, RemoteVersion | None], object]


class RemoteDiscovery(RemoteDocuments):
    """Keeps ``note`` informed of every remote group version and its resources."""

    def __init__(self, remotes: RemoteApis, proxy: AggregationProxy, note: Note) -> None:
        super().__init__("discovery of remote APIs", remotes, proxy, workers=2)
        self._note = note
        self._known: dict[GroupVersion, Document] = {}
        self._etags: dict[GroupVersion, tuple[str, str]] = {}
        """Of the documents that the known ones stem from: by whom they were sent, and under which tag."""
        remotes.tell(self._list_stale)

    def concerns(self, remote: RemoteApi) -> bool:
        """All are listed, whether they answer or not."""
        return True

    def forget(self, gv: GroupVersion) -> None:
        """It is listed no more."""
        self._known.pop(gv, None)
        self._etags.pop(gv, None)
        self._note(gv, None)

    async def refresh(self, remote: RemoteApi) -> float | None:
        """Ask one server and list what it said."""
        try:
            entry = await self._fetch(remote)
        except (OutgoingError, BodyTooLarge, TimeoutError, ValueError, LookupError, TypeError, AttributeError):
            self._list_stale(remote.group_version, remote)
        else:
            self._known[remote.group_version] = entry
            self._list(remote, entry, _CURRENT)
        return REFRESH_SECONDS

    def _list_stale(self, gv: GroupVersion, remote: RemoteApi | None) -> None:
        if remote is not None:
            self._list(remote, self._known.get(gv) or {"version": gv.version, "resources": []}, _STALE)

    def _list(self, remote: RemoteApi, entry: Document, freshness: str) -> None:
        group, version = remote.group_version
        shown = {**entry, "version": version, "freshness": freshness}
        self._note(remote.group_version, RemoteVersion(group, version, remote.priority, entry=shown))

    async def _fetch(self, remote: RemoteApi) -> Document:
        gv = remote.group_version
        sender = f"{remote.namespace}/{remote.service}:{remote.port}"
        known_sender, etag = self._etags.get(gv, ("", ""))
        etag = etag if known_sender == sender else ""
        found = await self.proxy.fetch(remote, "/apis", _AGGREGATED, _LIMIT, etag=etag)
        if found.status == 304 and etag:
            return self._known[gv]
        self._etags.pop(gv, None)
        entry = await weighed(len(found.body), _read_entry, found.body, gv) if found.status == 200 else None
        if entry is not None:
            self._etags[gv] = sender, found.etag
            return entry
        found = await self.proxy.fetch(remote, remote.path, "application/json", _LIMIT)
        if found.status != 200:
            raise OutgoingError(f"bad status {found.status}")
        return await weighed(len(found.body), lambda: listed_resources(large_json.loads(found.body)))


def _read_entry(data: bytes, gv: GroupVersion) -> Document | None:
    """What an aggregated document says of one group version, None if it is none. Raises LookupError and the like."""
    document = large_json.loads(data)
    return _entry_of(document, gv) if document.get("kind") == "APIGroupDiscoveryList" else None


def _entry_of(document: Document, gv: GroupVersion) -> Document:
    """What an aggregated document says of one group version. Raises LookupError."""
    for item in document.get("items") or ():
        if (item.get("metadata") or {}).get("name", "") == gv.group:
            for entry in item.get("versions") or ():
                if entry.get("version") == gv.version:
                    return dict(entry)
    raise LookupError("the group version is not listed")


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
