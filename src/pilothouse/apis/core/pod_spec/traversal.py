"""The containers of a pod spec, in the order that everything goes through them: init, regular, ephemeral."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from pilothouse.machinery.field_errors import Path
from pilothouse.machinery.objects import Object

CONTAINER_LISTS: Final = ("initContainers", "containers", "ephemeralContainers")


def containers_of(spec: Object) -> Iterator[Object]:
    """All containers of a spec."""
    for kind in CONTAINER_LISTS:
        yield from spec.get(kind) or ()


def containers_at(spec: Object, path: Path) -> Iterator[tuple[Object, Path]]:
    """All containers of a spec with their paths; ``path`` is the spec's."""
    for kind in CONTAINER_LISTS:
        containers = spec.get(kind)
        if containers:
            base = path.child(kind)
            for position, container in enumerate(containers):
                yield container, base.index(position)
