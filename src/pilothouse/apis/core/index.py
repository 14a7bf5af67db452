"""The strategies of the core group, by resource."""

from __future__ import annotations

from pilothouse.apis.strategy_index import StrategyIndex

STRATEGIES = StrategyIndex(
    __package__,
    {
        "configmaps": "config_map.ConfigMapStrategy",
        "endpoints": "endpoints.EndpointsStrategy",
        "events": "event.EventStrategy",
        "limitranges": "limit_range.LimitRangeStrategy",
        "namespaces": "namespace.NamespaceStrategy",
        "nodes": "node.strategy.NodeStrategy",
        "persistentvolumeclaims": "persistent_volume_claim.strategy.PersistentVolumeClaimStrategy",
        "persistentvolumes": "persistent_volume.strategy.PersistentVolumeStrategy",
        "pods": "pod.strategy.PodStrategy",
        "podtemplates": "pod_template.PodTemplateStrategy",
        "replicationcontrollers": "replication_controller.ReplicationControllerStrategy",
        "resourcequotas": "resource_quota.ResourceQuotaStrategy",
        "secrets": "secret.strategy.SecretStrategy",
        "serviceaccounts": "service_account.ServiceAccountStrategy",
        "services": "service.strategy.ServiceStrategy",
    },
)
