"""Authorizes the requests of kubelets (users ``system:node:<name>`` in ``system:nodes``).

Objects that belong to one node are subdivided by the graph or by their name; everything else is allowed to all nodes
by the rules of the ClusterRole ``system:node``. The verbs whose object is not known yet (create) are let through: the
NodeRestriction admission looks at the object.

At the start of a large cluster the graph is filled while requests are served. What it knows by then it says; whoever it
does not know to be entitled waits until it is whole (kube-apiserver refuses him meanwhile).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from pilothouse.authz.attributes import Attributes
from pilothouse.authz.authorizer import Decision, NotKnownYet, RuleReader, Rules
from pilothouse.authz.node.graph import ATTACHMENT, CERTIFICATE_REQUEST, POD, SLICE, VOLUME, Graph
from pilothouse.authz.node.references import CLAIM, CONFIG_MAP, RESOURCE_CLAIM, SECRET, SERVICE_ACCOUNT
from pilothouse.authz.rbac import bootstrap_policy
from pilothouse.authz.rbac.rules import CompiledRules
from pilothouse.machinery.go_quote import quote
from pilothouse.machinery.user import NODE_PREFIX, NODES_GROUP, User

Answer = tuple[Decision, str]
_ALLOW: Final[Answer] = (Decision.ALLOW, "")
_LEASE_NAMESPACE: Final = "kube-node-lease"


class NodeAuthorizer:
    """Decides by a ``Graph``; ``certificate_requests`` is the feature PodCertificateRequest."""

    def __init__(self, graph: Graph, *, certificate_requests: bool = True, csi_volume_health: bool = False) -> None:
        self.graph = graph
        self._csi_volume_health = csi_volume_health
        self._rules: CompiledRules | None = None
        self._subdivided: dict[tuple[str, str], Callable[[str, Attributes], Answer]] = {
            ("", SECRET): self._read_namespaced,
            ("", CONFIG_MAP): self._read_namespaced,
            ("", CLAIM): self._claim,
            ("", VOLUME): self._get,
            ("", SERVICE_ACCOUNT): self._service_account,
            ("", "nodes"): self._node,
            ("", POD): self._pod,
            ("resource.k8s.io", RESOURCE_CLAIM): self._get,
            ("resource.k8s.io", SLICE): self._resource_slice,
            ("storage.k8s.io", ATTACHMENT): self._get,
            ("storage.k8s.io", "csinodes"): self._csi_node,
            ("coordination.k8s.io", "leases"): self._lease,
            ("certificates.k8s.io", CERTIFICATE_REQUEST): (
                self._certificate_request if certificate_requests else lambda node, attributes: _no()
            ),
        }

    async def authorize(self, attributes: Attributes) -> Answer:
        """Allow or no opinion; no opinion about anybody who is no node."""
        while True:
            try:
                return self.decide(attributes)
            except NotKnownYet:
                await self.graph.wait_whole()

    def decide(self, attributes: Attributes) -> Answer:
        """The same without a coroutine. Raises ``NotKnownYet`` while the graph is filled and cannot tell."""
        node = node_of(attributes.user)
        if node is None:
            return _no()
        if not node:
            return _no(f"unknown node for user {quote(attributes.user.name)}")
        if attributes.resource_request:
            subdivided = self._subdivided.get((attributes.group, attributes.resource))
            if subdivided is not None:
                return subdivided(node, attributes)
        return _ALLOW if self._allowed_to_all(attributes) else _no()

    def rules_for(self, user: User, namespace: str) -> RuleReader:
        """Nothing to list; for nodes the answer says that it is incomplete."""
        if node_of(user) is None:
            return Rules
        return lambda: Rules(incomplete=True, error="node authorizer does not support user rule resolution")

    def _allowed_to_all(self, attributes: Attributes) -> bool:
        if self._rules is None:
            roles = bootstrap_policy.load("clusterroles")
            self._rules = CompiledRules(next(r for r in roles if r["metadata"]["name"] == "system:node")["rules"])
        if not attributes.resource_request:
            return self._rules.allows_path(attributes.verb, attributes.path)
        anything, names = self._rules.names_for(
            attributes.verb, attributes.group, attributes.resource, attributes.subresource
        )
        return anything or attributes.name in names

    def _related(self, node: str, attributes: Attributes) -> Answer:
        if not attributes.name:
            return _no("No Object name found")
        if self.graph.entitled(node, attributes.resource, attributes.namespace, attributes.name):
            return _ALLOW
        if not self.graph.is_whole:
            raise NotKnownYet
        return _no(f"no relationship found between node '{node}' and this object")

    def _get(self, node: str, attributes: Attributes) -> Answer:
        if attributes.verb != "get":
            return _no("can only get individual resources of this type")
        if attributes.subresource:
            return _no("cannot get subresource")
        return self._related(node, attributes)

    def _read_namespaced(self, node: str, attributes: Attributes) -> Answer:
        if not attributes.read_only:
            return _no("can only read resources of this type")
        if attributes.subresource:
            return _no("cannot read subresource")
        if not attributes.namespace:
            return _no("can only read namespaced object of this type")
        return self._related(node, attributes)

    def _claim(self, node: str, attributes: Attributes) -> Answer:
        if attributes.subresource != "status":
            return self._get(node, attributes)
        if attributes.verb not in ("update", "patch"):
            return _no("can only get/update/patch this type")
        return self._related(node, attributes)

    def _service_account(self, node: str, attributes: Attributes) -> Answer:
        if attributes.verb == "get" and not attributes.subresource:
            return self._read_namespaced(node, attributes)
        if attributes.verb != "create" or not attributes.name:
            return _no("can only create tokens for individual service accounts")
        if attributes.subresource != "token":
            return _no("can only create token subresource of serviceaccount")
        return self._related(node, attributes)

    def _lease(self, node: str, attributes: Attributes) -> Answer:
        if attributes.verb not in ("get", "create", "update", "patch", "delete"):
            return _no("can only get, create, update, patch, or delete a node lease")
        if attributes.namespace != _LEASE_NAMESPACE:
            return _no(f"can only access leases in the {quote(_LEASE_NAMESPACE)} system namespace")
        if attributes.verb != "create" and attributes.name != node:
            return _no("can only access node lease with the same name as the requesting node")
        return _ALLOW

    def _csi_node(self, node: str, attributes: Attributes) -> Answer:
        if attributes.subresource == "":
            if attributes.verb not in ("get", "create", "update", "patch", "delete"):
                return _no("can only get, create, update, patch, or delete a CSINode")
        elif attributes.subresource == "status":
            if not self._csi_volume_health:
                return _no("CSINode status access requires CSIVolumeHealth feature")
            if attributes.verb not in ("get", "update", "patch"):
                return _no("can only get, update, or patch CSINode status")
        else:
            return _no("cannot authorize CSINode subresources")
        if attributes.verb != "create" and attributes.name != node:
            return _no("can only access CSINode with the same name as the requesting node")
        return _ALLOW

    def _resource_slice(self, node: str, attributes: Attributes) -> Answer:
        if attributes.subresource:
            return _no("cannot authorize ResourceSlice subresources")
        match attributes.verb:
            case "create":
                return _ALLOW
            case "get" | "update" | "patch" | "delete":
                return self._related(node, attributes)
            case "watch" | "list" | "deletecollection":
                if attributes.selects_field("spec.nodeName", node):
                    return _ALLOW
                return _no("can only list/watch/deletecollection resourceslices with nodeName field selector")
        return _no(
            "only the following verbs are allowed for a ResourceSlice: "
            "get, watch, list, create, update, patch, delete, deletecollection"
        )

    def _certificate_request(self, node: str, attributes: Attributes) -> Answer:
        if attributes.subresource:
            return _no("nodes may not access the status subresource of PodCertificateRequests")
        match attributes.verb:
            case "create":
                return _ALLOW
            case "get":
                return self._related(node, attributes)
            case "list" | "watch":
                if attributes.selects_field("spec.nodeName", node):
                    return _ALLOW
                return _no("can only list/watch podcertificaterequests with nodeName field selector")
        return _no(f"nodes may not {attributes.verb} podcertificaterequests")

    def _node(self, node: str, attributes: Attributes) -> Answer:
        if attributes.subresource == "status" and attributes.verb in ("update", "patch"):
            return _ALLOW
        if attributes.subresource:
            return _no()
        if attributes.verb in ("create", "update", "patch"):
            return _ALLOW
        if not attributes.read_only:
            return _no()
        if attributes.name == node:
            return _ALLOW
        if not attributes.name:
            return _no(f"node '{node}' cannot read all nodes, only its own Node object")
        return _no(f"node '{node}' cannot read '{attributes.name}', only its own Node object")

    def _pod(self, node: str, attributes: Attributes) -> Answer:
        match attributes.subresource, attributes.verb:
            case "", "get":
                return self._related(node, attributes)
            case "", ("list" | "watch"):
                if attributes.selects_field("spec.nodeName", node):
                    return _ALLOW
                if attributes.name:
                    return self._related(node, attributes)
                return _no("can only list/watch pods with spec.nodeName field selector")
            case ("", "create" | "delete") | ("status", "update" | "patch") | ("eviction", "create"):
                return _ALLOW
        return _no()


def node_of(user: User) -> str | None:
    """The node behind a user: its name, empty if the user does not say which, None if it is no node."""
    if not user.name.startswith(NODE_PREFIX) or NODES_GROUP not in user.groups:
        return None
    return user.name[len(NODE_PREFIX) :]


def _no(reason: str = "") -> Answer:
    return Decision.NO_OPINION, reason
