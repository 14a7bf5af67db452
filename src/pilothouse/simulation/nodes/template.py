"""What a simulated node looks like: a Node as its kubelet would register it, how it changes, and its devices."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from pilothouse import KUBERNETES_VERSION
from pilothouse.controllers.runtime.indexer import copy_of
from pilothouse.machinery.objects import Object
from pilothouse.machinery.times import Instant, format_time

_CAPACITY: Final = {
    "cpu": "16",
    "memory": "64Gi",
    "ephemeral-storage": "200Gi",
    "hugepages-1Gi": "0",
    "hugepages-2Mi": "0",
    "pods": "110",
}
_CONDITIONS: Final = (
    ("MemoryPressure", "False", "KubeletHasSufficientMemory", "kubelet has sufficient memory available"),
    ("DiskPressure", "False", "KubeletHasNoDiskPressure", "kubelet has no disk pressure"),
    ("PIDPressure", "False", "KubeletHasSufficientPID", "kubelet has sufficient PID available"),
    ("Ready", "True", "KubeletReady", "kubelet is posting ready status"),
)


class TemplateError(ValueError):
    """A template that is neither a Node nor a ResourceSlice."""


@dataclass(frozen=True, slots=True)
class Template:
    """What nodes look like, each of them in its turn, and what devices every one of them has."""

    nodes: Sequence[Object] = ()
    slices: Sequence[Object] = ()

    def node(self, number: int) -> Object | None:
        """What the node of this number looks like; None leaves everything to the defaults."""
        return self.nodes[number % len(self.nodes)] if self.nodes else None


def read_template(documents: Iterable[Any]) -> Template:
    """Nodes and resource slices from the documents of a file; anything else is refused."""
    listed = [each for each in documents if each is not None]
    for each in listed:
        if not isinstance(each, dict) or each.get("kind") not in ("Node", "ResourceSlice"):
            raise TemplateError("a template of nodes has documents of the kinds Node and ResourceSlice")
        if each["kind"] == "ResourceSlice" and not (each.get("spec") or {}).get("driver"):
            raise TemplateError("a template of a ResourceSlice names its driver")
    return Template(
        [each for each in listed if each["kind"] == "Node"],
        [each for each in listed if each["kind"] == "ResourceSlice"],
    )


def make_slice(template: Object, number: int, count: int, node: Object) -> Object:
    """The slice number so-and-so, of so many of its driver, of a node: a pool of the node's name, local to the node."""
    name, spec = node["metadata"]["name"], copy_of(template["spec"])
    owner = {"apiVersion": "v1", "kind": "Node", "name": name, "uid": node["metadata"]["uid"], "controller": True}
    metadata = copy_of(template.get("metadata") or {})
    metadata |= {"name": f"{name}-{spec['driver']}-{number}", "ownerReferences": [owner]}
    for field in ("allNodes", "nodeSelector", "perDeviceNodeSelection"):
        spec.pop(field, None)
    spec |= {"nodeName": name, "pool": {"name": name, "generation": 1, "resourceSliceCount": count}}
    return {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceSlice", "metadata": metadata, "spec": spec}


def make_node(name: str, address: str, port: int, template: Object | None, now: Instant) -> Object:
    """The Node to register. The template's own labels, taints, capacity and conditions hold."""
    node = copy_of(template or {})
    metadata = node.setdefault("metadata", {})
    metadata["name"] = name
    labels = {
        "beta.kubernetes.io/arch": "amd64",
        "beta.kubernetes.io/os": "linux",
        "kubernetes.io/arch": "amd64",
        "kubernetes.io/hostname": name,
        "kubernetes.io/os": "linux",
    }
    metadata["labels"] = labels | (metadata.get("labels") or {})
    metadata["annotations"] = {
        "volumes.kubernetes.io/controller-managed-attach-detach": "true",
        "simulation.pilothouse.dev/node": "true",
    } | (metadata.get("annotations") or {})
    node |= {"apiVersion": "v1", "kind": "Node"}
    node.setdefault("spec", {})
    status = node.setdefault("status", {})
    status["capacity"] = _CAPACITY | (status.get("capacity") or {})
    status["allocatable"] = status["capacity"] | (status.get("allocatable") or {})
    status.setdefault("addresses", [{"type": "InternalIP", "address": address}, {"type": "Hostname", "address": name}])
    status.setdefault("daemonEndpoints", {"kubeletEndpoint": {"Port": port}})
    status.setdefault("nodeInfo", _node_info(name))
    status["conditions"] = conditions(status.get("conditions") or [], now)
    return node


def conditions(known: list[dict[str, Any]], now: Instant) -> list[dict[str, Any]]:
    """The conditions of a node that is well, with a fresh heartbeat; others that are known stay."""
    at = format_time(now)
    before = {each["type"]: each for each in known}
    fresh: list[dict[str, Any]] = []
    for type, status, reason, message in _CONDITIONS:
        old = before.pop(type, None)
        unchanged = old is not None and old.get("status") == status and old.get("lastTransitionTime")
        since = old["lastTransitionTime"] if old is not None and unchanged else at
        fresh.append(
            {
                "type": type,
                "status": status,
                "reason": reason,
                "message": message,
                "lastHeartbeatTime": at,
                "lastTransitionTime": since,
            }
        )
    return [*before.values(), *fresh]


def _node_info(name: str) -> dict[str, Any]:
    ids = hashlib.sha256(name.encode()).hexdigest()
    return {
        "architecture": "amd64",
        "bootID": _uuid(ids[32:]),
        "containerRuntimeVersion": "simulated://1.0",
        "kernelVersion": "6.1.0",
        "kubeProxyVersion": f"v{KUBERNETES_VERSION}.0",
        "kubeletVersion": f"v{KUBERNETES_VERSION}.0",
        "machineID": ids[:32],
        "operatingSystem": "linux",
        "osImage": "Simulated Linux",
        "systemUUID": _uuid(ids[:32]),
    }


def _uuid(digits: str) -> str:
    return f"{digits[:8]}-{digits[8:12]}-{digits[12:16]}-{digits[16:20]}-{digits[20:32]}"
