"""Who owns whom. Objects are known by their uid; owners that nobody has shown yet are known by what is said of them.

An object whose owners are named but unknown stands in the graph as *virtual* until its informer shows it, or a look at
the API has told that there is no such object.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple

from pilothouse.machinery.objects import Object

FOREGROUND = "foregroundDeletion"
ORPHAN = "orphan"


class Identity(NamedTuple):
    """An object, as an owner reference and its own namespace name it."""

    api_version: str
    kind: str
    namespace: str
    name: str
    uid: str


class Owner(NamedTuple):
    """One owner reference."""

    identity: Identity
    blocks: bool


@dataclass(slots=True, eq=False)
class Node:
    """One object. ``dependents`` are those that name it as an owner."""

    identity: Identity
    owners: tuple[Owner, ...] = ()
    dependents: dict[str, Node] = field(default_factory=dict)
    is_virtual: bool = True
    is_deleted: bool = False
    """Deletion has begun."""
    waits_for_dependents: bool = False
    """Deletion in the foreground has begun: it goes after what it owns."""

    def blocking(self) -> list[Node]:
        """The dependents that keep this one from going."""
        return [
            each
            for each in self.dependents.values()
            if any(owner.blocks and owner.identity.uid == self.identity.uid for owner in each.owners)
        ]


class Graph:
    """All objects with owners or dependents, and all others that informers have shown."""

    def __init__(self) -> None:
        self._nodes: dict[str, Node] = {}

    def get(self, uid: str) -> Node | None:
        """What is known of an object."""
        return self._nodes.get(uid)

    def namespace_of(self, uid: str) -> str:
        """The namespace of an object; none of one that is not known."""
        node = self._nodes.get(uid)
        return "" if node is None else node.identity.namespace

    def put(self, obj: Object, api_version: str, kind: str) -> tuple[Node, bool]:
        """Take the newest state of an object; whether its owners are others than before."""
        metadata = obj["metadata"]
        identity = Identity(api_version, kind, metadata.get("namespace") or "", metadata["name"], metadata["uid"])
        node = self._nodes.get(identity.uid)
        if node is None:
            node = self._nodes[identity.uid] = Node(identity)
        node.identity, node.is_virtual = identity, False
        finalizers = metadata.get("finalizers") or ()
        node.is_deleted = bool(metadata.get("deletionTimestamp"))
        node.waits_for_dependents = node.is_deleted and FOREGROUND in finalizers
        owners = tuple(_owner(each, identity.namespace) for each in metadata.get("ownerReferences") or ())
        changed = owners != node.owners
        if changed:
            self._set_owners(node, owners)
        return node, changed

    def remove(self, uid: str) -> Node | None:
        """The object has gone; what was known of it. Its dependents still name it."""
        node = self._nodes.get(uid)
        if node is None:
            return None
        self._set_owners(node, ())
        node.is_virtual = node.is_deleted = True
        if not node.dependents:
            del self._nodes[uid]
        return node

    def _set_owners(self, node: Node, owners: tuple[Owner, ...]) -> None:
        uid = node.identity.uid
        for owner in node.owners:
            known = self._nodes.get(owner.identity.uid)
            if known is not None:
                known.dependents.pop(uid, None)
                if known.is_virtual and not known.dependents:
                    del self._nodes[known.identity.uid]
        node.owners = owners
        for owner in owners:
            known = self._nodes.get(owner.identity.uid)
            if known is None:
                known = self._nodes[owner.identity.uid] = Node(owner.identity)
            known.dependents[uid] = node


def _owner(reference: dict[str, Any], namespace: str) -> Owner:
    identity = Identity(reference["apiVersion"], reference["kind"], namespace, reference["name"], reference["uid"])
    return Owner(identity, bool(reference.get("blockOwnerDeletion")))
