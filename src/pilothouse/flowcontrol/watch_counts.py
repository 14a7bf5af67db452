"""How many watches a write will wake: counted by what they watch, from their beginning to their end.

Selectors are not looked at, since every event must be held against them anyway. The exception are watches of the pods
of one node: an index finds them, so that of all kubelets one is woken and none is counted.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from pilothouse.endpoints.request import APIRequest
from pilothouse.endpoints.request_info import RequestInfo
from pilothouse.machinery import fields

_READING: Final = frozenset({"get", "list", "watch", "proxy"})
Watched = tuple[str, str, str, str]


class WatchCounts:
    """Watches by group, resource, namespace and name."""

    def __init__(self) -> None:
        self._counts: dict[Watched, int] = {}

    def add(self, request: APIRequest) -> Callable[[], None]:
        """A watch begins. Call what is returned when it ends, once or more."""
        info = request.info
        if info.resource == "pods" and _is_indexed(request):
            return lambda: None
        watched = (info.group, info.resource, info.namespace, info.name)
        self._counts[watched] = self._counts.get(watched, 0) + 1
        ended = False

        def end() -> None:
            nonlocal ended
            if not ended:
                ended = True
                self._remove(watched)

        return end

    def _remove(self, watched: Watched) -> None:
        left = self._counts[watched] - 1
        if left:
            self._counts[watched] = left
        else:
            del self._counts[watched]

    def woken_by(self, info: RequestInfo) -> int:
        """How many watches a write is of interest to."""
        counts = self._counts
        if not counts or info.verb in _READING:
            return 0
        group, resource, namespace, name = info.group, info.resource, info.namespace, info.name
        woken = counts.get((group, resource, "", ""), 0)
        if namespace:
            woken += counts.get((group, resource, namespace, ""), 0)
        if name:
            woken += counts.get((group, resource, namespace, name), 0)
        return woken


def _is_indexed(request: APIRequest) -> bool:
    selector = request.options.first("fieldSelector")
    if not selector or "spec.nodeName" not in selector:
        return False
    try:
        return bool(fields.parse(selector).exact_value("spec.nodeName"))
    except fields.SelectorError:
        return False
