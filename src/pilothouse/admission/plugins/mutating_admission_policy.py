"""MutatingAdmissionPolicy: changes objects as policies written as expressions say, one policy after the other.

Each sees what those before it made of the object. A policy that wants to is applied again, once, when the object
changed after it had its say (``reinvocationPolicy``).
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from operator import ne
from typing import TYPE_CHECKING, Any

from pilothouse.admission.metrics import NO_ERROR, VALIDATE, error_type
from pilothouse.admission.objects import Objects
from pilothouse.admission.policies.criteria import Match
from pilothouse.admission.policies.definitions import Binding, Definition, Policy
from pilothouse.admission.policies.errors import MutationError
from pilothouse.admission.policies.inputs import Inputs, describe_request, find_namespace
from pilothouse.admission.policies.params import Misconfigured
from pilothouse.admission.policies.plugin import PolicyPlugin
from pilothouse.admission.refusals import forbidden
from pilothouse.admission.reinvocation import Round, begin_round
from pilothouse.apis import types
from pilothouse.endpoints.admission import Attributes
from pilothouse.machinery import errors, large_json
from pilothouse.machinery.go_quote import quote
from pilothouse.machinery.gvk import GroupResource
from pilothouse.machinery.schema.unknown import unknown_fields
from pilothouse.machinery.workers import weighed

if TYPE_CHECKING:
    from pilothouse.admission.expressions.access_checks import AccessChecks
    from pilothouse.admission.policies.mutations import Mutation, Mutator

_Key = tuple[str, str, str, str]


@dataclass(frozen=True, slots=True)
class _Invocation:
    """A policy to be applied with one object of params."""

    definition: Definition[Mutator]
    binding: Binding
    match: Match
    params: dict[str, Any] | None

    @property
    def key(self) -> _Key:
        metadata = (self.params or {}).get("metadata") or {}
        return self.definition.name, self.binding.name, metadata.get("namespace", ""), metadata.get("name", "")


@dataclass(slots=True)
class _Errors:
    """Why a request has to be refused."""

    found: list[tuple[str, str]] = field(default_factory=list)
    """Messages and reasons."""

    def add(self, definition: Definition[Mutator], binding: Binding | None, why: str, reason: str = "") -> None:
        """Note a failure; the failure policy decides whether it counts."""
        if definition.ignores_failure:
            return
        if binding is None:
            message = f"policy {quote(definition.name)} denied request: {why}"
        else:
            message = f"policy '{definition.name}' with binding '{binding.name}' denied request: {why}"
        self.found.append((message, reason))

    def finish(self, attributes: Attributes) -> None:
        """Raise the refusal, if there is one."""
        if not self.found:
            return
        refusal = forbidden(attributes, "")
        details = {**(refusal.details or {}), "causes": [{"message": message} for message, _ in self.found]}
        message, reason = self.found[0]
        raise errors.StatusError(refusal.code, reason or refusal.reason, message, details)


class MutatingAdmissionPolicy(PolicyPlugin["Mutator"]):
    """See the module's docstring."""

    name = "MutatingAdmissionPolicy"
    policy_resource = "mutatingadmissionpolicies"

    def compile_policy(self, spec: dict[str, Any]) -> Mutator:
        # Brings the whole expression language along, which few servers need.
        from pilothouse.admission.policies.mutations import Mutator

        return Mutator(spec)

    def concerns(self, operation: str, resource: GroupResource, subresource: str) -> bool:
        """Everything but policies themselves, where the feature is on."""
        return self.environment.enabled(self.name) and super().concerns(operation, resource, subresource)

    def is_idle(self) -> bool:
        """Whether there are none."""
        return self.policies.is_empty

    def idle_by(self) -> Sequence[Objects]:
        """The bindings."""
        return self.policies.decisive

    async def admit(self, attributes: Attributes) -> None:
        """Apply each policy that is concerned, then refuse if one failed."""
        if self.is_idle():
            return
        policies = await self.policies_for(attributes)
        if not policies:
            return
        errs = _Errors()
        invocations: list[_Invocation] = []
        for policy in policies:
            invocations += await self._select(policy, attributes, errs)
        if invocations:
            await self._apply_all(invocations, attributes, errs)
        errs.finish(attributes)

    async def _select(self, policy: Policy[Mutator], attributes: Attributes, errs: _Errors) -> list[_Invocation]:
        definition = policy.definition
        try:
            concerned = await self.match(definition, attributes)
        except Misconfigured as error:
            errs.add(definition, None, f"failed to configure policy: {error}")
            return []
        if concerned is None:
            return []
        match, source = concerned
        invocations: list[_Invocation] = []
        for binding in policy.bindings:
            try:
                found = await self.collect(binding, source, attributes)
            except Misconfigured as error:
                errs.add(definition, binding, f"failed to configure binding: {error}")
            else:
                invocations += [_Invocation(definition, binding, match, params) for params in found]
        return invocations

    async def _apply_all(self, invocations: list[_Invocation], attributes: Attributes, errs: _Errors) -> None:
        from pilothouse.admission.expressions.access_checks import AccessChecks

        this_round: Round[_Key] = await begin_round(attributes, self.name)
        namespace = await find_namespace(attributes, self.namespaces)
        checks = AccessChecks(self.environment.authorizer, attributes.user)
        mutated = False
        for invocation in invocations:
            inputs = await self._inputs(invocation, attributes, namespace, checks)
            if not await self._meets(invocation, inputs, attributes, checks, errs):
                continue
            if this_round.skips(invocation.key):
                continue
            before = attributes.object
            mutated |= await self._apply(invocation, inputs, attributes, checks, errs)
            if await weighed(attributes.weight, ne, attributes.object, before):
                this_round.changed()
            if invocation.definition.reinvoked:
                this_round.note(invocation.key)
        if mutated:
            # The last policy's own mutation makes it due again too, even one that left the object as it was.
            this_round.changed()
        await this_round.end(attributes)

    async def _inputs(
        self, invocation: _Invocation, attributes: Attributes, namespace: Any, checks: AccessChecks
    ) -> Inputs:
        match, served = invocation.match, self.environment.served
        obj = await served.to_version(attributes, match, attributes.object)
        old = await served.to_version(attributes, match, attributes.old_object)
        request, access = partial(describe_request, attributes, match), partial(checks.bindings, attributes)
        return Inputs(obj, old, request, namespace, invocation.params, access)

    async def _meets(
        self, invocation: _Invocation, inputs: Inputs, attributes: Attributes, checks: AccessChecks, errs: _Errors
    ) -> bool:
        """Whether a policy's conditions are met; what cannot be told is noted."""
        definition = invocation.definition
        meeting = await checks.run(lambda: definition.compiled.meets(inputs))
        if meeting is None:
            return True
        metrics, seconds = self.environment.metrics.conditions, meeting.seconds
        metrics.evaluated(definition.name, "policy", VALIDATE, attributes.operation, seconds, meeting.errs)
        if meeting.error:
            errs.add(definition, invocation.binding, meeting.error, "Invalid")
        return meeting.met

    async def _apply(
        self, invocation: _Invocation, inputs: Inputs, attributes: Attributes, checks: AccessChecks, errs: _Errors
    ) -> bool:
        """Apply all mutations of a policy; tell whether any could be applied."""
        applied = False
        for mutation in invocation.definition.compiled.mutations:
            if inputs.obj is None:
                break
            started = time.perf_counter()
            why = NO_ERROR
            try:
                await self._mutate(invocation, mutation, inputs, attributes, checks)
                applied = True
            except MutationError as error:
                why = error_type(str(error))
                errs.add(invocation.definition, invocation.binding, str(error), "Invalid")
            except errors.StatusError:
                why = error_type("")
                raise
            finally:
                self.environment.metrics.mutations.checked(
                    time.perf_counter() - started, invocation.definition.name, invocation.binding.name, why
                )
        return applied

    async def _mutate(
        self, invocation: _Invocation, mutation: Mutation, inputs: Inputs, attributes: Attributes, checks: AccessChecks
    ) -> None:
        match, served, mutator = invocation.match, self.environment.served, invocation.definition.compiled
        assert inputs.obj is not None
        shape, obj = served.shape_of(attributes, match), inputs.obj

        def change() -> tuple[dict[str, Any], int]:
            """The changed object, and how long it has become."""
            changed = mutation.change(obj, mutator.evaluate(mutation, inputs), shape)
            if not mutation.applies:
                _refuse_unknown(match, changed)
            return changed, 0 if changed is obj else len(large_json.dumps(changed))

        changed, size = await checks.run(change, attributes.weight)
        if changed is not obj:
            attributes.weight = max(attributes.weight, size)
            attributes.object = await served.from_version(attributes, match, changed)
            inputs.obj = await served.to_version(attributes, match, attributes.object)


def _refuse_unknown(match: Match, obj: dict[str, Any]) -> None:
    """Patches may not add what the kind does not have; merging refuses that by itself."""
    struct = types.find_kind(match.kind)
    unknown = [f"unknown field {quote(path)}" for path in unknown_fields(struct, obj)] if struct is not None else []
    if unknown:
        raise errors.internal_error(f"strict decoding error: {', '.join(unknown)}")
