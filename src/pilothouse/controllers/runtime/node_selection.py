"""Which nodes a pod itself asks for: node selectors, node affinity, and tolerated taints."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Final, Protocol

from pilothouse.controllers.runtime.tolerations import tolerates
from pilothouse.machinery.objects import Object


class NodeFacts(Protocol):
    """What is asked of a node."""

    @property
    def name(self) -> str: ...

    @property
    def labels(self) -> Mapping[str, str]: ...


NodeTest = Callable[[NodeFacts], bool]
NO_SCHEDULE: Final = "NoSchedule"
PREFER_NO_SCHEDULE: Final = "PreferNoSchedule"
NO_EXECUTE: Final = "NoExecute"
UNSCHEDULABLE_TAINT: Final[Object] = {"key": "node.kubernetes.io/unschedulable", "effect": NO_SCHEDULE}


def required_nodes(spec: Object) -> NodeTest | None:
    """The test that the pod's node selector and required affinity make; None where any node will do."""
    selector: Mapping[str, str] = spec.get("nodeSelector") or {}
    affinity = (spec.get("affinity") or {}).get("nodeAffinity") or {}
    required = affinity.get("requiredDuringSchedulingIgnoredDuringExecution")
    if not selector and required is None:
        return None
    terms = None if required is None else [matching_term(term) for term in required["nodeSelectorTerms"]]

    def test(info: NodeFacts) -> bool:
        if any(info.labels.get(key) != value for key, value in selector.items()):
            return False
        return terms is None or any(term(info) for term in terms)

    return test


def matches_terms(selector: Object, info: NodeFacts) -> bool:
    """Whether a node selector (of a volume, say) means this node."""
    return any(matching_term(term)(info) for term in selector.get("nodeSelectorTerms") or ())


def matching_term(term: Object) -> NodeTest:
    """The test of one term; a term that says nothing matches nothing."""
    expressions = term.get("matchExpressions") or ()
    fields = term.get("matchFields") or ()
    if not expressions and not fields:
        return lambda info: False

    def test(info: NodeFacts) -> bool:
        own = {"metadata.name": info.name}
        return all(_meets(each, info.labels) for each in expressions) and all(_meets(each, own) for each in fields)

    return test


def _meets(requirement: Object, labels: Mapping[str, str]) -> bool:
    operator: str = requirement["operator"]
    values: list[str] = requirement.get("values") or []
    value = labels.get(requirement["key"])
    if operator == "In":
        return value is not None and value in values
    if operator == "NotIn":
        return value is None or value not in values
    if operator == "Exists":
        return value is not None
    if operator == "DoesNotExist":
        return value is None
    return value is not None and _compares(operator, value, values[0])


def _compares(operator: str, value: str, limit: str) -> bool:
    try:
        return int(value) > int(limit) if operator == "Gt" else int(value) < int(limit)
    except ValueError:
        return False


def untolerated(
    taints: Iterable[Object], tolerations: Iterable[Object], effects: tuple[str, ...] = (NO_SCHEDULE, NO_EXECUTE)
) -> Object | None:
    """The first taint of these effects that no toleration covers."""
    tolerations = list(tolerations)
    for taint in taints:
        if taint["effect"] in effects and not any(tolerates(each, taint) for each in tolerations):
            return taint
    return None
