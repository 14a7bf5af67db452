"""What the two plug-ins that ask webhooks have in common: which webhooks there are, and what they never see."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any, ClassVar

from pilothouse.admission.annotations import annotate, annotate_all
from pilothouse.admission.environment import Environment
from pilothouse.admission.manifests.source import find_source
from pilothouse.admission.plugin import Plugin
from pilothouse.admission.webhooks.calling import HookCaller
from pilothouse.admission.webhooks.failures import CallFailed
from pilothouse.admission.webhooks.hooks import Hook, Hooks
from pilothouse.admission.webhooks.matching import EXCLUDED, is_registration
from pilothouse.admission.webhooks.reviews import Verdict
from pilothouse.endpoints.admission import Attributes
from pilothouse.machinery.gvk import GroupResource
from pilothouse.machinery.workers import weighed

logger = logging.getLogger(__name__)


class WebhookPlugin(Plugin):
    """Base of the plug-ins that ask webhooks."""

    kind: ClassVar[str]
    """The kind of configuration that says which."""

    def __init__(self, environment: Environment, configuration: Any = None) -> None:
        super().__init__(environment)
        self.caller = HookCaller(environment, configuration)
        static = find_source(environment, self.name, configuration, (self.kind,), "webhook")
        self.hooks = Hooks(environment, f"{self.kind.lower()}s", static)
        self.namespaces = environment.objects("", "v1", "namespaces")

    def concerns(self, operation: str, resource: GroupResource, subresource: str) -> bool:
        """Everything but what would lock out whoever repairs a webhook."""
        if resource in EXCLUDED and self.environment.enabled("ExcludeAdmissionWebhookVirtualResources"):
            return False
        return self.hooks.source is not None or not is_registration(resource)

    async def hooks_for(self, attributes: Attributes) -> Sequence[Hook]:
        """The webhooks that may see a request."""
        return self.hooks.static() if is_registration(attributes.resource) else await self.hooks.current()

    async def reload(self) -> None:
        """Read the manifests again if they changed."""
        if self.hooks.source is not None:
            await self.hooks.source.reload()

    async def close(self) -> None:
        """Close the connections."""
        await self.caller.close()


async def take_notes(hook: Hook, verdict: Verdict, attributes: Attributes) -> None:
    """Hand on what a webhook wants the audit log and the client to know."""
    attributes.warnings += verdict.warnings
    if verdict.annotations:
        await weighed(verdict.weight, annotate_all, attributes.annotations, hook.name, verdict.annotations)


def settle_failure(hook: Hook, failure: CallFailed, attributes: Attributes, annotation: str) -> None:
    """Let a request pass that a webhook gave no usable answer about, or refuse it if that is how the webhook is set."""
    if not hook.ignores_failure:
        logger.warning("%s; failing closed", failure)
        raise failure.as_status() from None
    logger.warning("%s; failing open", failure)
    annotate(attributes.annotations, f"failed-open.{annotation}", hook.name)
