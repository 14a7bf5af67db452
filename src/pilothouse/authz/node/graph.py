"""Which node is entitled to which object, kept up to date by the objects that make the connection.

    pod → node                        a pod, and everything it refers to, is for the node it runs on
    volume → claim → pod → node       a persistent volume is for the nodes of its claim's pods
    secret → volume → …               so are the secrets needed to mount it
    attachment, slice, request → node by their own field

Fed by ``put`` and ``remove``, from sources that may still be reading what there is (``is_whole``). A question is a
lookup or two, however many pods share an object. Pods of one workload refer to the same objects: what they have in
common is kept once, whatever nodes they run on, and so are the names of namespaces.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from time import perf_counter
from typing import Any, Final, NamedTuple, Protocol

from pilothouse.authz.node.references import CLAIM, POD_FIELDS, SECRET, references_of_pod, secrets_of_volume
from pilothouse.machinery.metrics import Histogram, Instrument, doubling_buckets
from pilothouse.machinery.shared_texts import share_text

POD: Final = "pods"
VOLUME: Final = "persistentvolumes"
ATTACHMENT: Final = "volumeattachments"
SLICE: Final = "resourceslices"
CERTIFICATE_REQUEST: Final = "podcertificaterequests"

FIELDS: Final = {
    POD: POD_FIELDS,
    ATTACHMENT: ("spec.nodeName",),
    SLICE: ("spec.nodeName",),
    CERTIFICATE_REQUEST: ("spec.nodeName",),
}
"""What is looked at in objects of which not everything may be."""
_ACTIONS: Final = {
    POD: "Pod",
    VOLUME: "PV",
    ATTACHMENT: "VolumeAttachment",
    SLICE: "ResourceSlice",
    CERTIFICATE_REQUEST: "PodCertificateRequest",
}
_MOST_SHARED: Final = 8192
Vertex = tuple[str, str, str]
Edge = tuple[str, frozenset[Vertex]]
"""A node, and what is for it beside the object itself."""
_NOTHING: Final[frozenset[Vertex]] = frozenset()
_NO_EDGES: Final[Mapping[str, Edge]] = {}


class _Volume(NamedTuple):
    claim: Vertex
    secrets: frozenset[Vertex]


class GraphSource(Protocol):
    """Whoever tells the graph of the objects of one kind."""

    @property
    def has_synced(self) -> bool:
        """Whether all objects were told of."""

    async def wait_synced(self) -> None:
        """Return when they were."""


class Graph:
    """The connections between nodes and objects."""

    def __init__(self) -> None:
        self._sources: list[GraphSource] = []
        # For each object that others refer to, the nodes it is for, with the number of reasons.
        self._nodes: dict[Vertex, dict[str, int]] = {}
        self._edges: dict[tuple[str, str], dict[str, Edge]] = {}
        """By resource and namespace, then by name."""
        self._shared: dict[Edge, Edge] = {}
        self._shared_references: dict[frozenset[Vertex], frozenset[Vertex]] = {}
        self._volumes: dict[str, _Volume] = {}
        self._volumes_of_secret: dict[Vertex, set[str]] = {}
        self._actions = Histogram(
            "node_authorizer_graph_actions_duration_seconds",
            "[ALPHA] Seconds that changes of the node authorizer's graph took.",
            ("operation",),
            doubling_buckets(0.0001, 12),
        )

    def fed_by(self, source: GraphSource) -> None:
        """Until the source has told of everything, the graph is not whole."""
        self._sources.append(source)

    @property
    def is_whole(self) -> bool:
        """Whether all that exists is known here, so that what is not known is not so."""
        return all(source.has_synced for source in self._sources)

    async def wait_whole(self) -> None:
        """Return when everything is known."""
        for source in self._sources:
            await source.wait_synced()

    def put(self, resource: str, obj: Mapping[str, Any]) -> None:
        """An object of one of the watched resources was created or changed."""
        began = perf_counter()
        self._put(resource, obj)
        self._actions.labelled(f"Add{_ACTIONS[resource]}").observe(perf_counter() - began)

    def _put(self, resource: str, obj: Mapping[str, Any]) -> None:
        metadata = obj["metadata"]
        name, namespace = metadata["name"], metadata.get("namespace", "")
        if resource == VOLUME:
            self._put_volume(name, obj)
            return
        node = (obj.get("spec") or {}).get("nodeName", "")
        vertex = (resource, namespace, name)
        if resource == POD:
            if node:
                references = frozenset((kind, namespace, other) for kind, other in references_of_pod(obj))
                self._connect(vertex, (node, references))
        elif node:
            self._connect(vertex, (node, _NOTHING))
        else:
            self._disconnect(vertex)

    def remove(self, resource: str, namespace: str, name: str) -> None:
        """An object was deleted."""
        began = perf_counter()
        if resource == VOLUME:
            self._remove_volume(name)
        else:
            self._disconnect((resource, namespace, name))
        self._actions.labelled(f"Delete{_ACTIONS[resource]}").observe(perf_counter() - began)

    def instruments(self) -> list[Instrument]:
        """What ``/metrics`` shows."""
        return [self._actions]

    def entitled(self, node: str, resource: str, namespace: str, name: str) -> bool:
        """Whether an object is for the node."""
        vertex = (resource, namespace, name)
        if resource == VOLUME:
            volume = self._volumes.get(name)
            return volume is not None and self._holds(volume.claim, node)
        edge = self._edges.get((resource, namespace), _NO_EDGES).get(name)
        if edge is not None:
            return edge[0] == node
        if self._holds(vertex, node):
            return True
        if resource != SECRET:
            return False
        return any(self._holds(self._volumes[other].claim, node) for other in self._volumes_of_secret.get(vertex, ()))

    def _holds(self, vertex: Vertex, node: str) -> bool:
        nodes = self._nodes.get(vertex)
        return nodes is not None and node in nodes

    def _connect(self, source: Vertex, edge: Edge) -> None:
        resource, namespace, name = source
        known = self._edges.get((resource, namespace), _NO_EDGES).get(name)
        if known is not None:
            if known == edge:
                return
            self._disconnect(source)
        node, objects = edge = self._share(edge)
        self._edges.setdefault((resource, namespace), {})[name] = edge
        for vertex in objects:
            nodes = self._nodes.get(vertex)
            if nodes is None:
                nodes = self._nodes[vertex] = {}
            nodes[node] = nodes.get(node, 0) + 1

    def _share(self, edge: Edge) -> Edge:
        """Equal ones as one, with equal references as one."""
        known = self._shared.get(edge)
        if known is not None:
            return known
        if len(self._shared) >= _MOST_SHARED:
            self._shared.clear()
        if len(self._shared_references) >= _MOST_SHARED:
            self._shared_references.clear()
        node, references = edge
        edge = share_text(node), self._shared_references.setdefault(references, references)
        return self._shared.setdefault(edge, edge)

    def _disconnect(self, source: Vertex) -> None:
        resource, namespace, name = source
        edges = self._edges.get((resource, namespace))
        if edges is None or name not in edges:
            return
        node, objects = edges.pop(name)
        if not edges:
            del self._edges[resource, namespace]
        for vertex in objects:
            nodes = self._nodes[vertex]
            nodes[node] -= 1
            if not nodes[node]:
                del nodes[node]
            if not nodes:
                del self._nodes[vertex]

    def _put_volume(self, name: str, obj: Mapping[str, Any]) -> None:
        self._remove_volume(name)
        claim = (obj.get("spec") or {}).get("claimRef")
        if not claim:
            return
        secrets = _secret_vertices(secrets_of_volume(obj))
        vertex = (CLAIM, claim.get("namespace", ""), claim.get("name", ""))
        self._volumes[name] = _Volume(vertex, secrets)
        for secret in secrets:
            self._volumes_of_secret.setdefault(secret, set()).add(name)

    def _remove_volume(self, name: str) -> None:
        volume = self._volumes.pop(name, None)
        for secret in volume.secrets if volume is not None else ():
            users = self._volumes_of_secret[secret]
            users.discard(name)
            if not users:
                del self._volumes_of_secret[secret]


def _secret_vertices(names: Iterable[tuple[str, str]]) -> frozenset[Vertex]:
    return frozenset((SECRET, namespace, name) for namespace, name in names)
