"""Flags that say who may do what."""

from __future__ import annotations

from collections.abc import Set
from dataclasses import dataclass

from pilothouse.machinery.go_quote import quote
from pilothouse.options.declaring import FlagGroup, flag
from pilothouse.options.kinds import DURATION, STRING, STRINGS

MODES = ("AlwaysAllow", "AlwaysDeny", "ABAC", "Webhook", "RBAC", "Node")
_LEGACY = frozenset(
    {
        "authorization-mode",
        "authorization-webhook-config-file",
        "authorization-webhook-version",
        "authorization-webhook-cache-authorized-ttl",
        "authorization-webhook-cache-unauthorized-ttl",
    }
)


@dataclass
class AuthorizationOptions(FlagGroup):
    """The ``authorization`` section."""

    section = "authorization"

    config: str = flag(
        "authorization-config",
        STRING,
        "",
        "File with the chain of authorizers; excludes --authorization-mode and --authorization-webhook-*.",
        effective=True,
    )
    mode: tuple[str, ...] = flag(
        "authorization-mode",
        STRINGS,
        (),
        f"Authorizers in order: {', '.join(MODES)}. Default: RBAC with the certificates "
        "made at the first start, AlwaysAllow with authentication flags of your own.",
        effective=True,
    )
    policy_file: str = flag(
        "authorization-policy-file", STRING, "", "Policy of the mode ABAC, one JSON object a line.", effective=True
    )
    webhook_cache_authorized_ttl: float = flag(
        "authorization-webhook-cache-authorized-ttl",
        DURATION,
        300.0,
        "How long the webhook's consent is kept.",
        effective=True,
    )
    webhook_cache_unauthorized_ttl: float = flag(
        "authorization-webhook-cache-unauthorized-ttl",
        DURATION,
        30.0,
        "How long the webhook's refusal is kept.",
        effective=True,
    )
    webhook_config_file: str = flag(
        "authorization-webhook-config-file", STRING, "", "Kubeconfig file of the mode Webhook.", effective=True
    )
    webhook_version: str = flag(
        "authorization-webhook-version",
        STRING,
        "v1beta1",
        "Version of SubjectAccessReview to send to the webhook.",
        effective=True,
    )

    def validate(self, given: Set[str]) -> list[str]:
        """The modes and the files they need."""
        if self.config:
            if _LEGACY & given:
                return [
                    "--authorization-config can not be specified when --authorization-mode or "
                    "--authorization-webhook-* flags are defined"
                ]
            return []
        errors = [] if self.mode else ["at least one authorization-mode must be passed"]
        for mode in self.mode:
            if mode not in MODES:
                errors.append(f"authorization-mode {quote(mode)} is not a valid mode")
            if mode == "ABAC" and not self.policy_file:
                errors.append("authorization-mode ABAC's authorization policy file not passed")
            if mode == "Webhook" and not self.webhook_config_file:
                errors.append("authorization-mode Webhook's authorization config file not passed")
        if self.policy_file and "ABAC" not in self.mode:
            errors.append("cannot specify --authorization-policy-file without mode ABAC")
        if self.webhook_config_file and "Webhook" not in self.mode:
            errors.append("cannot specify --authorization-webhook-config-file without mode Webhook")
        if len(set(self.mode)) != len(self.mode):
            modes = " ".join(quote(mode) for mode in self.mode)
            errors.append(f"authorization-mode [{modes}] has mode specified more than once")
        return errors
