"""The strategies of webhooks and policies, by resource."""

from __future__ import annotations

from pilothouse.apis.strategy_index import StrategyIndex

STRATEGIES = StrategyIndex(
    __package__,
    {
        "validatingwebhookconfigurations": "webhook_configuration.ValidatingWebhookStrategy",
        "mutatingwebhookconfigurations": "webhook_configuration.MutatingWebhookStrategy",
        "validatingadmissionpolicies": "policy.ValidatingPolicyStrategy",
        "validatingadmissionpolicybindings": "policy_binding.ValidatingBindingStrategy",
        "mutatingadmissionpolicies": "policy.MutatingPolicyStrategy",
        "mutatingadmissionpolicybindings": "policy_binding.MutatingBindingStrategy",
    },
)
