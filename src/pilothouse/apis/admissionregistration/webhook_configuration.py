"""Configurations of webhooks, validating and mutating: their defaults, rules and warnings."""

from __future__ import annotations

from typing import Any, ClassVar, Final, NamedTuple

from pilothouse.apis.admissionregistration.endpoints import validate_service, validate_url
from pilothouse.apis.admissionregistration.registration import RegistrationStrategy
from pilothouse.apis.admissionregistration.rules import (
    FAILURE_POLICIES,
    MATCH_POLICIES,
    REINVOCATION_POLICIES,
    validate_match_conditions,
    validate_rule,
)
from pilothouse.apis.columns import AGE, NAME
from pilothouse.apis.strategy import Column, Context
from pilothouse.apis.strategy_rules import GenerationRules
from pilothouse.apis.validation import one_of, repeats
from pilothouse.machinery import labels, names
from pilothouse.machinery.field_errors import FieldError, Path, duplicate, invalid, required
from pilothouse.machinery.objects import Object

_WEBHOOKS: Final = Path("webhooks")
_SIDE_EFFECTS: Final = ("None", "NoneOnDryRun", "Some", "Unknown")
_NO_SIDE_EFFECTS: Final = ("None", "NoneOnDryRun")
_REVIEWS: Final = ("v1", "v1beta1")
_SELECTORS: Final = ("namespaceSelector", "objectSelector")
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


class _Rules(NamedTuple):
    side_effects: tuple[str, ...] = _NO_SIDE_EFFECTS
    known_reviews: bool = True
    unique_names: bool = True
    lenient_selectors: bool = False
    skip_conditions: bool = False
    stored: frozenset[str] = frozenset()


def default_webhooks(obj: Object, *, mutating: bool) -> None:
    """Fail closed, equivalent resources, all namespaces and objects, ten seconds."""
    for hook in obj.get("webhooks") or ():
        hook.setdefault("failurePolicy", "Fail")
        hook.setdefault("matchPolicy", "Equivalent")
        for name in _SELECTORS:
            hook.setdefault(name, {})
        hook.setdefault("timeoutSeconds", 10)
        if mutating:
            hook.setdefault("reinvocationPolicy", "Never")
        for rule in hook.get("rules") or ():
            rule.setdefault("scope", "*")
        service = hook["clientConfig"].get("service")
        if service is not None:
            service.setdefault("port", 443)


def validate_webhooks(obj: Object, old: Object | None = None, *, lenient: bool = False) -> list[FieldError]:
    """Errors of a webhook configuration; ``lenient`` lets any side effects and equal names pass."""
    errs: list[FieldError] = []
    hooks = obj.get("webhooks") or ()
    rules = _Rules() if old is None else _rules_after(hooks, old.get("webhooks") or ())
    if lenient:
        rules = rules._replace(side_effects=_SIDE_EFFECTS, unique_names=False)
    seen: set[str] = set()
    for position, hook in enumerate(hooks):
        path, name = _WEBHOOKS.index(position), hook.get("name", "")
        _validate_webhook(hook, path, rules, errs)
        reviews = hook.get("admissionReviewVersions") or []
        _validate_reviews(reviews, path.child("admissionReviewVersions"), rules, errs)
        if rules.unique_names and name in seen:
            errs.append(duplicate(path.child("name"), name))
        if name:
            seen.add(name)
    return errs


def _rules_after(hooks: Any, before: Any) -> _Rules:
    had = [hook.get("name", "") for hook in before]
    conditions = [hook.get("matchConditions") for hook in before]
    return _Rules(
        side_effects=_NO_SIDE_EFFECTS
        if all(h.get("sideEffects") in _NO_SIDE_EFFECTS for h in before)
        else _SIDE_EFFECTS,
        known_reviews=all(_is_reviewable(hook.get("admissionReviewVersions") or ()) for hook in before),
        unique_names=len(set(had)) == len(had),
        lenient_selectors=any(labels.validate_object(h.get(name), _WEBHOOKS) for h in before for name in _SELECTORS),
        skip_conditions=conditions == [hook.get("matchConditions") for hook in hooks],
        stored=frozenset(one.get("expression", "") for some in conditions for one in some or ()),
    )


