"""MutatingAdmissionWebhook: asks webhooks one after the other; each sees what those before it made of the object.

A webhook that wants to is asked again, once, when the object changed after it had its say (``reinvocationPolicy``).
"""

from __future__ import annotations

import logging
from dataclasses import dataclass, field
from typing import Any, Final

import orjson

from pilothouse.admission.annotating import annotate
from pilothouse.admission.environment import Environment
from pilothouse.admission.manifests.source import find_source
from pilothouse.admission.metrics import ADMIT
from pilothouse.admission.plugin import Plugin
from pilothouse.admission.reinvocation import Reinvocation
from pilothouse.admission.webhooks.accounting import CallAccount
from pilothouse.admission.webhooks.calling import HookCaller
from pilothouse.admission.webhooks.conditions import meets_conditions
from pilothouse.admission.webhooks.failures import CallFailed, rejection
from pilothouse.admission.webhooks.hooks import Hooks
from pilothouse.admission.webhooks.matching import EXCLUDED, Invocation, is_registration, match
from pilothouse.admission.webhooks.patching import apply_patch, decode_patch
from pilothouse.admission.webhooks.reviews import Verdict
from pilothouse.endpoints.admission import Attributes
from pilothouse.machinery import errors
from pilothouse.machinery.go_json import escape_html
from pilothouse.machinery.go_quote import quote
from pilothouse.machinery.gvk import GroupResource

logger = logging.getLogger(__name__)
_MUTATION: Final = "mutation.webhook.admission.k8s.io/"
_PATCH: Final = "patch.webhook.admission.k8s.io/"


@dataclass(slots=True)
class _Round:
    """What is known of the webhooks of one request: who may have to be asked again, and who has to."""

    asked: set[str] = field(default_factory=set)
    due: set[str] = field(default_factory=set)
    last: bytes = b""

    def require(self) -> None:
        """The object changed: whoever was asked before is due again."""
        self.due |= self.asked
        self.asked = set()


class MutatingAdmissionWebhook(Plugin):
    """See the module's docstring."""

    name = "MutatingAdmissionWebhook"

    def __init__(self, environment: Environment, configuration: Any = None) -> None:
        super().__init__(environment)
        self._caller = HookCaller(environment, configuration)
        static = find_source(environment, self.name, configuration, ("MutatingWebhookConfiguration",), "webhook")
        self._hooks = Hooks(environment, "mutatingwebhookconfigurations", static)
        self._namespaces = environment.objects("", "v1", "namespaces")

    def concerns(self, operation: str, resource: GroupResource, subresource: str) -> bool:
        """Everything but what would lock out whoever repairs a webhook."""
        if resource in EXCLUDED:
            return False
        return self._hooks.source is not None or not is_registration(resource)

    async def admit(self, attributes: Attributes) -> None:
        """Ask each webhook and take over what it changes."""
        if self._hooks.is_empty:
            return
        hooks = self._hooks.static() if is_registration(attributes.resource) else await self._hooks.current()
        if not hooks:
            return
        run = attributes.reinvocation
        if run is None:
            run = attributes.reinvocation = Reinvocation()
        state = run.state.setdefault(self.name, _Round())
        if run.again and state.asked and state.last != _snapshot(attributes.object):
            state.require()
        served = self.environment.served
        for position, hook in enumerate(hooks):
            invocation = await match(hook, attributes, self._namespaces, served)
            if invocation is None:
                continue
            obj = await served.to_version(attributes, invocation, attributes.object)
            old = await served.to_version(attributes, invocation, attributes.old_object)
            conditions = self.environment.metrics.conditions
            if not await meets_conditions(invocation, attributes, obj, old, conditions, ADMIT):
                continue
            if run.again and hook.uid not in state.due:
                continue
            if await self._ask(int(run.again), position, invocation, attributes, obj, old):
                state.require()
                run.require()
            if hook.reinvoked:
                state.asked.add(hook.uid)
        if state.asked:
            state.last = _snapshot(attributes.object)

    async def _ask(
        self, round_number: int, position: int, invocation: Invocation, attributes: Attributes, obj: Any, old: Any
    ) -> bool:
        """Whether the webhook changed the object; raises the refusal."""
        hook, notes = invocation.hook, attributes.annotations
        place = f"round_{round_number}_index_{position}"
        changed = False
        account = CallAccount(self.environment.metrics.webhooks, hook, ADMIT, attributes.operation)
        try:
            verdict = await self._caller.ask(invocation, attributes, obj, old, mutating=True)
            for key, value in verdict.annotations.items():
                annotate(notes, f"{hook.name}/{key}", value)
            attributes.warnings += verdict.warnings
            if not verdict.allowed:
                raise rejection(hook.name, verdict.result)
            changed = await self._change(place, invocation, attributes, verdict, obj)
            account.answered()
        except errors.StatusError as refusal:
            account.refused(refusal)
            raise
        except CallFailed as failure:
            account.failed(failure)
            if not hook.ignores_failure:
                logger.warning("%s; failing closed", failure)
                raise failure.as_status() from None
            logger.warning("%s; failing open", failure)
            annotate(notes, f"failed-open.{_MUTATION}{place}", hook.name)
        finally:
            said = {"configuration": hook.configuration, "webhook": hook.name, "mutated": changed}
            annotate(notes, _MUTATION + place, escape_html(orjson.dumps(said)).decode())
        return changed

    async def _change(
        self, place: str, invocation: Invocation, attributes: Attributes, verdict: Verdict, obj: Any
    ) -> bool:
        hook = invocation.hook
        operations = decode_patch(hook.name, verdict)
        if not operations:
            return False
        if obj is None:
            why = (
                f"admission webhook {quote(hook.name)} attempted to modify the object, "
                "which is not supported for this operation"
            )
            raise errors.internal_error(why)
        patched = apply_patch(hook.name, verdict, obj, operations)
        said: dict[str, Any] = {"configuration": hook.configuration, "webhook": hook.name}
        said |= {"patch": operations, "patchType": "JSONPatch"}
        annotate(attributes.request_annotations, _PATCH + place, escape_html(orjson.dumps(said)).decode())
        attributes.object = await self.environment.served.from_version(attributes, invocation, patched)
        return bool(patched != obj)

    async def reload(self) -> None:
        """Read the manifests again if they changed."""
        if self._hooks.source is not None:
            await self._hooks.source.reload()

    async def close(self) -> None:
        """Close the connections."""
        await self._caller.close()


def _snapshot(obj: Any) -> bytes:
    return orjson.dumps(obj, option=orjson.OPT_SORT_KEYS)
