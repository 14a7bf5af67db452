"""Which services to look at when pods, services or nodes change; both controllers of endpoints ask this."""

from __future__ import annotations

from collections.abc import Callable

from pilothouse.controllers.runtime.indexer import SELECTOR, Key, key_of, read_selected_labels
from pilothouse.controllers.runtime.informer import Informer
from pilothouse.controllers.runtime.selecting import Selecting, plain_selector
from pilothouse.machinery.objects import Object

Add = Callable[[Key], None]


def follow_services(services: Informer, pods: Informer, add: Add, name: str) -> None:
    """Have services looked at again whenever they, or pods that they select, change."""

    services.add_reading(SELECTOR, read_selected_labels)
    wake = Selecting(services, add, plain_selector).wake

    def changed(old: Object, new: Object) -> None:
        if old["metadata"].get("labels") != new["metadata"].get("labels"):
            wake(old)
            wake(new)
        elif _differs(old, new):
            wake(new)

    services.add_handler(
        lambda obj: add(key_of(obj)), lambda old, new: add(key_of(new)), lambda obj: add(key_of(obj)), name=name
    )
    pods.add_handler(wake, changed, wake, name=name)


def _differs(old: Object, new: Object) -> bool:
    """Whether anything changed that an endpoint shows."""
    before, after = old.get("status") or {}, new.get("status") or {}
    return bool(
        before.get("podIPs") != after.get("podIPs")
        or before.get("phase") != after.get("phase")
        or before.get("conditions") != after.get("conditions")
        or old["spec"].get("nodeName") != new["spec"].get("nodeName")
        or old["metadata"].get("deletionTimestamp") != new["metadata"].get("deletionTimestamp")
    )
