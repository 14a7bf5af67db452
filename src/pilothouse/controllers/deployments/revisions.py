"""The replica sets of a deployment: which belongs to the present template, its revision, and what it says."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from pilothouse.controllers.deployments.limits import max_surge, replicas_of
from pilothouse.controllers.runtime.indexer import copy_of
from pilothouse.controllers.runtime.owners import controller_reference
from pilothouse.controllers.runtime.template_hash import template_hash
from pilothouse.machinery.objects import Object

HASH_LABEL: Final = "pod-template-hash"
REVISION: Final = "deployment.kubernetes.io/revision"
HISTORY: Final = "deployment.kubernetes.io/revision-history"
DESIRED: Final = "deployment.kubernetes.io/desired-replicas"
MOST: Final = "deployment.kubernetes.io/max-replicas"
NOT_COPIED: Final = frozenset(
    (
        "kubectl.kubernetes.io/last-applied-configuration",
        REVISION,
        HISTORY,
        DESIRED,
        MOST,
        "deprecated.deployment.rollback.to",
    )
)
_LONGEST_HISTORY: Final = 2000
_LONGEST_NAME: Final = 253


def same_template(one: Object, other: Object) -> bool:
    """Whether two templates are equal but for the label that tells revisions apart."""
    return without_hash(one) == without_hash(other)


def without_hash(template: Object) -> Object:
    """A template without the label that tells revisions apart."""
    metadata = template.get("metadata") or {}
    labels = {name: value for name, value in (metadata.get("labels") or {}).items() if name != HASH_LABEL}
    rest = {name: value for name, value in metadata.items() if name not in ("labels", "creationTimestamp") and value}
    return {**template, "metadata": {**rest, "labels": labels}}


def by_age(replica_sets: Iterable[Object]) -> list[Object]:
    """The oldest first."""
    return sorted(replica_sets, key=lambda each: (each["metadata"]["creationTimestamp"], each["metadata"]["name"]))


def find_new(deployment: Object, replica_sets: Iterable[Object]) -> Object | None:
    """The replica set of the present template; of several the oldest."""
    template = deployment["spec"]["template"]
    return next((each for each in by_age(replica_sets) if same_template(each["spec"]["template"], template)), None)


def revision_of(obj: Object) -> int:
    """The revision of a replica set or a deployment; 0 if it says none."""
    try:
        return int((obj["metadata"].get("annotations") or {}).get(REVISION, "0"))
    except ValueError:
        return 0


def next_revision(old: Iterable[Object]) -> int:
    """The revision that the new replica set gets."""
    return max((revision_of(each) for each in old), default=0) + 1


def make_new(deployment: Object, revision: int, size: int) -> Object:
    """The replica set of the present template."""
    metadata, spec = deployment["metadata"], deployment["spec"]
    name = template_hash(spec["template"], (deployment.get("status") or {}).get("collisionCount"))
    given = spec["template"].get("metadata") or {}
    labels = {**(given.get("labels") or {}), HASH_LABEL: name}
    template = {**spec["template"], "metadata": {**given, "labels": labels}}
    selector = copy_of(spec["selector"])
    selector["matchLabels"] = {**(selector.get("matchLabels") or {}), HASH_LABEL: name}
    made: Object = {
        "metadata": {
            "name": f"{metadata['name'][: _LONGEST_NAME - 1 - len(name)]}-{name}",
            "namespace": metadata["namespace"],
            "labels": labels,
            "ownerReferences": [controller_reference(deployment, "Deployment", "apps/v1")],
        },
        "spec": {"replicas": size, "selector": selector, "template": template},
    }
    if spec.get("minReadySeconds"):
        made["spec"]["minReadySeconds"] = spec["minReadySeconds"]
    annotate(deployment, made, revision)
    made["metadata"]["annotations"] |= size_annotations(deployment)
    return made


def size_annotations(deployment: Object) -> dict[str, str]:
    """What proportional scaling later measures by."""
    wanted = replicas_of(deployment)
    return {DESIRED: str(wanted), MOST: str(wanted + max_surge(deployment))}


def annotate(deployment: Object, replica_set: Object, revision: int) -> bool:
    """Give a replica set the deployment's annotations and its revision; whether anything changed."""
    annotations: dict[str, str] = replica_set["metadata"].setdefault("annotations", {})
    before = dict(annotations)
    given: dict[str, str] = deployment["metadata"].get("annotations") or {}
    annotations |= {name: value for name, value in given.items() if name not in NOT_COPIED}
    old = revision_of(replica_set)
    if old < revision:
        annotations[REVISION] = str(revision)
        if old:
            annotations[HISTORY] = _append(annotations.get(HISTORY, ""), str(old))
    return annotations != before


def _append(history: str, revision: str) -> str:
    parts = [*(history.split(",") if history else ()), revision]
    while len(",".join(parts)) > _LONGEST_HISTORY:
        parts.pop(0)
    return ",".join(parts)


def to_clean_up(deployment: Object, old: Sequence[Object]) -> list[Object]:
    """Old replica sets beyond the limit of history that nothing depends on any more."""
    limit = deployment["spec"].get("revisionHistoryLimit")
    alive = [each for each in old if not each["metadata"].get("deletionTimestamp")]
    if limit is None or len(alive) <= limit:
        return []
    alive.sort(key=lambda each: (revision_of(each), each["metadata"]["creationTimestamp"]))
    return [each for each in alive[: len(alive) - limit] if _is_idle(each)]


def _is_idle(replica_set: Object) -> bool:
    status = replica_set.get("status") or {}
    observed = (status.get("observedGeneration") or 0) >= (replica_set["metadata"].get("generation") or 0)
    return not status.get("replicas") and not replicas_of(replica_set) and observed
