"""Which nodes a daemon set means, what its pods look like, and which node each of them is for.

The scheduler binds daemon pods as it does others; each asks for its node by a required affinity to the node's name.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final, NamedTuple

from pilothouse.controllers.runtime.node_selection import NO_EXECUTE, NodeTest, required_nodes, untolerated
from pilothouse.controllers.runtime.owners import controller_reference
from pilothouse.controllers.runtime.pod_control import pod_from_template
from pilothouse.controllers.runtime.pods import is_terminal
from pilothouse.machinery.objects import Object

HASH: Final = "controller-revision-hash"
_GENERATION: Final = "pod-template-generation"
_GENERATION_ANNOTATION: Final = "deprecated.daemonset.template.generation"
_REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"
_TOLERATED: Final = (
    ("not-ready", "NoExecute"),
    ("unreachable", "NoExecute"),
    ("disk-pressure", "NoSchedule"),
    ("memory-pressure", "NoSchedule"),
    ("pid-pressure", "NoSchedule"),
    ("unschedulable", "NoSchedule"),
)


class _Node(NamedTuple):
    name: str
    labels: dict[str, str]


class Suitability(NamedTuple):
    """Whether a node is to get a daemon pod, and whether it may keep one."""

    runs: bool
    keeps: bool


def tolerations_of(spec: Object) -> list[Object]:
    """The tolerations of daemon pods: those of the template, and those that let them stay on ailing nodes."""
    wanted = [*_TOLERATED, *([("network-unavailable", "NoSchedule")] if spec.get("hostNetwork") else [])]
    added = [{"key": f"node.kubernetes.io/{name}", "operator": "Exists", "effect": effect} for name, effect in wanted]
    given = [each for each in spec.get("tolerations") or () if not any(_is_about(each, one) for one in added)]
    return [*given, *added]


def _is_about(given: Object, added: Object) -> bool:
    return (given.get("key"), given.get("effect")) == (added["key"], added["effect"]) and given.get(
        "operator"
    ) == "Exists"


class Placement:
    """The nodes of one daemon set."""

    def __init__(self, daemon_set: Object) -> None:
        spec = daemon_set["spec"]["template"]["spec"]
        self._tolerations = tolerations_of(spec)
        self._test: NodeTest | None = required_nodes(spec)
        self._name = spec.get("nodeName") or ""

    def suits(self, node: Object) -> Suitability:
        """Whether the daemon set means a node."""
        metadata = node["metadata"]
        if self._name not in ("", metadata["name"]):
            return Suitability(False, False)
        if self._test is not None and not self._test(_Node(metadata["name"], metadata.get("labels") or {})):
            return Suitability(False, False)
        taints = node["spec"].get("taints") or ()
        if untolerated(taints, self._tolerations) is None:
            return Suitability(True, True)
        return Suitability(False, untolerated(taints, self._tolerations, (NO_EXECUTE,)) is None)


def make_pod(daemon_set: Object, node: str, digest: str) -> Object:
    """The daemon pod for a node."""
    reference = controller_reference(daemon_set, "DaemonSet", "apps/v1")
    pod = pod_from_template(daemon_set["spec"]["template"], daemon_set, reference)
    labels = pod["metadata"].setdefault("labels", {})
    generation = template_generation(daemon_set)
    if generation is not None:
        labels[_GENERATION] = generation
    labels[HASH] = digest
    spec = pod["spec"]
    spec["tolerations"] = tolerations_of(spec)
    affinity = spec.get("affinity") or {}
    field = {"key": "metadata.name", "operator": "In", "values": [node]}
    required = {_REQUIRED: {"nodeSelectorTerms": [{"matchFields": [field]}]}}
    spec["affinity"] = {**affinity, "nodeAffinity": {**(affinity.get("nodeAffinity") or {}), **required}}
    return pod


def template_generation(daemon_set: Object) -> str | None:
    """The number of the template, as an old version of the API counted them."""
    text: str | None = (daemon_set["metadata"].get("annotations") or {}).get(_GENERATION_ANNOTATION)
    return text if text is not None and text.isdigit() else None


def is_updated(daemon_set: Object, pod: Object, digest: str) -> bool:
    """Whether a pod was made from the present template."""
    labels: dict[str, Any] = pod["metadata"].get("labels") or {}
    generation = template_generation(daemon_set)
    return labels.get(HASH) == digest or (generation is not None and labels.get(_GENERATION) == generation)


def node_of(pod: Object) -> str:
    """The node that a daemon pod is for, bound to it or not; nothing if it does not say."""
    if pod["spec"].get("nodeName"):
        return str(pod["spec"]["nodeName"])
    affinity = (pod["spec"].get("affinity") or {}).get("nodeAffinity") or {}
    for term in (affinity.get(_REQUIRED) or {}).get("nodeSelectorTerms") or ():
        for field in term.get("matchFields") or ():
            if (field["key"], field["operator"]) == ("metadata.name", "In"):
                return str(field["values"][0]) if len(field["values"]) == 1 else ""
    return ""


def by_node(pods: Iterable[Object]) -> dict[str, list[Object]]:
    """Pods by the node that they are for. Those that have ended and are being deleted are in nobody's way."""
    found: dict[str, list[Object]] = {}
    for pod in pods:
        node = node_of(pod)
        if node and not (is_terminal(pod) and pod["metadata"].get("deletionTimestamp")):
            found.setdefault(node, []).append(pod)
    return found


def oldest_first(pods: Iterable[Object]) -> list[Object]:
    """Pods in the order of their worth: bound ones first, then by age."""
    return sorted(
        pods,
        key=lambda pod: (
            not pod["spec"].get("nodeName"),
            pod["metadata"]["creationTimestamp"],
            pod["metadata"]["name"],
        ),
    )
