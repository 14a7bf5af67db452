"""All that scheduling decisions look at: the snapshot of nodes and pods, and listers of the few other kinds."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from pilothouse.machinery.objects import Object
from pilothouse.simulation.scheduler.devices.ledger import DeviceLedger
from pilothouse.simulation.scheduler.snapshot import Snapshot

Get = Callable[[str, str], Object | None]
"""An object by namespace (empty for kinds without one) and name."""
List = Callable[[str], Iterable[Object]]
"""The objects of a namespace; of all where the namespace is empty."""


@dataclass(frozen=True, slots=True)
class DeviceView:
    """What there is to allocate, and what is allocated."""

    claim: Get
    pod_group: Get
    claims_of_owner: List
    """The claims that an object with this uid controls."""
    device_class: Get
    device_classes: List
    slices: List
    taint_rules: List
    ledger: DeviceLedger


@dataclass(frozen=True, slots=True)
class ClusterView:
    """What filters, scores and preemption read. Objects are shared with others: nobody changes them."""

    snapshot: Snapshot
    namespace: Get
    claim: Get
    volume: Get
    volumes: List
    storage_class: Get
    csi_node: Get
    csi_driver: Get
    capacities: List
    services: List
    replica_set: Get
    stateful_set: Get
    replication_controller: Get
    disruption_budgets: List
    devices: DeviceView

    def namespace_labels(self, name: str) -> Mapping[str, str]:
        """The labels of a namespace; none where it is not known."""
        found = self.namespace("", name)
        labels: Mapping[str, str] = {} if found is None else found["metadata"].get("labels") or {}
        return labels
