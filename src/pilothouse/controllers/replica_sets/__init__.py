"""Replica sets and replication controllers: so many pods of a template, no more and no fewer."""

from __future__ import annotations

from pilothouse.controllers.manager.context import ControllerContext
from pilothouse.controllers.replica_sets.controller import ReplicaController
from pilothouse.controllers.replica_sets.kinds import REPLICA_SET


def start(context: ControllerContext) -> None:
    """Start the replica set controller."""
    ReplicaController(context, REPLICA_SET).start(context.supervisor)
