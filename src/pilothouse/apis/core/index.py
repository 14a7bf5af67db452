"""The strategies of the core group, by resource."""

from __future__ import annotations

from pilothouse.apis.core.config_map import ConfigMapStrategy
from pilothouse.apis.core.endpoints import EndpointsStrategy
from pilothouse.apis.core.event import EventStrategy
from pilothouse.apis.core.limit_range import LimitRangeStrategy
from pilothouse.apis.core.namespace import NamespaceStrategy
from pilothouse.apis.core.node.strategy import NodeStrategy
from pilothouse.apis.core.persistent_volume.strategy import PersistentVolumeStrategy
from pilothouse.apis.core.persistent_volume_claim.strategy import PersistentVolumeClaimStrategy
from pilothouse.apis.core.pod.strategy import PodStrategy
from pilothouse.apis.core.pod_template import PodTemplateStrategy
from pilothouse.apis.core.replication_controller import ReplicationControllerStrategy
from pilothouse.apis.core.resource_quota import ResourceQuotaStrategy
from pilothouse.apis.core.secret.strategy import SecretStrategy
from pilothouse.apis.core.service.strategy import ServiceStrategy
from pilothouse.apis.core.service_account import ServiceAccountStrategy
from pilothouse.apis.strategy import Strategy

STRATEGIES: dict[str, type[Strategy]] = {
    "configmaps": ConfigMapStrategy,
    "endpoints": EndpointsStrategy,
    "events": EventStrategy,
    "limitranges": LimitRangeStrategy,
    "namespaces": NamespaceStrategy,
    "nodes": NodeStrategy,
    "persistentvolumeclaims": PersistentVolumeClaimStrategy,
    "persistentvolumes": PersistentVolumeStrategy,
    "pods": PodStrategy,
    "podtemplates": PodTemplateStrategy,
    "replicationcontrollers": ReplicationControllerStrategy,
    "resourcequotas": ResourceQuotaStrategy,
    "secrets": SecretStrategy,
    "serviceaccounts": ServiceAccountStrategy,
    "services": ServiceStrategy,
}
