"""Workloads through extensions/v1beta1, apps/v1beta1 and apps/v1beta2: what each fills in, and what rules it lacks.

                        extensions      apps/v1beta1    apps/v1beta2
    labels, selector    the template's  the template's  must be given
    surge, unavailable  1, 1            25%, 25%        25%, 25%
    revisions kept      all             2               10
    progress deadline   none            600 s           600 s
    daemons update      OnDelete                        RollingUpdate
    stateful update                     OnDelete        RollingUpdate
    selector may change always          deployments     never

Deleting through any of them leaves dependents behind unless told otherwise. What was the fields ``rollbackTo`` and
``templateGeneration`` are annotations today.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar, Final

from pilothouse.apis.apps.daemon_set import TEMPLATE_GENERATION, DaemonSetStrategy
from pilothouse.apis.apps.deployment import ROLLBACK, DeploymentStrategy
from pilothouse.apis.apps.replica_set import ReplicaSetStrategy
from pilothouse.apis.apps.stateful_set import StatefulSetStrategy
from pilothouse.apis.legacy.older import Older
from pilothouse.apis.strategy_rules import DeletionRules
from pilothouse.machinery.objects import Object

UNLIMITED: Final = 2**31 - 1
_SHOWN: Final = ("status.observedGeneration",)
ORPHANS: Final = DeletionRules(orphans_by_default=True)


class OrphaningDeployments(DeploymentStrategy):
    """Deployments whose replica sets outlive them."""

    deletion_rules: ClassVar[DeletionRules] = ORPHANS


class OrphaningReplicaSets(ReplicaSetStrategy):
    """Replica sets whose pods outlive them."""

    deletion_rules: ClassVar[DeletionRules] = ORPHANS


class OrphaningDaemonSets(DaemonSetStrategy):
    """Daemon sets whose pods outlive them."""

    deletion_rules: ClassVar[DeletionRules] = ORPHANS


class OrphaningStatefulSets(StatefulSetStrategy):
    """Stateful sets whose pods outlive them."""

    deletion_rules: ClassVar[DeletionRules] = ORPHANS


class FreeDeployments(OrphaningDeployments):
    """The same with a selector that may change."""

    keeps_selector: ClassVar[bool] = False


class FreeReplicaSets(OrphaningReplicaSets):
    """The same with a selector that may change."""

    keeps_selector: ClassVar[bool] = False


class FreeDaemonSets(OrphaningDaemonSets):
    """The same with a selector that may change."""

    keeps_selector: ClassVar[bool] = False


def label_like_pods(obj: Object) -> None:
    """A workload that says nothing of labels has its pods', and selects by them."""
    labels = (obj["spec"].get("template") or {}).get("metadata", {}).get("labels")
    if labels is None:
        return
    if obj["spec"].get("selector") is None:
        obj["spec"]["selector"] = {"matchLabels": dict(labels)}
    if not obj["metadata"].get("labels"):
        obj["metadata"]["labels"] = dict(labels)


def default_extensions_deployment(obj: Object) -> None:
    label_like_pods(obj)
    spec = obj["spec"]
    if spec.get("progressDeadlineSeconds") is None:
        spec["progressDeadlineSeconds"] = UNLIMITED
    if spec.get("revisionHistoryLimit") is None:
        spec["revisionHistoryLimit"] = UNLIMITED
    strategy = spec["strategy"]
    if strategy.get("type") in (None, "", "RollingUpdate"):
        rolling = strategy.setdefault("rollingUpdate", {})
        rolling.setdefault("maxUnavailable", 1)
        rolling.setdefault("maxSurge", 1)


def default_v1beta1_deployment(obj: Object) -> None:
    label_like_pods(obj)
    if obj["spec"].get("revisionHistoryLimit") is None:
        obj["spec"]["revisionHistoryLimit"] = 2


def default_extensions_daemon_set(obj: Object) -> None:
    label_like_pods(obj)
    if not obj["spec"]["updateStrategy"].get("type"):
        obj["spec"]["updateStrategy"]["type"] = "OnDelete"


def default_v1beta1_stateful_set(obj: Object) -> None:
    label_like_pods(obj)
    if not obj["spec"]["updateStrategy"].get("type"):
        obj["spec"]["updateStrategy"]["type"] = "OnDelete"


def from_rollback(obj: Object) -> Object:
    """``rollbackTo`` becomes an annotation, which it replaces."""
    wanted = obj["spec"].pop("rollbackTo", None)
    return _annotated(obj, ROLLBACK, None if wanted is None else str(wanted.get("revision", 0)))


def to_rollback(obj: Object) -> Object:
    """The annotation becomes ``rollbackTo``."""
    text = (obj["metadata"].get("annotations") or {}).get(ROLLBACK)
    if text is None:
        return obj
    rollback = {"revision": int(text)} if int(text) else {}
    return _annotated({**obj, "spec": {**obj["spec"], "rollbackTo": rollback}}, ROLLBACK, None)


def from_template_generation(obj: Object) -> Object:
    """``templateGeneration`` becomes an annotation, which it replaces."""
    return _annotated(obj, TEMPLATE_GENERATION, str(obj["spec"].pop("templateGeneration", 0)))


def to_template_generation(obj: Object) -> Object:
    """The annotation becomes ``templateGeneration``."""
    count = int((obj["metadata"].get("annotations") or {}).get(TEMPLATE_GENERATION, 0))
    return _annotated({**obj, "spec": {**obj["spec"], "templateGeneration": count}}, TEMPLATE_GENERATION, None)


def to_observed(obj: Object) -> Object:
    """The first stateful sets always said which generation was seen."""
    status = obj.get("status") or {}
    return {**obj, "status": {**status, "observedGeneration": status.get("observedGeneration", 0)}}


def _annotated(obj: Object, name: str, value: str | None) -> Object:
    """The object with an annotation, or without it."""
    metadata = dict(obj["metadata"])
    annotations = {key: text for key, text in (metadata.get("annotations") or {}).items() if key != name}
    if value is not None:
        annotations[name] = value
    if annotations:
        metadata["annotations"] = annotations
    elif metadata.get("annotations"):
        metadata.pop("annotations")
    return {**obj, "metadata": metadata}


def rolling_back(default: Callable[[Object], None]) -> Older:
    """Deployments that have ``rollbackTo``."""
    return Older(from_rollback, to_rollback, default, FreeDeployments, unowned=())


EXTENSIONS: Final = {
    ("v1beta1", "deployments"): rolling_back(default_extensions_deployment),
    ("v1beta1", "daemonsets"): Older(
        from_template_generation, to_template_generation, default_extensions_daemon_set, FreeDaemonSets, unowned=()
    ),
    ("v1beta1", "replicasets"): Older(default=label_like_pods, strategy=FreeReplicaSets, unowned=()),
}
APPS: Final = {
    ("v1beta1", "deployments"): rolling_back(default_v1beta1_deployment),
    ("v1beta1", "statefulsets"): Older(
        from_hub=to_observed, default=default_v1beta1_stateful_set, strategy=OrphaningStatefulSets, unowned=_SHOWN
    ),
    ("v1beta2", "deployments"): Older(strategy=OrphaningDeployments, unowned=()),
    ("v1beta2", "daemonsets"): Older(strategy=OrphaningDaemonSets, unowned=()),
    ("v1beta2", "replicasets"): Older(strategy=OrphaningReplicaSets, unowned=()),
    ("v1beta2", "statefulsets"): Older(strategy=OrphaningStatefulSets, unowned=()),
}
