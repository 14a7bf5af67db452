"""ValidatingAdmissionWebhook: asks all webhooks that are concerned at once; the first refusal to arrive counts."""

from __future__ import annotations

import asyncio
import logging
from typing import Any, Final

from pilothouse.admission.annotating import annotate
from pilothouse.admission.environment import Environment
from pilothouse.admission.manifests.source import find_source
from pilothouse.admission.metrics import VALIDATING
from pilothouse.admission.plugin import Plugin
from pilothouse.admission.versions import ServedVersions
from pilothouse.admission.webhooks.accounting import CallAccount
from pilothouse.admission.webhooks.calling import HookCaller
from pilothouse.admission.webhooks.conditions import meets_conditions
from pilothouse.admission.webhooks.failures import CallFailed, rejection
from pilothouse.admission.webhooks.hooks import Hooks
from pilothouse.admission.webhooks.matching import EXCLUDED, Invocation, is_registration, match
from pilothouse.endpoints.admission import Attributes
from pilothouse.machinery import errors
from pilothouse.machinery.gvk import GroupResource, GroupVersionKind
from pilothouse.net.eager import ensure_task

logger = logging.getLogger(__name__)
_FAILED_OPEN: Final = "failed-open.validating.webhook.admission.k8s.io/round_0_index_"
_Versioned = tuple[Any, Any]


class ValidatingAdmissionWebhook(Plugin):
    """See the module's docstring."""

    name = "ValidatingAdmissionWebhook"

    def __init__(self, environment: Environment, configuration: Any = None) -> None:
        super().__init__(environment)
        self._caller = HookCaller(environment, configuration)
        static = find_source(environment, self.name, configuration, ("ValidatingWebhookConfiguration",), "webhook")
        self._hooks = Hooks(environment, "validatingwebhookconfigurations", static)
        self._namespaces = environment.objects("", "v1", "namespaces")

    def concerns(self, operation: str, resource: GroupResource, subresource: str) -> bool:
        """Everything but what would lock out whoever repairs a webhook."""
        if resource in EXCLUDED:
            return False
        return self._hooks.source is not None or not is_registration(resource)

    async def validate(self, attributes: Attributes) -> None:
        """Ask, and refuse if one does."""
        if self._hooks.is_empty:
            return
        hooks = self._hooks.static() if is_registration(attributes.resource) else await self._hooks.current()
        if not hooks:
            return
        served, metrics = self.environment.served, self.environment.metrics.conditions
        found = [
            each for hook in hooks if (each := await match(hook, attributes, self._namespaces, served)) is not None
        ]
        versions: dict[GroupVersionKind, _Versioned] = {}
        concerned = []
        for invocation in found:
            versioned = await _versioned(versions, attributes, invocation, served)
            if await meets_conditions(invocation, attributes, *versioned, metrics, VALIDATING):
                concerned.append((invocation, versioned))
        if len(concerned) == 1:
            await self._ask(0, *concerned[0], attributes)
        elif concerned:
            await self._ask_all(concerned, attributes)

    async def _ask_all(self, concerned: list[tuple[Invocation, _Versioned]], attributes: Attributes) -> None:
        await ensure_task()
        calls = [
            asyncio.create_task(self._ask(position, invocation, versioned, attributes))
            for position, (invocation, versioned) in enumerate(concerned)
        ]
        first: BaseException | None = None
        try:
            for finished in asyncio.as_completed(calls):
                try:
                    await finished
                except errors.StatusError as refusal:
                    first = first or refusal
        finally:
            for call in calls:
                call.cancel()
        if first is not None:
            raise first

    async def _ask(self, position: int, invocation: Invocation, versioned: _Versioned, attributes: Attributes) -> None:
        hook = invocation.hook
        account = CallAccount(self.environment.metrics.webhooks, hook, VALIDATING, attributes.operation)
        try:
            verdict = await self._caller.ask(invocation, attributes, *versioned, mutating=False)
        except errors.StatusError as refusal:
            account.refused(refusal)
            raise
        except CallFailed as failure:
            account.failed(failure)
            if not hook.ignores_failure:
                logger.warning("%s; failing closed", failure)
                raise failure.as_status() from None
            logger.warning("%s; failing open", failure)
            annotate(attributes.annotations, f"{_FAILED_OPEN}{position}", hook.name)
            return
        for key, value in verdict.annotations.items():
            annotate(attributes.annotations, f"{hook.name}/{key}", value)
        attributes.warnings += verdict.warnings
        if not verdict.allowed:
            denied = rejection(hook.name, verdict.result)
            account.refused(denied)
            raise denied
        account.answered()

    async def reload(self) -> None:
        """Read the manifests again if they changed."""
        if self._hooks.source is not None:
            await self._hooks.source.reload()

    async def close(self) -> None:
        """Close the connections."""
        await self._caller.close()


async def _versioned(
    known: dict[GroupVersionKind, _Versioned], attributes: Attributes, invocation: Invocation, served: ServedVersions
) -> _Versioned:
    """Both objects in the version wanted, converted once for all webhooks that want it."""
    found = known.get(invocation.kind)
    if found is None:
        found = known[invocation.kind] = (
            await served.to_version(attributes, invocation, attributes.object),
            await served.to_version(attributes, invocation, attributes.old_object),
        )
    return found
