"""What the status of a DeviceTaintRule says: whether pods are being evicted, how many are to go, how many are gone."""

from __future__ import annotations

from collections.abc import Iterable

from pilothouse.machinery.objects import Object

CONDITION = "EvictionInProgress"
_PREVIEW_ENDS = (
    "if the effect was NoExecute. This information will not be updated again. "
    "Recreate the DeviceTaintRule to trigger an update."
)


def condition(rule: Object, waiting: Iterable[Object], evicted: int, published: int, allocated: int) -> Object:
    """The condition of a rule, given the pods that it wants to go, how many went, and the devices that it selects."""
    effect = rule["spec"]["taint"]["effect"]
    namespaces = [pod["metadata"]["namespace"] for pod in waiting]
    status, reason, message = "False", "OtherEffect", "Eviction only happens for the NoExecute effect."
    if effect == "NoExecute":
        reason, message = ("Completed" if evicted else "NotStarted"), ""
        if namespaces:
            needs = "pod needs" if len(namespaces) == 1 else "pods need"
            text = f"{len(namespaces)} {needs} to be evicted in {_places(namespaces)}."
            status, reason, message = "True", "PodsPendingEviction", text
    elif effect == "None":
        devices = (
            f"{_count(published, 'published device')} selected. {_count(allocated, 'allocated device')} selected. "
        )
        would = f"{_count(len(namespaces), 'pod')} would be evicted in {_places(namespaces)} "
        reason, message = "NoEffect", f"{devices}{would}{_PREVIEW_ENDS}"
    if evicted:
        message = f"{message} {_count(evicted, 'pod')} evicted since starting the controller.".strip()
    return {
        "type": CONDITION,
        "status": status,
        "reason": reason,
        "message": message,
        "observedGeneration": rule["metadata"].get("generation", 0),
    }


def _count(number: int, what: str) -> str:
    return f"1 {what}" if number == 1 else f"{number} {what}s"


def _places(namespaces: list[str]) -> str:
    different = len(set(namespaces))
    return "1 namespace" if different == 1 else f"{different} different namespaces"
