"""What stays with a pod of a stateful set through all its lives: its ordinal, its name, its storage."""

from __future__ import annotations

import re
from typing import Final

from pilothouse.controllers.runtime.indexer import copy_of
from pilothouse.controllers.runtime.owners import controller_reference
from pilothouse.controllers.runtime.pod_control import pod_from_template
from pilothouse.machinery.objects import Object

POD_NAME: Final = "statefulset.kubernetes.io/pod-name"
POD_INDEX: Final = "apps.kubernetes.io/pod-index"
REVISION: Final = "controller-revision-hash"
_NAME: Final = re.compile(r"(.*)-([0-9]+)")
_MAX_INT32: Final = 2**31 - 1


def first_ordinal(stateful_set: Object) -> int:
    """The ordinal of the first pod."""
    return int((stateful_set["spec"].get("ordinals") or {}).get("start") or 0)


def replicas_of(stateful_set: Object) -> int:
    """How many pods are wanted."""
    return int(stateful_set["spec"].get("replicas", 1))


def parent_and_ordinal(name: str) -> tuple[str, int]:
    """The set that a pod's name speaks of, and the ordinal; -1 if there is none."""
    match = _NAME.fullmatch(name)
    if match is None:
        return "", -1
    ordinal = int(match[2])
    return match[1], ordinal if ordinal <= _MAX_INT32 else -1


def ordinal_of(pod: Object) -> int:
    """The ordinal of a pod."""
    return parent_and_ordinal(pod["metadata"]["name"])[1]


def is_member(stateful_set: Object, pod: Object) -> bool:
    """Whether a pod is named as those of the set are."""
    return bool(parent_and_ordinal(pod["metadata"]["name"])[0] == stateful_set["metadata"]["name"])


def is_wanted(stateful_set: Object, pod: Object) -> bool:
    """Whether the pod's ordinal is among those that the set has now."""
    first = first_ordinal(stateful_set)
    return first <= ordinal_of(pod) < first + replicas_of(stateful_set)


def revision_of(pod: Object) -> str:
    """The name of the revision that a pod was made from."""
    return str((pod["metadata"].get("labels") or {}).get(REVISION, ""))


def claim_name(stateful_set: Object, template: Object, ordinal: int) -> str:
    """The name of a pod's claim."""
    return f"{template['metadata']['name']}-{stateful_set['metadata']['name']}-{ordinal}"


def claims_of(stateful_set: Object, ordinal: int) -> dict[str, Object]:
    """A pod's claims, by the name of their volume."""
    claims = {}
    matched = stateful_set["spec"]["selector"].get("matchLabels") or {}
    for template in stateful_set["spec"].get("volumeClaimTemplates") or ():
        claim = copy_of(template)
        claim.pop("status", None)
        metadata = claim["metadata"]
        metadata |= {
            "name": claim_name(stateful_set, template, ordinal),
            "namespace": stateful_set["metadata"]["namespace"],
        }
        labels = {**(metadata.get("labels") or {}), **matched}
        if labels:
            metadata["labels"] = labels
        claims[template["metadata"]["name"]] = claim
    return claims


def make_pod(stateful_set: Object, template: Object, revision: str, ordinal: int) -> Object:
    """The pod of an ordinal, from the template of a revision."""
    pod = pod_from_template(template, stateful_set, controller_reference(stateful_set, "StatefulSet", "apps/v1"))
    pod["metadata"]["name"] = f"{stateful_set['metadata']['name']}-{ordinal}"
    give_identity(stateful_set, pod)
    pod["metadata"]["labels"][REVISION] = revision
    pod["spec"]["hostname"] = pod["metadata"]["name"]
    if stateful_set["spec"].get("serviceName"):
        pod["spec"]["subdomain"] = stateful_set["spec"]["serviceName"]
    give_storage(stateful_set, pod)
    return pod


def give_identity(stateful_set: Object, pod: Object) -> None:
    """Label a pod with its name and its ordinal."""
    labels = pod["metadata"].setdefault("labels", {})
    labels |= {POD_NAME: pod["metadata"]["name"], POD_INDEX: str(ordinal_of(pod))}


def has_identity(stateful_set: Object, pod: Object) -> bool:
    """Whether a pod is named and labelled as it should be."""
    labels = pod["metadata"].get("labels") or {}
    return is_member(stateful_set, pod) and labels.get(POD_NAME) == pod["metadata"]["name"]


def give_storage(stateful_set: Object, pod: Object) -> None:
    """Let a pod's volumes be its claims."""
    claims = claims_of(stateful_set, ordinal_of(pod))
    if not claims:
        return
    volumes = [
        {"name": name, "persistentVolumeClaim": {"claimName": claim["metadata"]["name"]}}
        for name, claim in claims.items()
    ]
    pod["spec"]["volumes"] = [
        *volumes,
        *(each for each in pod["spec"].get("volumes") or () if each["name"] not in claims),
    ]


def has_storage(stateful_set: Object, pod: Object) -> bool:
    """Whether a pod's volumes are its claims."""
    volumes = {each["name"]: each.get("persistentVolumeClaim") for each in pod["spec"].get("volumes") or ()}
    claims = claims_of(stateful_set, ordinal_of(pod))
    return all(
        (volumes.get(name) or {}).get("claimName") == claim["metadata"]["name"] for name, claim in claims.items()
    )
