"""ValidatingAdmissionPolicy: refuses, warns of or notes down what policies written as expressions object to.

All policies are asked before the first refusal is answered with, so that every warning and audit annotation is there.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cache, partial
from typing import TYPE_CHECKING, Any, Final

import orjson

from pilothouse.admission.annotations import annotate
from pilothouse.admission.metrics import VALIDATE, AdmissionMetrics, error_type
from pilothouse.admission.objects import Objects
from pilothouse.admission.policies.criteria import Match
from pilothouse.admission.policies.definitions import Binding, Definition, Policy
from pilothouse.admission.policies.inputs import Inputs, describe_request, find_namespace
from pilothouse.admission.policies.params import Misconfigured
from pilothouse.admission.policies.plugin import PolicyPlugin
from pilothouse.admission.refusals import forbidden
from pilothouse.endpoints.admission import Attributes
from pilothouse.machinery import errors
from pilothouse.machinery.go_json import escape_html

if TYPE_CHECKING:
    from pilothouse.admission.expressions.access_checks import AccessChecks
    from pilothouse.admission.policies.validations import Denial, Judge, Verdict

_FAILURES: Final = "validation.policy.admission.k8s.io/validation_failure"
_MOST_FAILURES: Final = 50
_LONGEST_VALUE: Final = 10 * 1024
_INVALID: Final = "Invalid"
_Seen = tuple[Any, Any, Callable[[], dict[str, Any]]]
"""The object, the old one, and what describes the request without them, in some version."""
_CODES: Final = {"Forbidden": 403, "Unauthorized": 401, "RequestEntityTooLarge": 413, _INVALID: 422}


@dataclass(slots=True)
class _Outcome:
    """What all policies say of one request."""

    attributes: Attributes
    checks: AccessChecks
    metrics: AdmissionMetrics
    versions: dict[Match, _Seen] = field(default_factory=dict)
    refusals: list[tuple[str, str]] = field(default_factory=list)
    """Messages and reasons."""
    failures: list[dict[str, Any]] = field(default_factory=list)

    def misconfigured(self, definition: Definition[Judge], binding: Binding | None, why: str) -> None:
        """A policy or binding that cannot be used: its failure policy decides."""
        if not definition.ignores_failure:
            what = "policy" if binding is None else "binding"
            self.refuse(definition, binding, f"failed to configure {what}: {why}", "")

    def refuse(self, definition: Definition[Judge], binding: Binding | None, why: str, reason: str) -> None:
        """Note a reason to refuse the request."""
        bound = f" with binding '{binding.name}'" if binding is not None else ""
        message = f"ValidatingAdmissionPolicy '{definition.name}'{bound} denied request: {why}"
        self.refusals.append((message, reason or _INVALID))

    def take(self, definition: Definition[Judge], binding: Binding, verdict: Verdict, notes: dict[str, Any]) -> None:
        """Do what the binding wants done with what its policy says."""
        if verdict.meeting is not None:
            seconds, errs = verdict.meeting.seconds, verdict.meeting.errs
            operation = self.attributes.operation
            self.metrics.conditions.evaluated(definition.name, "policy", VALIDATE, operation, seconds, errs)
        for ignored in verdict.ignored:
            self._count(definition, binding, ignored, "allow")
        for denial in verdict.denials:
            for action in binding.actions:
                self._act(definition, binding, denial, action)
        for key, value in verdict.annotations:
            notes.setdefault(key, {})[value.encode()[:_LONGEST_VALUE].decode(errors="ignore")] = None
        for error in verdict.annotation_errors:
            self._act(definition, binding, error, "Deny")

    def _act(self, definition: Definition[Judge], binding: Binding, denial: Denial, action: str) -> None:
        if action == "Deny":
            self.refuse(definition, binding, denial.message, denial.reason)
        elif action == "Warn":
            warning = (
                f"Validation failed for ValidatingAdmissionPolicy '{definition.name}' "
                f"with binding '{binding.name}': {denial.message}"
            )
            self.attributes.warnings.append(warning)
        elif action == "Audit":
            self.failures.append(
                {
                    "message": denial.message,
                    "policy": binding.policy,
                    "binding": binding.name,
                    "expressionIndex": denial.position,
                    "validationActions": list(binding.actions),
                }
            )
        self._count(definition, binding, denial, action.lower())

    def _count(self, definition: Definition[Judge], binding: Binding, denial: Denial, action: str) -> None:
        why = error_type(denial.message)
        self.metrics.validations.checked(denial.seconds, definition.name, binding.name, why, action)

    def finish(self) -> None:
        """Raise the first refusal, if there is one."""
        if self.failures:
            shown = escape_html(orjson.dumps(self.failures[:_MOST_FAILURES])).decode()
            annotate(self.attributes.annotations, _FAILURES, shown)
        if not self.refusals:
            return
        message, reason = self.refusals[0]
        refusal = forbidden(self.attributes, message)
        details = {**(refusal.details or {}), "causes": [{"message": message}]}
        raise errors.StatusError(_CODES.get(reason, 422), reason, refusal.message, details)


@cache
def _access_checks() -> type[AccessChecks]:
    """Imported with the first policy, and found without the import machinery from then on."""
    from pilothouse.admission.expressions.access_checks import AccessChecks

    return AccessChecks


class ValidatingAdmissionPolicy(PolicyPlugin["Judge"]):
    """See the module's docstring."""

    name = "ValidatingAdmissionPolicy"
    policy_resource = "validatingadmissionpolicies"

    def compile_policy(self, spec: dict[str, Any]) -> Judge:
        # Brings the whole expression language along, which few servers need.
        from pilothouse.admission.policies.validations import Judge

        return Judge(spec)

    def is_idle(self) -> bool:
        """Whether there are none."""
        return self.policies.is_empty

    def idle_by(self) -> Sequence[Objects]:
        """The bindings."""
        return self.policies.decisive

    async def validate(self, attributes: Attributes) -> None:
        """Ask every policy, then refuse if one does."""
        if self.is_idle():
            return
        policies = await self.policies_for(attributes)
        if not policies:
            return
        environment = self.environment
        checks = _access_checks()(environment.authorizer, attributes.user)
        outcome = _Outcome(attributes, checks, environment.metrics)
        for policy in policies:
            await self._ask(policy, outcome)
        outcome.finish()

    async def _ask(self, policy: Policy[Judge], outcome: _Outcome) -> None:
        definition, attributes = policy.definition, outcome.attributes
        try:
            concerned = await self.match(definition, attributes)
        except Misconfigured as error:
            outcome.misconfigured(definition, None, str(error))
            return
        if concerned is None:
            return
        match, source = concerned
        notes: dict[str, dict[str, None]] = {}
        for binding in policy.bindings:
            try:
                found = await self.collect(binding, source, attributes)
                seen = await self._show(match, outcome) if found else None
            except Misconfigured as error:
                outcome.misconfigured(definition, binding, str(error))
            else:
                if seen is not None:
                    for verdict in await self._judge(definition, seen, found, outcome):
                        outcome.take(definition, binding, verdict, notes)
        for key, values in notes.items():
            annotate(attributes.annotations, f"{definition.name}/{key}", ", ".join(values))

    async def _show(self, match: Match, outcome: _Outcome) -> _Seen:
        """The request in the version a policy wants, converted once for all that want it."""
        seen = outcome.versions.get(match)
        if seen is None:
            attributes, served = outcome.attributes, self.environment.served
            try:
                obj = await served.to_version(attributes, match, attributes.object)
                old = await served.to_version(attributes, match, attributes.old_object)
            except errors.StatusError as error:
                why = error.message.removeprefix("Internal error occurred: ")
                raise Misconfigured(f"failed to convert object version: {why}") from None
            seen = outcome.versions[match] = (obj, old, partial(describe_request, attributes, match))
        return seen

    async def _judge(
        self, definition: Definition[Judge], seen: _Seen, found: list[Any], outcome: _Outcome
    ) -> list[Verdict]:
        attributes, checks = outcome.attributes, outcome.checks
        namespace = await find_namespace(attributes, self.namespaces)
        judge, verdicts = definition.compiled, []
        access = partial(checks.bindings, attributes)
        for params in found:
            inputs = Inputs(*seen, namespace, params, access)
            verdicts.append(await checks.run(lambda inputs=inputs: judge.judge(inputs)))  # type: ignore[misc]
        return verdicts
