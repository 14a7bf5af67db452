"""MutatingAdmissionWebhook: asks webhooks one after the other; each sees what those before it made of the object.

A webhook that wants to is asked again, once, when the object changed after it had its say (``reinvocationPolicy``).
"""

from __future__ import annotations

from collections.abc import Sequence
from operator import ne
from typing import Any, Final

import orjson

from pilothouse.admission.annotations import annotate
from pilothouse.admission.metrics import ADMIT
from pilothouse.admission.objects import Objects
from pilothouse.admission.reinvocation import Round, begin_round
from pilothouse.admission.webhooks.accounting import CallAccount
from pilothouse.admission.webhooks.conditions import meets_conditions
from pilothouse.admission.webhooks.failures import CallFailed, rejection
from pilothouse.admission.webhooks.hooks import Hook
from pilothouse.admission.webhooks.matching import Invocation, match
from pilothouse.admission.webhooks.patching import apply_patch, decode_patch
from pilothouse.admission.webhooks.plugin import WebhookPlugin, settle_failure, take_notes
from pilothouse.admission.webhooks.reviews import Verdict
from pilothouse.endpoints.admission import Attributes
from pilothouse.machinery import errors, large_json
from pilothouse.machinery.go_json import escape_html
from pilothouse.machinery.go_quote import quote
from pilothouse.machinery.workers import weighed

_MUTATION: Final = "mutation.webhook.admission.k8s.io/"
_PATCH: Final = "patch.webhook.admission.k8s.io/"


class MutatingAdmissionWebhook(WebhookPlugin):
    """See the module's docstring."""

    name = "MutatingAdmissionWebhook"
    kind = "MutatingWebhookConfiguration"

    def is_idle(self) -> bool:
        """Whether there are none."""
        return self.hooks.is_empty

    def idle_by(self) -> Sequence[Objects]:
        """The configurations."""
        return self.hooks.decisive

    async def admit(self, attributes: Attributes) -> None:
        """Ask each webhook and take over what it changes."""
        if self.is_idle():
            return
        hooks = await self.hooks_for(attributes)
        if not hooks:
            return
        this_round: Round[str] = await begin_round(attributes, self.name)
        served, metrics = self.environment.served, self.environment.metrics.conditions
        for position, hook in enumerate(hooks):
            invocation = await match(hook, attributes, self.namespaces, served)
            if invocation is None:
                continue
            obj = await served.to_version(attributes, invocation, attributes.object)
            old = await served.to_version(attributes, invocation, attributes.old_object)
            if not await meets_conditions(invocation, attributes, obj, old, metrics, ADMIT):
                continue
            if this_round.skips(hook.uid):
                continue
            if await self._ask(f"round_{this_round.number}_index_{position}", invocation, attributes, obj, old):
                this_round.changed()
            if hook.reinvoked:
                this_round.note(hook.uid)
        await this_round.end(attributes)

    async def _ask(self, place: str, invocation: Invocation, attributes: Attributes, obj: Any, old: Any) -> bool:
        """Whether the webhook changed the object; raises the refusal."""
        hook = invocation.hook
        changed = False
        metrics, times = self.environment.metrics.webhooks, attributes.times
        account = CallAccount(metrics, hook, ADMIT, attributes.operation, times)
        try:
            verdict = await self.caller.ask(invocation, attributes, obj, old, mutating=True)
            await take_notes(hook, verdict, attributes)
            if not verdict.allowed:
                raise rejection(hook.name, verdict.result)
            changed = await self._change(place, invocation, attributes, verdict, obj)
            account.answered()
        except errors.StatusError as refusal:
            account.refused(refusal)
            raise
        except CallFailed as failure:
            account.failed(failure)
            settle_failure(hook, failure, attributes, _MUTATION + place)
        finally:
            said = {"configuration": hook.configuration, "webhook": hook.name, "mutated": changed}
            annotate(attributes.annotations, _MUTATION + place, escape_html(orjson.dumps(said)).decode())
        return changed

    async def _change(
        self, place: str, invocation: Invocation, attributes: Attributes, verdict: Verdict, obj: Any
    ) -> bool:
        if not verdict.patch:
            return False
        attributes.weight = max(attributes.weight, verdict.weight)
        made = await weighed(attributes.weight, _patch, place, invocation.hook, attributes, verdict, obj)
        if made is None:
            return False
        patched, size = made
        attributes.weight = max(attributes.weight, size)
        attributes.object = await self.environment.served.from_version(attributes, invocation, patched)
        return await weighed(attributes.weight, ne, patched, obj)


def _patch(
    place: str, hook: Hook, attributes: Attributes, verdict: Verdict, obj: Any
) -> tuple[dict[str, Any], int] | None:
    """The object as a webhook changed it and how long it has become, which copies make of a few bytes.

    None if there is nothing to change; raises the refusal or CallFailed.
    """
    operations = decode_patch(hook.name, verdict)
    if not operations:
        return None
    if obj is None:
        why = (
            f"admission webhook {quote(hook.name)} attempted to modify the object, "
            "which is not supported for this operation"
        )
        raise errors.internal_error(why)
    patched = apply_patch(hook.name, verdict, obj, operations)
    said: dict[str, Any] = {"configuration": hook.configuration, "webhook": hook.name}
    said |= {"patch": operations, "patchType": "JSONPatch"}
    annotate(attributes.request_annotations, _PATCH + place, escape_html(large_json.dumps(said)).decode())
    return patched, len(large_json.dumps(patched))
