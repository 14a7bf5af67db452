"""NodeRestriction: a kubelet writes its own node, its own lease and the pods bound to it, and nothing beyond.

What nodes may do at all is the authorizer's matter; here it is about what the objects say.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, Final

from pilothouse.admission.environment import Environment
from pilothouse.admission.plugin import Plugin
from pilothouse.admission.plugins.certificate_subject_restriction import subject_values
from pilothouse.admission.plugins.node_restriction.audiences import AudienceCheck
from pilothouse.admission.plugins.node_restriction.nodes import check_node
from pilothouse.admission.plugins.node_restriction.pod_certificates import PodCertificateCheck
from pilothouse.admission.plugins.node_restriction.pods import MIRROR, check_status, find_reference
from pilothouse.admission.refusals import forbidden
from pilothouse.authz.node.authorizer import node_of
from pilothouse.endpoints.admission import CREATE, DELETE, UPDATE, Attributes
from pilothouse.machinery import errors
from pilothouse.machinery.go_quote import quote
from pilothouse.machinery.gvk import GroupResource
from pilothouse.machinery.workers import weighed

_PODS: Final = GroupResource("", "pods")
_NODE_LEASES: Final = "kube-node-lease"
_KUBELET_SIGNERS: Final = ("kubernetes.io/kubelet-serving", "kubernetes.io/kube-apiserver-client-kubelet")
_CLAIM_STATUS: Final = ("capacity", "conditions", "allocatedResourceStatuses", "allocatedResources")
Check = Callable[[str, Attributes], Awaitable[None]]


class NodeRestriction(Plugin):
    """See the module's docstring."""

    name = "NodeRestriction"
    operations = frozenset({CREATE, UPDATE, DELETE})
    subresources = None

    def __init__(self, environment: Environment, configuration: Any = None) -> None:
        super().__init__(environment)
        self._pods = environment.late_objects("", "v1", "pods")
        self._nodes = environment.late_objects("", "v1", "nodes")
        self._certificates = PodCertificateCheck(environment)
        self._audiences = AudienceCheck(environment)
        self._checks: dict[GroupResource, Check] = {
            _PODS: self._check_pod,
            GroupResource("", "nodes"): self._check_node,
            GroupResource("", "persistentvolumeclaims"): self._check_claim,
            GroupResource("", "serviceaccounts"): self._check_service_account,
            GroupResource("certificates.k8s.io", "podcertificaterequests"): self._certificates.check,
            GroupResource("coordination.k8s.io", "leases"): self._check_lease,
            GroupResource("storage.k8s.io", "csinodes"): self._check_csi_node,
            GroupResource("resource.k8s.io", "resourceslices"): self._check_slice,
            GroupResource("certificates.k8s.io", "certificatesigningrequests"): self._check_signing_request,
        }

    def concerns(self, operation: str, resource: GroupResource, subresource: str) -> bool:
        """Everything, as a user who claims to be a node without a name may do nothing at all."""
        return operation in self.operations

    async def admit(self, attributes: Attributes) -> None:
        """Judge what a node does; others pass."""
        node = node_of(attributes.user)
        if node is None:
            return
        if not node:
            raise forbidden(attributes, f"could not determine node from user {quote(attributes.user.name)}")
        check = self._checks.get(attributes.resource.group_resource)
        if check is not None:
            await check(node, attributes)

    async def _pod(self, namespace: str, name: str) -> dict[str, Any]:
        await self._pods.ready()
        pod = self._pods.get(namespace, name)
        if pod is None:
            raise errors.not_found(GroupResource("", "pod"), name)
        return pod

    async def _check_pod(self, node: str, attributes: Attributes) -> None:
        if attributes.subresource == "status":
            check_status(node, attributes)
        elif attributes.subresource == "eviction":
            await self._check_eviction(node, attributes)
        elif attributes.subresource:
            shown = quote(attributes.subresource)
            why = f"unexpected pod subresource {shown}, only 'status' and 'eviction' are allowed"
            raise forbidden(attributes, why)
        elif attributes.operation == CREATE:
            await self._check_new_pod(node, attributes)
        elif attributes.operation == DELETE:
            pod = await self._pod(attributes.namespace, attributes.name)
            if (pod.get("spec") or {}).get("nodeName", "") != node:
                why = f"node {quote(node)} can only delete pods with spec.nodeName set to itself"
                raise forbidden(attributes, why)
        else:
            shown = quote(attributes.operation)
            why = f"unexpected operation {shown}, node {quote(node)} can only create and delete mirror pods"
            raise forbidden(attributes, why)

    async def _check_new_pod(self, name: str, attributes: Attributes) -> None:
        pod = attributes.object or {}
        node = quote(name)
        metadata = pod.get("metadata") or {}
        if MIRROR not in (metadata.get("annotations") or ()):
            why = f"pod does not have {quote(MIRROR)} annotation, node {node} can only create mirror pods"
            raise forbidden(attributes, why)
        if (pod.get("spec") or {}).get("nodeName", "") != name:
            raise forbidden(attributes, f"node {node} can only create pods with spec.nodeName set to itself")
        owners = metadata.get("ownerReferences") or ()
        if len(owners) > 1:
            why = f"node {node} can only create pods with a single owner reference set to itself"
            raise forbidden(attributes, why)
        owner = owners[0] if owners else {}
        if (owner.get("apiVersion"), owner.get("kind"), owner.get("name")) != ("v1", "Node", name):
            raise forbidden(attributes, f"node {node} can only create pods with an owner reference set to itself")
        if not owner.get("controller"):
            why = f"node {node} can only create pods with a controller owner reference set to itself"
            raise forbidden(attributes, why)
        if owner.get("blockOwnerDeletion"):
            raise forbidden(attributes, f"node {node} must not set blockOwnerDeletion on an owner reference")
        await self._check_owner(name, attributes, owner.get("uid", ""))
        found = find_reference(pod.get("spec") or {})
        if found:
            raise forbidden(attributes, f"node {node} can not create pods that reference {found}")

    async def _check_owner(self, name: str, attributes: Attributes, uid: str) -> None:
        await self._nodes.ready()
        found = self._nodes.get("", name)
        if found is None:
            raise errors.not_found(GroupResource("", "node"), name)
        own = found["metadata"].get("uid", "")
        if uid != own:
            raise forbidden(attributes, f"node {name} UID mismatch: expected {uid} got {own}")

    async def _check_eviction(self, node: str, attributes: Attributes) -> None:
        if attributes.operation != CREATE:
            raise forbidden(attributes, f"unexpected operation {attributes.operation}")
        name = attributes.name or ((attributes.object or {}).get("metadata") or {}).get("name", "")
        if not name:
            raise forbidden(attributes, "could not determine pod from request data")
        pod = await self._pod(attributes.namespace, name)
        if (pod.get("spec") or {}).get("nodeName", "") != node:
            raise forbidden(attributes, f"node {node} can only evict pods with spec.nodeName set to itself")

    async def _check_node(self, node: str, attributes: Attributes) -> None:
        check_node(node, attributes)

    async def _check_claim(self, node: str, attributes: Attributes) -> None:
        if attributes.subresource != "status":
            raise forbidden(attributes, "may only update PVC status")
        if attributes.operation != UPDATE:
            raise forbidden(attributes, f"unexpected operation {quote(attributes.operation)}")
        old, new = _frozen_claim(attributes.old_object or {}), _frozen_claim(attributes.object or {})
        if old != new:
            changed = ", ".join(sorted(key for key in {*old, *new} if old.get(key) != new.get(key)))
            why = (
                f"node {quote(node)} is not allowed to update fields other than status.quantity and "
                f"status.conditions: {changed}"
            )
            raise forbidden(attributes, why)

    async def _check_service_account(self, node: str, attributes: Attributes) -> None:
        if attributes.operation != CREATE or attributes.subresource != "token":
            return
        spec = (attributes.object or {}).get("spec") or {}
        bound = spec.get("boundObjectRef") or {}
        if bound.get("apiVersion") != "v1" or bound.get("kind") != "Pod" or not bound.get("name"):
            raise forbidden(attributes, "node requested token not bound to a pod")
        if not bound.get("uid"):
            raise forbidden(attributes, "node requested token with a pod binding without a uid")
        pod = await self._pod(attributes.namespace, bound["name"])
        if bound["uid"] != pod["metadata"].get("uid"):
            why = (
                f"the UID in the bound object reference ({bound['uid']}) does not match the UID in record. "
                "The object might have been deleted and then recreated"
            )
            raise forbidden(attributes, why)
        if (pod.get("spec") or {}).get("nodeName", "") != node:
            raise forbidden(attributes, "node requested token bound to a pod scheduled on a different node")
        if self.environment.enabled("ServiceAccountNodeAudienceRestriction"):
            await self._audiences.check(attributes, spec.get("audiences") or [], pod)

    async def _check_lease(self, node: str, attributes: Attributes) -> None:
        if attributes.namespace != _NODE_LEASES:
            raise forbidden(attributes, f"can only access leases in the {quote(_NODE_LEASES)} system namespace")
        if _own_name(attributes) != node:
            raise forbidden(attributes, "can only access node lease with the same name as the requesting node")

    async def _check_csi_node(self, node: str, attributes: Attributes) -> None:
        if _own_name(attributes) != node:
            raise forbidden(attributes, "can only access CSINode with the same name as the requesting node")
        if attributes.subresource != "status":
            return
        if not self.environment.enabled("CSIVolumeHealth"):
            raise forbidden(attributes, "CSIVolumeHealth feature gate is disabled")
        if attributes.operation != UPDATE:
            raise forbidden(attributes, f"unexpected operation {quote(attributes.operation)}")
        if (attributes.object or {}).get("spec") != (attributes.old_object or {}).get("spec"):
            raise forbidden(attributes, f"node {quote(node)} is not allowed to modify CSINode spec via status")

    async def _check_slice(self, node: str, attributes: Attributes) -> None:
        if attributes.operation == UPDATE:
            return
        obj = attributes.object if attributes.operation == CREATE else attributes.old_object
        if ((obj or {}).get("spec") or {}).get("nodeName") != node:
            verb = "create" if attributes.operation == CREATE else "delete"
            why = f"can only {verb} ResourceSlice with the same NodeName as the requesting node"
            raise forbidden(attributes, why)

    async def _check_signing_request(self, node: str, attributes: Attributes) -> None:
        if self.environment.enabled("AllowInsecureKubeletCertificateSigningRequests"):
            return
        spec = (attributes.object or {}).get("spec") or {}
        if attributes.operation != CREATE or spec.get("signerName") not in _KUBELET_SIGNERS:
            return
        try:
            request = spec.get("request", "")
            names = await weighed(len(request), subject_values, request, "CN")
        except ValueError as error:
            raise forbidden(attributes, f"unable to parse csr: {error}") from None
        if names[-1:] != [f"system:node:{node}"]:
            raise forbidden(attributes, f"can only create a node CSR with CN=system:node:{node}")


def _own_name(attributes: Attributes) -> str:
    """The object's own name when it is made, the requested one later."""
    if attributes.operation == CREATE:
        return str(((attributes.object or {}).get("metadata") or {}).get("name", ""))
    return attributes.name


def _frozen_claim(claim: dict[str, Any]) -> dict[str, Any]:
    """What a node must not change of a claim."""
    metadata = {k: v for k, v in (claim.get("metadata") or {}).items() if k not in ("resourceVersion", "managedFields")}
    status = {k: v for k, v in (claim.get("status") or {}).items() if k not in _CLAIM_STATUS}
    return {**claim, "metadata": metadata, "status": status}
