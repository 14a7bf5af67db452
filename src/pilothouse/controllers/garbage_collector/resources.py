"""Which resources can be collected, kept up to date as custom resources and aggregated servers come and go."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from pilothouse.controllers.runtime.client import Client
from pilothouse.controllers.runtime.discovery import ServedResource, discover

_IGNORED: Final = frozenset((("", "events"), ("events.k8s.io", "events")))
Added = Callable[[ServedResource], None]


class CollectableResources:
    """Resources whose objects can be watched and deleted, by kind. ``on_added`` hears of each once."""

    def __init__(self, client: Client, on_added: Added) -> None:
        self._client, self._on_added = client, on_added
        self._by_kind: dict[tuple[str, str], ServedResource] = {}
        self._known: set[tuple[str, str]] = set()

    async def refresh(self) -> None:
        """Ask what is served now."""
        found = await discover(self._client)
        self._by_kind = {}
        for resource in found.with_verbs("delete", "list", "watch"):
            gvr = resource.gvr
            self._by_kind[(gvr.group, resource.kind)] = resource
            key = (gvr.group, gvr.resource)
            if key not in _IGNORED and key not in self._known:
                self._known.add(key)
                self._on_added(resource)

    def of_kind(self, api_version: str, kind: str) -> ServedResource | None:
        """Where objects of a kind are served, in whichever version of its group; None if nowhere."""
        group = api_version.rpartition("/")[0]
        return self._by_kind.get((group, kind))
