"""The strategies of device kinds, by resource."""

from __future__ import annotations

from pilothouse.apis.resource.device_class import DeviceClassStrategy
from pilothouse.apis.resource.device_taint_rule import TaintRuleStrategy
from pilothouse.apis.resource.resource_claim.strategy import ClaimStrategy
from pilothouse.apis.resource.resource_claim_template import ClaimTemplateStrategy
from pilothouse.apis.resource.resource_pool_status_request import PoolStatusRequestStrategy
from pilothouse.apis.resource.resource_slice.strategy import SliceStrategy
from pilothouse.apis.strategy import Strategy

STRATEGIES: dict[str, type[Strategy]] = {
    "deviceclasses": DeviceClassStrategy,
    "devicetaintrules": TaintRuleStrategy,
    "resourceclaims": ClaimStrategy,
    "resourceclaimtemplates": ClaimTemplateStrategy,
    "resourceslices": SliceStrategy,
    "resourcepoolstatusrequests": PoolStatusRequestStrategy,
}
