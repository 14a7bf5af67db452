"""What a node may say about its pods, and what mirror pods must not refer to."""

from __future__ import annotations

from typing import Any, Final

from pilothouse.admission.plugins.service_account.secret_references import references_secret
from pilothouse.admission.refusals import forbidden
from pilothouse.apis.core.pod_spec.traversal import containers_of
from pilothouse.endpoints.admission import UPDATE, Attributes
from pilothouse.machinery.go_quote import quote

MIRROR: Final = "kubernetes.io/config.mirror"
_VOLUMES: Final = {
    "configMap": "configmaps (via configmap volumes)",
    "secret": "secrets (via secret volumes)",
    "csi": "csidrivers (via CSI volumes)",
    "glusterfs": "endpoints (via glusterFS volumes)",
    "persistentVolumeClaim": "persistentvolumeclaims",
    "ephemeral": "persistentvolumeclaims (via ephemeral volumes)",
    "azureFile": "secrets (via azureFile volumes)",
}
_SOURCES: Final = {
    "configMap": "configmaps (via projected volumes)",
    "secret": "secrets (via projected volumes)",
    "serviceAccountToken": "serviceaccounts (via projected volumes)",
    "clusterTrustBundle": "clustertrustbundles",
    "podCertificate": "podcertificates",
}


def check_status(name: str, attributes: Attributes) -> None:
    """Refuse status updates of other nodes' pods, and of what is not a node's to say."""
    if attributes.operation != UPDATE:
        raise forbidden(attributes, f"unexpected operation {quote(attributes.operation)}")
    node = quote(name)
    old, new = attributes.old_object or {}, attributes.object or {}
    if (old.get("spec") or {}).get("nodeName", "") != name:
        why = f"node {node} can only update pod status for pods with spec.nodeName set to itself"
        raise forbidden(attributes, why)
    if ((old.get("metadata") or {}).get("labels") or {}) != ((new.get("metadata") or {}).get("labels") or {}):
        raise forbidden(attributes, f"node {node} cannot update labels through pod status")
    before, after = old.get("status") or {}, new.get("status") or {}
    for field, words in (
        ("resourceClaimStatuses", "resource claim statues"),
        ("extendedResourceClaimStatus", "extended resource claim status"),
        ("nodeAllocatableResourceClaimStatuses", "node allocatable resource claim statuses"),
    ):
        if (before.get(field) or None) != (after.get(field) or None):
            raise forbidden(attributes, f"node {node} cannot update {words}")


def find_reference(spec: dict[str, Any]) -> str:
    """The first kind of API object that a pod refers to; empty if it refers to none."""
    if spec.get("serviceAccountName"):
        return "serviceaccounts"
    if references_secret(spec):
        return "secrets"
    if _references_config_map(spec):
        return "configmaps"
    if spec.get("resourceClaims"):
        return "resourceclaims"
    for volume in spec.get("volumes") or ():
        for kind, words in _VOLUMES.items():
            if volume.get(kind) is not None:
                return words
        for source in (volume.get("projected") or {}).get("sources") or ():
            for kind, words in _SOURCES.items():
                if source.get(kind) is not None:
                    return words
    return ""


def _references_config_map(spec: dict[str, Any]) -> bool:
    for container in containers_of(spec):
        for source in container.get("envFrom") or ():
            if (source.get("configMapRef") or {}).get("name"):
                return True
        for variable in container.get("env") or ():
            if ((variable.get("valueFrom") or {}).get("configMapKeyRef") or {}).get("name"):
                return True
    for volume in spec.get("volumes") or ():
        if (volume.get("configMap") or {}).get("name"):
            return True
        sources = (volume.get("projected") or {}).get("sources") or ()
        if any((source.get("configMap") or {}).get("name") for source in sources):
            return True
    return False
