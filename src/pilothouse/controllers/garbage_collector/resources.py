"""Which resources can be collected, kept up to date as custom resources and aggregated servers come and go."""

from __future__ import annotations

from collections.abc import Callable
from time import perf_counter
from typing import Final

from pilothouse.controllers.runtime.client import Client
from pilothouse.controllers.runtime.discovery import ServedResource, discover
from pilothouse.net.work_turns import work_turns

_IGNORED: Final = frozenset((("", "events"), ("events.k8s.io", "events")))
Added = Callable[[ServedResource], None]


class CollectableResources:
    """Resources whose objects can be watched and deleted, by kind. ``on_added`` hears of each once.

    It begins to follow each: with a thousand definitions that takes a while, and is done in turns with others.
    """

    def __init__(self, client: Client, on_added: Added) -> None:
        self._client, self._on_added = client, on_added
        self._by_kind: dict[tuple[str, str], ServedResource] = {}
        self._known: set[tuple[str, str]] = set()

    async def refresh(self) -> None:
        """Ask what is served now."""
        found = [*(await discover(self._client)).with_verbs("delete", "list", "watch")]
        self._by_kind = {(resource.gvr.group, resource.kind): resource for resource in found}
        turns, until = work_turns(), 0.0
        for resource in found:
            key = (resource.gvr.group, resource.gvr.resource)
            if key not in _IGNORED and key not in self._known:
                if perf_counter() >= until:
                    until = await turns.begin()
                if key not in self._known:  # nobody else was faster meanwhile
                    self._known.add(key)
                    self._on_added(resource)

    def of_kind(self, api_version: str, kind: str) -> ServedResource | None:
        """Where objects of a kind are served, in whichever version of its group; None if nowhere."""
        group = api_version.rpartition("/")[0]
        return self._by_kind.get((group, kind))
