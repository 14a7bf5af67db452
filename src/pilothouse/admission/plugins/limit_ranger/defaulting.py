"""Giving containers the resources they leave open, and noting on the pod which those were."""

from __future__ import annotations

from typing import Any, Final

from pilothouse.admission.plugins.limit_ranger.compiled import CompiledRange

_ANNOTATION: Final = "kubernetes.io/limit-ranger"


def fill_in(pod: dict[str, Any], limits: CompiledRange) -> None:
    """Fill in all containers of a pod."""
    if not limits.default_requests and not limits.default_limits:
        return
    notes: list[str] = []
    spec = pod.get("spec") or {}
    for kind, words in (("containers", "container"), ("initContainers", "init container")):
        for container in spec.get(kind) or ():
            notes += _fill_in_container(container, limits, words)
    if notes:
        metadata = pod["metadata"]
        note = {_ANNOTATION: "LimitRanger plugin set: " + "; ".join(notes)}
        metadata["annotations"] = {**(metadata.get("annotations") or {}), **note}


def _fill_in_container(container: dict[str, Any], limits: CompiledRange, words: str) -> list[str]:
    resources = dict(container.get("resources") or {})
    where = f"{words} {container.get('name', '')}"
    notes = []
    for field, defaults in (("requests", limits.default_requests), ("limits", limits.default_limits)):
        given = resources.get(field) or {}
        added = {name: amount for name, amount in defaults.items() if name not in given}
        if added:
            resources[field] = {**given, **added}
            notes.append(f"{', '.join(sorted(added))} {field[:-1]} for {where}")
    container["resources"] = resources
    return notes
