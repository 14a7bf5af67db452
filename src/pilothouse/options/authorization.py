"""Flags that say who may do what."""

from __future__ import annotations

from collections.abc import Set
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from pilothouse.machinery.go_quote import quote
from pilothouse.options.declaring import FlagGroup, flag
from pilothouse.options.kinds import DURATION, STRING, STRINGS

if TYPE_CHECKING:
    from pilothouse.authn.outgoing import OutgoingCalls
    from pilothouse.authz.authorization import Authorization
    from pilothouse.authz.authorization_configuration import ConfiguredAuthorizer
    from pilothouse.authz.authorizer import Authorizer
    from pilothouse.authz.metrics import AuthorizationMetrics

_WEBHOOK_SECONDS: Final = 30.0
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
    )
    mode: tuple[str, ...] = flag(
        "authorization-mode",
        STRINGS,
        (),
        f"Authorizers in order: {', '.join(MODES)}. Default: RBAC with the certificates "
        "made at the first start, AlwaysAllow with authentication flags of your own.",
    )
    policy_file: str = flag("authorization-policy-file", STRING, "", "Policy of the mode ABAC, one JSON object a line.")
    webhook_cache_authorized_ttl: float = flag(
        "authorization-webhook-cache-authorized-ttl",
        DURATION,
        300.0,
        "How long the webhook's consent is kept.",
    )
    webhook_cache_unauthorized_ttl: float = flag(
        "authorization-webhook-cache-unauthorized-ttl",
        DURATION,
        30.0,
        "How long the webhook's refusal is kept.",
    )
    webhook_config_file: str = flag(
        "authorization-webhook-config-file", STRING, "", "Kubeconfig file of the mode Webhook."
    )
    webhook_version: str = flag(
        "authorization-webhook-version",
        STRING,
        "v1beta1",
        "Version of SubjectAccessReview to send to the webhook.",
    )

    def build(self, outgoing: OutgoingCalls, identity: str) -> Authorization:
        """What authorizes requests. Raises OSError and ValueError for files that cannot be used."""
        from pilothouse.authz.abac import ABACAuthorizer
        from pilothouse.authz.authorization import Authorization
        from pilothouse.authz.authorization_configuration import authorizers_from_modes, parse_configuration
        from pilothouse.authz.metrics import AuthorizationMetrics
        from pilothouse.machinery.reloaded_file import ReloadedFile

        metrics = AuthorizationMetrics(identity)
        abac = ABACAuthorizer(self.policy_file) if self.policy_file else None

        def webhook(entry: ConfiguredAuthorizer) -> Authorizer:
            return self._webhook(entry, outgoing, metrics)

        if self.config:
            file = ReloadedFile(self.config, parse_configuration, metrics.reloads)
            return Authorization(file, webhook, metrics, abac)
        return Authorization(authorizers_from_modes(self.mode or ("AlwaysAllow",)), webhook, metrics, abac)

    def _webhook(
        self, entry: ConfiguredAuthorizer, outgoing: OutgoingCalls, metrics: AuthorizationMetrics
    ) -> Authorizer:
        from pilothouse.authn.webhook_kubeconfig import read_webhook_kubeconfig
        from pilothouse.authz.authorization_configuration import WebhookSettings
        from pilothouse.authz.authorizer import Decision
        from pilothouse.authz.webhook import WebhookAuthorizer

        settings = entry.webhook or WebhookSettings(
            self.webhook_config_file,
            self.webhook_version,
            _WEBHOOK_SECONDS,
            self.webhook_cache_authorized_ttl,
            self.webhook_cache_unauthorized_ttl,
            deny_on_failure=False,
        )
        if not settings.kubeconfig:
            raise ValueError("webhooks inside of the cluster need a kubeConfigFile here")
        return WebhookAuthorizer(
            outgoing.post_to(read_webhook_kubeconfig(settings.kubeconfig), settings.timeout),
            settings.version,
            settings.authorized_ttl,
            settings.unauthorized_ttl,
            Decision.DENY if settings.deny_on_failure else Decision.NO_OPINION,
            name=entry.name,
            conditions=settings.conditions,
            metrics=metrics.webhooks,
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
