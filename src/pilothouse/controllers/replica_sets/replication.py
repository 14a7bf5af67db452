"""The controller of replication controllers, which are replica sets under an older name."""

from __future__ import annotations

from pilothouse.controllers.manager.context import ControllerContext
from pilothouse.controllers.replica_sets.controller import ReplicaController
from pilothouse.controllers.replica_sets.kinds import REPLICATION_CONTROLLER


def start(context: ControllerContext) -> None:
    """Start the replication controller."""
    ReplicaController(context, REPLICATION_CONTROLLER).start(context.supervisor)
