"""ValidatingAdmissionWebhook: asks all webhooks that are concerned at once; the first refusal to arrive counts."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any, Final

from pilothouse.admission.metrics import VALIDATING
from pilothouse.admission.objects import Objects
from pilothouse.admission.versions import ServedVersions
from pilothouse.admission.webhooks.accounting import CallAccount
from pilothouse.admission.webhooks.conditions import meets_conditions
from pilothouse.admission.webhooks.failures import CallFailed, rejection
from pilothouse.admission.webhooks.matching import Invocation, match
from pilothouse.admission.webhooks.plugin import WebhookPlugin, settle_failure, take_notes
from pilothouse.endpoints.admission import Attributes
from pilothouse.machinery import errors
from pilothouse.machinery.gvk import GroupVersionKind
from pilothouse.net.eager import ensure_task

_VALIDATION: Final = "validating.webhook.admission.k8s.io/round_0_index_"
_Versioned = tuple[Any, Any]


class ValidatingAdmissionWebhook(WebhookPlugin):
    """See the module's docstring."""

    name = "ValidatingAdmissionWebhook"
    kind = "ValidatingWebhookConfiguration"

    def is_idle(self) -> bool:
        """Whether there are none."""
        return self.hooks.is_empty

    def idle_by(self) -> Sequence[Objects]:
        """The configurations."""
        return self.hooks.decisive

    async def validate(self, attributes: Attributes) -> None:
        """Ask, and refuse if one does."""
        if self.is_idle():
            return
        hooks = await self.hooks_for(attributes)
        if not hooks:
            return
        served, metrics = self.environment.served, self.environment.metrics.conditions
        found = [each for hook in hooks if (each := await match(hook, attributes, self.namespaces, served)) is not None]
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
        refusals: list[errors.StatusError] = []

        async def ask(position: int, invocation: Invocation, versioned: _Versioned) -> None:
            try:
                await self._ask(position, invocation, versioned, attributes)
            except errors.StatusError as refusal:
                refusals.append(refusal)

        async with asyncio.TaskGroup() as group:
            for position, (invocation, versioned) in enumerate(concerned):
                group.create_task(ask(position, invocation, versioned))
        if refusals:
            raise refusals[0]

    async def _ask(self, position: int, invocation: Invocation, versioned: _Versioned, attributes: Attributes) -> None:
        hook = invocation.hook
        metrics, times = self.environment.metrics.webhooks, attributes.times
        account = CallAccount(metrics, hook, VALIDATING, attributes.operation, times)
        try:
            verdict = await self.caller.ask(invocation, attributes, *versioned, mutating=False)
        except errors.StatusError as refusal:
            account.refused(refusal)
            raise
        except CallFailed as failure:
            account.failed(failure)
            settle_failure(hook, failure, attributes, f"{_VALIDATION}{position}")
            return
        await take_notes(hook, verdict, attributes)
        if not verdict.allowed:
            denied = rejection(hook.name, verdict.result)
            account.refused(denied)
            raise denied
        account.answered()


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
