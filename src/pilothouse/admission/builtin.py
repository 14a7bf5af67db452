"""Our plug-ins: their names, the order they run in, and which of them run by default.

Names only, so that flags can be declared and explained without importing a plug-in.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

# Name → module below the package of plug-ins. The order is the order of running.
MODULES: Final[Mapping[str, str]] = {
    "AlwaysAdmit": "always_admit",
    "NamespaceAutoProvision": "namespace_auto_provision",
    "NamespaceLifecycle": "namespace_lifecycle",
    "NamespaceExists": "namespace_exists",
    "LimitPodHardAntiAffinityTopology": "limit_pod_hard_anti_affinity_topology",
    "PodPreset": "pod_preset",
    "LimitRanger": "limit_ranger",
    "ServiceAccount": "service_account",
    "NodeRestriction": "node_restriction",
    "TaintNodesByCondition": "taint_nodes_by_condition",
    "AlwaysPullImages": "always_pull_images",
    "ImagePolicyWebhook": "image_policy_webhook",
    "PodSecurity": "pod_security",
    "PodSecurityPolicy": "pod_security_policy",
    "PodNodeSelector": "pod_node_selector",
    "Priority": "priority",
    "DefaultTolerationSeconds": "default_toleration_seconds",
    "PodTolerationRestriction": "pod_toleration_restriction",
    "EventRateLimit": "event_rate_limit",
    "ExtendedResourceToleration": "extended_resource_toleration",
    "DefaultStorageClass": "default_storage_class",
    "StorageObjectInUseProtection": "storage_object_in_use_protection",
    "PodGroupProtection": "pod_group_protection",
    "OwnerReferencesPermissionEnforcement": "owner_references_permission_enforcement",
    "PersistentVolumeClaimResize": "persistent_volume_claim_resize",
    "RuntimeClass": "runtime_class",
    "CertificateApproval": "certificate_approval",
    "CertificateSigning": "certificate_signing",
    "ClusterTrustBundleAttest": "cluster_trust_bundle_attest",
    "CertificateSubjectRestriction": "certificate_subject_restriction",
    "DefaultIngressClass": "default_ingress_class",
    "DenyServiceExternalIPs": "deny_service_external_ips",
    "PodTopologyLabels": "pod_topology_labels",
    "NodeDeclaredFeatureValidator": "node_declared_feature_validator",
    "PodResizeValidator": "pod_resize_validator",
    "MutatingAdmissionPolicy": "mutating_admission_policy",
    "MutatingAdmissionWebhook": "mutating_admission_webhook",
    "ValidatingAdmissionPolicy": "validating_admission_policy",
    "ValidatingAdmissionWebhook": "validating_admission_webhook",
    "ResourceQuota": "resource_quota",
    "AlwaysDeny": "always_deny",
}
DEFAULT_OFF: Final = frozenset(
    {
        "AlwaysAdmit",
        "AlwaysDeny",
        "AlwaysPullImages",
        "DenyServiceExternalIPs",
        "EventRateLimit",
        "ExtendedResourceToleration",
        "ImagePolicyWebhook",
        "LimitPodHardAntiAffinityTopology",
        "NamespaceAutoProvision",
        "NamespaceExists",
        "NodeRestriction",
        "OwnerReferencesPermissionEnforcement",
        "PodNodeSelector",
        "PodPreset",
        "PodSecurityPolicy",
        "PodTolerationRestriction",
    }
)