def _is_reviewable(versions: Any) -> bool:
    return not versions or any(version in _REVIEWS for version in versions)


def _validate_webhook(hook: Object, path: Path, rules: _Rules, errs: list[FieldError]) -> None:
    errs += names.check_fully_qualified_name(path.child("name"), hook.get("name", ""))
    for position, rule in enumerate(hook.get("rules") or ()):
        validate_rule(rule, path.child("rules").index(position), errs)
    if hook.get("failurePolicy") is not None:
        one_of(hook["failurePolicy"], FAILURE_POLICIES, path, "failurePolicy", errs)
    if hook.get("matchPolicy") is not None:
        one_of(hook["matchPolicy"], MATCH_POLICIES, path, "matchPolicy", errs)
    if hook.get("sideEffects") is None:
        errs.append(required(path.child("sideEffects"), f"must specify one of {', '.join(rules.side_effects)}"))
    else:
        one_of(hook["sideEffects"], rules.side_effects, path, "sideEffects", errs)
    seconds = hook.get("timeoutSeconds")
    if seconds is not None and not 1 <= seconds <= 30:
        why = "the timeout value must be between 1 and 30 seconds"
        errs.append(invalid(path.child("timeoutSeconds"), seconds, why))
    for name in _SELECTORS:
        errs += labels.validate_object(hook.get(name), path.child(name), allow_invalid_values=rules.lenient_selectors)
    if hook.get("reinvocationPolicy") is not None:
        one_of(hook["reinvocationPolicy"], REINVOCATION_POLICIES, path, "reinvocationPolicy", errs)
    _validate_client(hook["clientConfig"], path.child("clientConfig"), errs)
    if not rules.skip_conditions:
        where = path.child("matchConditions")
        validate_match_conditions(hook.get("matchConditions"), where, errs, stored=set(rules.stored))


def _validate_client(client: Object, path: Path, errs: list[FieldError]) -> None:
    url, service = client.get("url"), client.get("service")
    if (url is None) == (service is None):
        errs.append(required(path, "exactly one of url or service is required"))
    elif url is not None:
        validate_url(path.child("url"), url, errs)
    elif service is not None:
        validate_service(path.child("service"), service, errs)


def _validate_reviews(versions: list[str], path: Path, rules: _Rules, errs: list[FieldError]) -> None:
    if not versions:
        errs.append(required(path, f"must specify one of {', '.join(_REVIEWS)}"))
        return
    twice = repeats(versions)
    for position, version in enumerate(versions):
        if position in twice:
            errs.append(invalid(path.index(position), version, "duplicate version"))
        else:
            errs += (invalid(path.index(position), version, m) for m in names.check_dns1035_label(version))
    if rules.known_reviews and not _is_reviewable(versions):
        errs.append(invalid(path, versions, f"must include at least one of {', '.join(_REVIEWS)}"))


def _webhook_columns() -> tuple[Column, ...]:
    said = "Webhooks indicates the number of webhooks registered in this configuration"
    return (NAME, Column("Webhooks", "integer", lambda o: len(o.get("webhooks") or ()), description=said), AGE)


class ValidatingWebhookStrategy(RegistrationStrategy):
    """Validating webhook configurations."""

    generation_rules = GenerationRules(counted=True, counts_empty=True)
    columns = _webhook_columns()
    lenient: ClassVar[bool] = False

    def default(self, obj: Object) -> None:
        default_webhooks(obj, mutating=False)

    def errors(self, obj: Object, old: Object | None) -> list[FieldError]:
        return validate_webhooks(obj, old, lenient=self.lenient)

    def warnings_on_create(self, ctx: Context, obj: Object) -> list[str]:
        return super().warnings_on_create(ctx, obj) + self._warn_about_rules(obj)

    def warnings_on_update(self, ctx: Context, obj: Object, old: Object) -> list[str]:
        return super().warnings_on_update(ctx, obj, old) + self._warn_about_rules(obj)

    def _warn_about_rules(self, obj: Object) -> list[str]:
        return list(_unsent(obj)) if "ExcludeAdmissionWebhookVirtualResources" in self.gates else []


class MutatingWebhookStrategy(ValidatingWebhookStrategy):
    """Mutating webhook configurations."""

    def default(self, obj: Object) -> None:
        default_webhooks(obj, mutating=True)


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
