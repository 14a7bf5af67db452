"""Cells that tables of all workloads share."""

from __future__ import annotations

from pilothouse.machinery.objects import Object


def container_names(template: Object | None) -> str:
    """The names of a template's containers."""
    return ",".join(container.get("name", "") for container in _containers(template))


def container_images(template: Object | None) -> str:
    """The images of a template's containers."""
    return ",".join(container.get("image", "") for container in _containers(template))


def _containers(template: Object | None) -> list[Object]:
    return (template["spec"].get("containers") if template else None) or []


def format_labels(labels: dict[str, str] | None) -> str:
    """Labels as ``a=1,b=2``; ``<none>`` without any."""
    return ",".join(f"{key}={labels[key]}" for key in sorted(labels)) if labels else "<none>"
