"""The strategies of webhooks and policies, by resource."""

from __future__ import annotations

from pilothouse.apis.admissionregistration.policy import MutatingPolicyStrategy, ValidatingPolicyStrategy
from pilothouse.apis.admissionregistration.policy_binding import MutatingBindingStrategy, ValidatingBindingStrategy
from pilothouse.apis.admissionregistration.webhook_configuration import (
    MutatingWebhookStrategy,
    ValidatingWebhookStrategy,
)
from pilothouse.apis.strategy import Strategy

STRATEGIES: dict[str, type[Strategy]] = {
    "validatingwebhookconfigurations": ValidatingWebhookStrategy,
    "mutatingwebhookconfigurations": MutatingWebhookStrategy,
    "validatingadmissionpolicies": ValidatingPolicyStrategy,
    "validatingadmissionpolicybindings": ValidatingBindingStrategy,
    "mutatingadmissionpolicies": MutatingPolicyStrategy,
    "mutatingadmissionpolicybindings": MutatingBindingStrategy,
}
