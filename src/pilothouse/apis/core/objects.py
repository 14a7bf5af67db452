"""The strategies of core kinds other than pods and what is made of them."""

from __future__ import annotations

from pilothouse.apis.core.config_map import ConfigMapStrategy
from pilothouse.apis.core.endpoints import EndpointsStrategy
from pilothouse.apis.core.event import EventStrategy
from pilothouse.apis.core.limit_range import LimitRangeStrategy
from pilothouse.apis.core.namespace import NamespaceStrategy
from pilothouse.apis.core.node import NodeStrategy
from pilothouse.apis.core.persistent_volume import PersistentVolumeStrategy
from pilothouse.apis.core.persistent_volume_claim import PersistentVolumeClaimStrategy
from pilothouse.apis.core.resource_quota import ResourceQuotaStrategy
from pilothouse.apis.core.secret import SecretStrategy
from pilothouse.apis.core.service import ServiceStrategy
from pilothouse.apis.core.service_account import ServiceAccountStrategy
from pilothouse.apis.strategy import Strategy

OBJECT_STRATEGIES: dict[str, type[Strategy]] = {
    "configmaps": ConfigMapStrategy,
    "endpoints": EndpointsStrategy,
    "events": EventStrategy,
    "limitranges": LimitRangeStrategy,
    "namespaces": NamespaceStrategy,
    "nodes": NodeStrategy,
    "persistentvolumeclaims": PersistentVolumeClaimStrategy,
    "persistentvolumes": PersistentVolumeStrategy,
    "resourcequotas": ResourceQuotaStrategy,
    "secrets": SecretStrategy,
    "serviceaccounts": ServiceAccountStrategy,
    "services": ServiceStrategy,
}
