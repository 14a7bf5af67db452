"""Volumes are kept while they are bound."""

from __future__ import annotations

from pilothouse.controllers.manager.context import ControllerContext
from pilothouse.controllers.volumes.facts import phase_of
from pilothouse.controllers.volumes.protection import Protected, Protection
from pilothouse.machinery.objects import Object


def start(context: ControllerContext) -> None:
    """Volumes are kept while they are bound."""

    async def is_used(volume: Object) -> bool:
        return phase_of(volume) == "Bound"

    client = context.client("pv-protection-controller").of("", "v1", "persistentvolumes")
    Protection(
        context,
        Protected(
            "persistentvolume-protection-controller",
            "kubernetes.io/pv-protection",
            context.informers.of("", "v1", "persistentvolumes"),
            client,
            is_used,
            [],
        ),
    ).controller.start(context.supervisor)
