"""What users of workload kinds may leave open. Everything is idempotent and in place."""

from __future__ import annotations

from pilothouse.apis.core.persistent_volume_claim import default_claim
from pilothouse.apis.core.pod_spec.defaults import default_pod_template
from pilothouse.apis.strategy import Object


def default_deployment(obj: Object) -> None:
    """One replica, rolled over by quarters, with ten revisions to go back to."""
    spec = obj["spec"]
    if spec.get("replicas") is None:
        spec["replicas"] = 1
    strategy = spec["strategy"]
    if not strategy.get("type"):
        strategy["type"] = "RollingUpdate"
    if strategy["type"] == "RollingUpdate":
        rolling = strategy.setdefault("rollingUpdate", {})
        rolling.setdefault("maxUnavailable", "25%")
        rolling.setdefault("maxSurge", "25%")
    if spec.get("revisionHistoryLimit") is None:
        spec["revisionHistoryLimit"] = 10
    if spec.get("progressDeadlineSeconds") is None:
        spec["progressDeadlineSeconds"] = 600
    default_pod_template(spec["template"])


def default_replica_set(obj: Object) -> None:
    """One replica."""
    spec = obj["spec"]
    if spec.get("replicas") is None:
        spec["replicas"] = 1
    default_pod_template(spec.setdefault("template", {"metadata": {}, "spec": {"containers": None}}))


def default_stateful_set(obj: Object, *, with_unavailable: bool = True) -> None:
    """One replica, made and updated in order, claims kept."""
    spec = obj["spec"]
    if not spec.get("podManagementPolicy"):
        spec["podManagementPolicy"] = "OrderedReady"
    strategy = spec["updateStrategy"]
    if not strategy.get("type"):
        strategy["type"] = "RollingUpdate"
        strategy.setdefault("rollingUpdate", {})
    rolling = strategy.get("rollingUpdate")
    if strategy["type"] == "RollingUpdate" and rolling is not None:
        rolling.setdefault("partition", 0)
        if with_unavailable:
            rolling.setdefault("maxUnavailable", 1)
    retention = spec.setdefault("persistentVolumeClaimRetentionPolicy", {})
    for key in ("whenDeleted", "whenScaled"):
        if not retention.get(key):
            retention[key] = "Retain"
    if spec.get("replicas") is None:
        spec["replicas"] = 1
    if spec.get("revisionHistoryLimit") is None:
        spec["revisionHistoryLimit"] = 10
    default_pod_template(spec["template"])
    for claim in spec.get("volumeClaimTemplates") or ():
        claim["kind"], claim["apiVersion"] = "PersistentVolumeClaim", "v1"
        default_claim(claim)


def default_daemon_set(obj: Object) -> None:
    """Rolled over one node at a time, with ten revisions to go back to."""
    spec = obj["spec"]
    strategy = spec["updateStrategy"]
    if not strategy.get("type"):
        strategy["type"] = "RollingUpdate"
    if strategy["type"] == "RollingUpdate":
        rolling = strategy.setdefault("rollingUpdate", {})
        rolling.setdefault("maxUnavailable", 1)
        rolling.setdefault("maxSurge", 0)
    elif strategy.get("rollingUpdate") is not None:
        for key in ("maxUnavailable", "maxSurge"):  # the original holds numbers here, which cannot be absent
            strategy["rollingUpdate"].setdefault(key, 0)
    if spec.get("revisionHistoryLimit") is None:
        spec["revisionHistoryLimit"] = 10
    default_pod_template(spec["template"])
