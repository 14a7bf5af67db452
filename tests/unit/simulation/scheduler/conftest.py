from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from pilothouse.machinery.objects import Object
from pilothouse.simulation.scheduler.cluster_view import ClusterView, DeviceView
from pilothouse.simulation.scheduler.devices.ledger import DeviceLedger
from pilothouse.simulation.scheduler.pod_info import PodInfo
from pilothouse.simulation.scheduler.snapshot import Snapshot


class Cluster:
    """A cluster in memory: nodes, pods on them, and other objects by kind."""

    def __init__(self) -> None:
        self.snapshot = Snapshot()
        self.ledger = DeviceLedger()
        self.objects: dict[str, dict[tuple[str, str], Object]] = {}
        self._uids = 0

    @property
    def view(self) -> ClusterView:
        def get(kind: str) -> Callable[[str, str], Object | None]:
            return lambda namespace, name: self.objects.get(kind, {}).get((namespace, name))

        def listed(kind: str) -> Callable[[str], list[Object]]:
            return lambda namespace: [
                obj for (where, _), obj in self.objects.get(kind, {}).items() if namespace in ("", where)
            ]

        return ClusterView(
            snapshot=self.snapshot,
            namespace=get("namespace"),
            claim=get("claim"),
            volume=get("volume"),
            volumes=listed("volume"),
            storage_class=get("class"),
            csi_node=get("csinode"),
            csi_driver=get("csidriver"),
            capacities=listed("capacity"),
            services=listed("service"),
            replica_set=get("replicaset"),
            stateful_set=get("statefulset"),
            replication_controller=get("replicationcontroller"),
            disruption_budgets=listed("budget"),
            devices=DeviceView(
                claim=get("resourceclaim"),
                pod_group=get("podgroup"),
                claims_of_owner=lambda uid: [
                    claim
                    for claim in self.objects.get("resourceclaim", {}).values()
                    if any(each["uid"] == uid for each in claim["metadata"].get("ownerReferences") or ())
                ],
                device_class=get("deviceclass"),
                device_classes=listed("deviceclass"),
                slices=listed("slice"),
                taint_rules=listed("taintrule"),
                ledger=self.ledger,
            ),
        )

    def put(self, kind: str, obj: Object) -> None:
        metadata = obj["metadata"]
        self.objects.setdefault(kind, {})[(metadata.get("namespace", ""), metadata["name"])] = obj

    def node(self, name: str, cpu: str = "4", memory: str = "8Gi", pods: str = "110", **more: Any) -> None:
        labels = {"kubernetes.io/hostname": name, **more.pop("labels", {})}
        status = {"allocatable": {"cpu": cpu, "memory": memory, "pods": pods, **more.pop("allocatable", {})}}
        self.snapshot.set_node({"metadata": {"name": name, "labels": labels}, "spec": more, "status": status})

    def pod(
        self,
        name: str,
        node: str = "",
        *,
        cpu: str = "",
        labels: dict[str, str] | None = None,
        namespace: str = "default",
        status: Object | None = None,
        **spec: Any,
    ) -> PodInfo:
        self._uids += 1
        container: Object = {"name": "c", "image": "i"}
        if cpu:
            container["resources"] = {"requests": {"cpu": cpu}}
        if "ports" in spec:
            container["ports"] = spec.pop("ports")
        metadata = {"name": name, "namespace": namespace, "uid": f"uid-{self._uids}", "labels": labels or {}}
        made = PodInfo({"metadata": metadata, "spec": {"containers": [container], **spec}, "status": status or {}})
        if node:
            self.snapshot.add_pod(made, node)
        return made


@pytest.fixture
def cluster() -> Cluster:
    return Cluster()
