"""Which resources only peers serve, and the groups that discovery lists for all servers together."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass, field
from types import MappingProxyType

from pilothouse.aggregator.peers.merging import Document, merge_groups
from pilothouse.aggregator.peers.metrics import PeerMetrics
from pilothouse.machinery.gvk import GroupVersion, GroupVersionResource


@dataclass(frozen=True, slots=True)
class PeerEntry:
    """What a peer says it serves."""

    resources: frozenset[GroupVersionResource] = frozenset()
    groups: tuple[Document, ...] = field(default=(), compare=True)
    """As its aggregated discovery lists them, without the core group, which is not part of ``/apis``."""


class PeerApis:
    """What peers serve, less what is served here and what is excluded.

    ``found`` is all that a request costs while there is nothing in it that it asks for: one look into a table.
    """

    def __init__(self, identity: str, local: Set[GroupVersionResource], metrics: PeerMetrics) -> None:
        """``local`` is what this server serves itself, apart from custom resources."""
        self.metrics = metrics
        self.found: Mapping[GroupVersionResource, tuple[str, ...]] = MappingProxyType({})
        """The identities of the peers that serve a resource that this server does not."""
        self._identity, self._local = identity, frozenset(local)
        self._entries: dict[str, PeerEntry] = {}
        self._excluded: frozenset[GroupVersion] = frozenset()
        self._listeners: list[Callable[[], object]] = []

    def tell(self, listener: Callable[[], object]) -> None:
        """Have a listener hear that something changed."""
        self._listeners.append(listener)

    def set_peer(self, identity: str, entry: PeerEntry | None) -> None:
        """A peer came, serves something else, or (None) went."""
        if entry is not None and not entry.resources and not entry.groups:
            entry = None
        if entry == self._entries.get(identity):
            return
        if entry is None:
            del self._entries[identity]
        else:
            self._entries[identity] = entry
        self._changed()

    def exclude(self, excluded: Set[GroupVersion]) -> None:
        """Look for these group versions at no peer."""
        if excluded != self._excluded:
            self._excluded = frozenset(excluded)
            self._changed()

    def merge(self, groups: Sequence[Document]) -> list[Document]:
        """The groups that this server lists, together with those of its peers."""
        if not self._entries:
            return list(groups)
        others = {identity: self._listed(entry) for identity, entry in self._entries.items()}
        return merge_groups({**others, self._identity: groups})

    def misrouted(self, served: Set[GroupVersionResource]) -> str:
        """The health check: requests for something that is served here, and would go to a peer all the same."""
        wrong = sorted(served & self.found.keys())
        return f"served here but sent to peers: {' '.join('/'.join(each) for each in wrong)}" if wrong else ""

    def _listed(self, entry: PeerEntry) -> list[Document]:
        listed = []
        for group in entry.groups:
            name = group["metadata"]["name"]
            versions = [v for v in group["versions"] if GroupVersion(name, v["version"]) not in self._excluded]
            if versions:
                listed.append({**group, "versions": versions})
        return listed

    def _changed(self) -> None:
        found: dict[GroupVersionResource, tuple[str, ...]] = {}
        for identity in sorted(self._entries):
            for gvr in self._entries[identity].resources:
                if gvr not in self._local and gvr.group_version not in self._excluded:
                    found[gvr] = (*found.get(gvr, ()), identity)
        self.found = found
        for listener in self._listeners:
            listener()
