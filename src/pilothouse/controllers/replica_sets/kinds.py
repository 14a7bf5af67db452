"""What is different about the two kinds that one controller serves."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from pilothouse.controllers.runtime.indexer import read_selected_labels, read_selector
from pilothouse.controllers.runtime.selecting import match_labels, plain_selector
from pilothouse.machinery import labels
from pilothouse.machinery.objects import Object


@dataclass(frozen=True, slots=True)
class ReplicaKind:
    """A kind with replicas and a template."""

    group: str
    resource: str
    kind: str
    controller: str
    account: str
    read_selector: Callable[[Object], labels.Selector]
    required_labels: Callable[[Object], Mapping[str, Any]]
    counts_terminating: bool

    @property
    def api_version(self) -> str:
        """The apiVersion of its objects."""
        return f"{self.group}/v1" if self.group else "v1"


REPLICA_SET: Final = ReplicaKind(
    "apps",
    "replicasets",
    "ReplicaSet",
    "replicaset-controller",
    "replicaset-controller",
    read_selector,
    match_labels,
    counts_terminating=True,
)
REPLICATION_CONTROLLER: Final = ReplicaKind(
    "",
    "replicationcontrollers",
    "ReplicationController",
    "replication-controller",
    "replication-controller",
    read_selected_labels,
    plain_selector,
    counts_terminating=False,
)
