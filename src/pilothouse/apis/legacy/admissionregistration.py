"""Webhook configurations through admissionregistration.k8s.io/v1beta1: failures are ignored, side effects unknown."""

from __future__ import annotations

from typing import ClassVar

from pilothouse.apis.admissionregistration.webhook_configuration import (
    MutatingWebhookStrategy,
    ValidatingWebhookStrategy,
)
from pilothouse.apis.legacy.older import Older
from pilothouse.machinery.objects import Object


class LenientValidatingWebhooks(ValidatingWebhookStrategy):
    """Validating webhooks with any side effects, and of equal names."""

    lenient: ClassVar[bool] = True


class LenientMutatingWebhooks(MutatingWebhookStrategy):
    """Mutating webhooks with any side effects, and of equal names."""

    lenient: ClassVar[bool] = True


def default_webhooks(obj: Object) -> None:
    """What v1 fills in otherwise, or leaves open."""
    for hook in obj.get("webhooks") or ():
        for name, value in (("failurePolicy", "Ignore"), ("matchPolicy", "Exact"), ("sideEffects", "Unknown")):
            if hook.get(name) is None:
                hook[name] = value
        if hook.get("timeoutSeconds") is None:
            hook["timeoutSeconds"] = 30
        if not hook.get("admissionReviewVersions"):
            hook["admissionReviewVersions"] = ["v1beta1"]


OLDER: dict[tuple[str, str], Older] = {
    ("v1beta1", "validatingwebhookconfigurations"): Older(default=default_webhooks, strategy=LenientValidatingWebhooks),
    ("v1beta1", "mutatingwebhookconfigurations"): Older(default=default_webhooks, strategy=LenientMutatingWebhooks),
}
