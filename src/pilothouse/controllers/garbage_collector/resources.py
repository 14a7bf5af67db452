"""Which resources can be collected, kept up to date as custom resources and aggregated servers come and go."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from time import perf_counter
from typing import Final

from pilothouse.controllers.runtime.client import Client
from pilothouse.controllers.runtime.discovery import ServedResource, discover
from pilothouse.machinery.gvk import GroupVersionResource
from pilothouse.net.work_turns import work_turns

_IGNORED: Final = frozenset((("", "events"), ("events.k8s.io", "events")))
Added = Callable[[ServedResource], None]
Gone = Callable[[GroupVersionResource], Awaitable[bool]]


async def _none_left(gvr: GroupVersionResource) -> bool:
    return True


class CollectableResources:
    """Resources whose objects can be watched and deleted, by kind. ``on_added`` hears of each once.

    It begins to follow each: with a thousand definitions that takes a while, and is done in turns with others.
    ``on_gone`` hears of what is not served any more, again and again until it says that nothing is left of it.
    """

    def __init__(self, client: Client, on_added: Added, on_gone: Gone = _none_left) -> None:
        self._client, self._on_added, self._on_gone = client, on_added, on_gone
        self._by_kind: dict[tuple[str, str], ServedResource] = {}
        self._known: dict[tuple[str, str], GroupVersionResource] = {}

    async def refresh(self) -> None:
        """Ask what is served now."""
        discovered = await discover(self._client)
        found = discovered.with_verbs("delete", "list", "watch")
        self._by_kind = {(resource.gvr.group, resource.kind): resource for resource in found}
        turns, until = work_turns(), 0.0
        for resource in found:
            key = (resource.gvr.group, resource.gvr.resource)
            if key not in _IGNORED and key not in self._known:
                if perf_counter() >= until:
                    until = await turns.begin()
                if key not in self._known:  # nobody else was faster meanwhile
                    self._known[key] = resource.gvr
                    self._on_added(resource)
        served = {(resource.gvr.group, resource.gvr.resource) for resource in discovered.preferred}
        failing = {each.rpartition("/")[0] for each in discovered.failing}
        for key in [each for each in self._known if each not in served and each[0] not in failing]:
            if await self._on_gone(self._known[key]):
                self._known.pop(key, None)

    def of_kind(self, api_version: str, kind: str) -> ServedResource | None:
        """Where objects of a kind are served, in whichever version of its group; None if nowhere."""
        group = api_version.rpartition("/")[0]
        return self._by_kind.get((group, kind))
