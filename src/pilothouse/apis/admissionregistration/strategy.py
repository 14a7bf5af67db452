"""Webhook configurations, admission policies and their bindings.

Whether the author may read the parameters that a policy or binding refers to is decided by authorization, not here.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Final

from pilothouse.apis.admissionregistration import bindings, policies, webhooks
from pilothouse.apis.columns import AGE, NAME
from pilothouse.apis.status import ResettingStatusStrategy, clear_status
from pilothouse.apis.strategy import Column, Context, Object, Strategy, keep
from pilothouse.machinery.field_errors import FieldError, Path, invalid

_MANIFESTS: Final = "ManifestBasedAdmissionControlConfig"
_STATIC: Final = ".static.k8s.io"
_RESERVED: Final = (
    f'names ending with "{_STATIC}" are reserved for static manifest-based configurations and cannot be managed '
    "via the API"
)
_NOT_SENT: Final = frozenset(
    {
        ("authentication.k8s.io", "selfsubjectreviews"),
        ("authentication.k8s.io", "tokenreviews"),
        ("authorization.k8s.io", "localsubjectaccessreviews"),
        ("authorization.k8s.io", "selfsubjectaccessreviews"),
        ("authorization.k8s.io", "selfsubjectrulesreviews"),
        ("authorization.k8s.io", "subjectaccessreviews"),
    }
)


class _Registration(Strategy):
    """What all kinds of the group share: names that files own are refused, updates carry a version."""

    judges_prefix_on_update = True
    standard_finalizers = False

    generation = True
    allow_unconditional_update = False

    def faults(self, obj: Object, old: Object | None) -> list[FieldError]:
        """What is wrong with the spec."""
        return []

    def validate(self, ctx: Context, obj: Object) -> list[FieldError]:
        errs = self.faults(obj, None)
        name = obj["metadata"].get("name", "")
        if name.endswith(_STATIC) and _MANIFESTS in self.gates:
            errs.append(invalid(Path("metadata", "name"), name, _RESERVED))
        return errs

    def validate_update(self, ctx: Context, obj: Object, old: Object) -> list[FieldError]:
        return self.faults(obj, old)

    def warnings_on_create(self, ctx: Context, obj: Object) -> list[str]:
        return [] if _MANIFESTS in self.gates else _warn_about_name(obj)

    def warnings_on_update(self, ctx: Context, obj: Object, old: Object) -> list[str]:
        return _warn_about_name(obj)


def _warn_about_name(obj: Object) -> list[str]:
    return [f"metadata.name: {_RESERVED}"] if obj["metadata"].get("name", "").endswith(_STATIC) else []


def _webhook_columns() -> tuple[Column, ...]:
    said = "Webhooks indicates the number of webhooks registered in this configuration"
    return (NAME, Column("Webhooks", "integer", lambda o: len(o.get("webhooks") or ()), description=said), AGE)


class ValidatingWebhookStrategy(_Registration):
    """Validating webhook configurations."""

    counts_empty = True
    columns = _webhook_columns()

    def default(self, obj: Object) -> None:
        webhooks.default_webhooks(obj, mutating=False)

    def faults(self, obj: Object, old: Object | None) -> list[FieldError]:
        return webhooks.validate_webhooks(obj, old)

    def warnings_on_create(self, ctx: Context, obj: Object) -> list[str]:
        return super().warnings_on_create(ctx, obj) + self._warn_about_rules(obj)

    def warnings_on_update(self, ctx: Context, obj: Object, old: Object) -> list[str]:
        return super().warnings_on_update(ctx, obj, old) + self._warn_about_rules(obj)

    def _warn_about_rules(self, obj: Object) -> list[str]:
        return list(_unsent(obj)) if "ExcludeAdmissionWebhookVirtualResources" in self.gates else []


class MutatingWebhookStrategy(ValidatingWebhookStrategy):
    """Mutating webhook configurations."""

    def default(self, obj: Object) -> None:
        webhooks.default_webhooks(obj, mutating=True)


def _unsent(obj: Object) -> Any:
    """Rules that name reviews, which are never sent to webhooks."""
    for i, hook in enumerate(obj.get("webhooks") or ()):
        for j, rule in enumerate(hook.get("rules") or ()):
            groups, resources = rule.get("apiGroups") or (), rule.get("resources") or ()
            if "*" in groups or "*" in resources:
                continue
            named = dict.fromkeys((group, name) for group in groups for name in resources)
            for group, name in named:
                if (group, name) in _NOT_SENT:
                    why = "is excluded from admission webhooks; this rule will have no effect"
                    yield f"webhooks[{i}].rules[{j}]: {name}.{group} {why}"


def _param_kind(obj: Object) -> str:
    kind = obj["spec"].get("paramKind")
    return "<unset>" if kind is None else f"{kind.get('apiVersion', '')}/{kind.get('kind', '')}"


def _policy_columns(title: str, field: str, said: str) -> tuple[Column, ...]:
    return (
        NAME,
        Column(title, "integer", lambda o: len(o["spec"].get(field) or ()), description=said),
        Column(
            "ParamKind",
            "string",
            _param_kind,
            description="ParamKind specifies the kind of resources used to parameterize this policy",
        ),
        AGE,
    )


class PolicyStatusStrategy(ResettingStatusStrategy):
    """What type checking reports."""

    standard_finalizers = False
    allow_unconditional_update = False

    def default(self, obj: Object) -> None:
        policies.default_policy(obj)

    def validate_update(self, ctx: Context, obj: Object, old: Object) -> list[FieldError]:
        return bindings.validate_policy_status(obj)


class ValidatingPolicyStrategy(_Registration):
    """Validating admission policies."""

    subresources: ClassVar[Mapping[str, type[Strategy]]] = {"status": PolicyStatusStrategy}
    columns = _policy_columns(
        "Validations",
        "validations",
        "Validations indicates the number of validation rules defined in this configuration",
    )

    def default(self, obj: Object) -> None:
        policies.default_policy(obj)

    def prepare_for_create(self, ctx: Context, obj: Object) -> None:
        clear_status(obj, "admissionregistration.v1.ValidatingAdmissionPolicy")

    def prepare_for_update(self, ctx: Context, obj: Object, old: Object) -> None:
        keep(obj, old, "status")

    def faults(self, obj: Object, old: Object | None) -> list[FieldError]:
        return policies.validate_validating_policy(obj, old)


class MutatingPolicyStrategy(_Registration):
    """Mutating admission policies."""

    columns = _policy_columns(
        "Mutations", "mutations", "Mutation indicates the number of mutations rules defined in this configuration"
    )

    def default(self, obj: Object) -> None:
        policies.default_policy(obj)

    def faults(self, obj: Object, old: Object | None) -> list[FieldError]:
        return policies.validate_mutating_policy(obj, old)


def _param_ref(obj: Object) -> str:
    ref = obj["spec"].get("paramRef")
    if ref is None:
        return "<unset>"
    if ref.get("name"):
        return f"{ref.get('namespace') or '*'}/{ref['name']}"
    return "<unset>" if ref.get("selector") is None else _show_selector(ref["selector"])


def _show_selector(selector: Object) -> str:
    """A selector as Go prints the protobuf message."""
    pairs = selector.get("matchLabels") or {}
    shown = "".join(f"{key}: {pairs[key]}," for key in sorted(pairs))
    requirements = "".join(
        f"LabelSelectorRequirement{{Key:{e.get('key', '')},Operator:{e.get('operator', '')},"
        f"Values:[{' '.join(e.get('values') or ())}],}},"
        for e in selector.get("matchExpressions") or ()
    )
    return (
        f"&LabelSelector{{MatchLabels:map[string]string{{{shown}}},"
        f"MatchExpressions:[]LabelSelectorRequirement{{{requirements}}},}}"
    )


_BINDING_COLUMNS: Final = (
    NAME,
    Column(
        "PolicyName",
        "string",
        lambda o: o["spec"].get("policyName", ""),
        description="PolicyName indicates the policy definition which the policy binding binded to",
    ),
    Column(
        "ParamRef",
        "string",
        _param_ref,
        description="ParamRef indicates the param resource which sets the configuration param",
    ),
    AGE,
)


class ValidatingBindingStrategy(_Registration):
    """Bindings of validating policies."""

    columns = _BINDING_COLUMNS

    def default(self, obj: Object) -> None:
        policies.default_match(obj["spec"].get("matchResources"))

    def faults(self, obj: Object, old: Object | None) -> list[FieldError]:
        return bindings.validate_validating_binding(obj)


class MutatingBindingStrategy(ValidatingBindingStrategy):
    """Bindings of mutating policies."""

    def faults(self, obj: Object, old: Object | None) -> list[FieldError]:
        return bindings.validate_mutating_binding(obj)


STRATEGIES: dict[str, type[Strategy]] = {
    "validatingwebhookconfigurations": ValidatingWebhookStrategy,
    "mutatingwebhookconfigurations": MutatingWebhookStrategy,
    "validatingadmissionpolicies": ValidatingPolicyStrategy,
    "validatingadmissionpolicybindings": ValidatingBindingStrategy,
    "mutatingadmissionpolicies": MutatingPolicyStrategy,
    "mutatingadmissionpolicybindings": MutatingBindingStrategy,
}
