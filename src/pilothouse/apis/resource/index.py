"""The strategies of device kinds, by resource."""

from __future__ import annotations

from pilothouse.apis.strategy_index import StrategyIndex

STRATEGIES = StrategyIndex(
    __package__,
    {
        "deviceclasses": "device_class.DeviceClassStrategy",
        "devicetaintrules": "device_taint_rule.TaintRuleStrategy",
        "resourceclaims": "resource_claim.strategy.ClaimStrategy",
        "resourceclaimtemplates": "resource_claim_template.ClaimTemplateStrategy",
        "resourceslices": "resource_slice.strategy.SliceStrategy",
        "resourcepoolstatusrequests": "resource_pool_status_request.PoolStatusRequestStrategy",
    },
)
