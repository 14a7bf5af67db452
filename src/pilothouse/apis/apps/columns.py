"""Table columns and cells that workload kinds share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from pilothouse.apis.strategy import Column, Doc
from pilothouse.machinery import labels
from pilothouse.machinery.objects import Object

READY_WORDS: Final = "Number of the pod with ready state"


def spec_cell(name: str, default: Any = 0) -> Callable[[Object], Any]:
    """A value of the spec."""
    return lambda obj: obj["spec"].get(name, default)


def status_cell(name: str, default: Any = 0) -> Callable[[Object], Any]:
    """A value of the status."""
    return lambda obj: (obj.get("status") or {}).get(name, default)


def container_columns(template_of: Callable[[Object], Object]) -> tuple[Column, Column]:
    """Names and images of a template's containers."""

    def listed(field: str) -> Callable[[Object], str]:
        return lambda obj: ",".join(c.get(field, "") for c in template_of(obj)["spec"].get("containers") or ())

    return (
        Column(
            "Containers",
            "string",
            listed("name"),
            priority=1,
            description="Names of each container in the template.",
        ),
        Column(
            "Images",
            "string",
            listed("image"),
            priority=1,
            description="Images referenced by each container in the template.",
        ),
    )


def selector_column(cell: Callable[[Object], str], type_name: str) -> Column:
    """Which pods belong to the object."""
    return Column("Selector", "string", cell, priority=1, description=Doc(type_name, "selector"))


def selector_cell(obj: Object) -> str:
    """The selector as text, ``<none>`` for an empty one."""
    return labels.format_object(obj["spec"].get("selector"))


def ready_cell(obj: Object) -> str:
    """How many replicas are ready, of how many."""
    return f"{(obj.get('status') or {}).get('readyReplicas', 0)}/{obj['spec'].get('replicas', 0)}"


CONTAINER_COLUMNS: Final = container_columns(lambda obj: obj["spec"]["template"])
