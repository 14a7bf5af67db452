"""Webhook configurations, admission policies and their bindings.

Whether the author may read the parameters that a policy or binding refers to is decided by authorization, not here.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import ClassVar, Final

from pilothouse.apis.admissionregistration.expressions import Expression, Variables, compile_expressions
from pilothouse.apis.admissionregistration.registration import RegistrationStrategy
from pilothouse.apis.admissionregistration.rules import (
    FAILURE_POLICIES,
    REINVOCATION_POLICIES,
    validate_match_conditions,
    validate_match_resources,
    validate_mutating_operations,
)
from pilothouse.apis.columns import AGE, NAME
from pilothouse.apis.conditions import validate_conditions
from pilothouse.apis.status import ResettingStatusStrategy, clear_status
from pilothouse.apis.strategy import Column, Context, Strategy, keep
from pilothouse.apis.strategy_rules import MetadataRules, UpdateRules
from pilothouse.apis.validation import one_of, one_of_required
from pilothouse.machinery import names
from pilothouse.machinery.field_errors import FieldError, Path, duplicate, invalid, required
from pilothouse.machinery.jsonpath_faults import fault_of
from pilothouse.machinery.objects import Object

SPEC: Final = Path("spec")
_ANNOTATIONS_LIMIT: Final = 20
_ANNOTATION_LENGTH: Final = 5 * 1024
_REASONS: Final = ("Forbidden", "Invalid", "RequestEntityTooLarge")
_PATCH_TYPES: Final = ("ApplyConfiguration", "JSONPatch")
_IDENTIFIER: Final = re.compile("[_a-zA-Z][_a-zA-Z0-9]*")
_RESERVED: Final = frozenset({
    "true", "false", "null", "in", "as", "break", "const", "continue", "else", "for", "function", "if", "import", "let",
    "loop", "package", "namespace", "return", "var", "void", "while",
})  # fmt: skip
_AT_LEAST_ONE: Final = "validations or auditAnnotations must contain at least one item"


def default_match(match: Object | None) -> None:
    """Equivalent resources, all namespaces and objects, both scopes."""
    if match is None:
        return
    match.setdefault("matchPolicy", "Equivalent")
    match.setdefault("namespaceSelector", {})
    match.setdefault("objectSelector", {})
    for name in ("resourceRules", "excludeResourceRules"):
        for rule in match.get(name) or ():
            rule.setdefault("scope", "*")


def default_policy(obj: Object) -> None:
    """Policies fail closed."""
    obj["spec"].setdefault("failurePolicy", "Fail")
    default_match(obj["spec"].get("matchConstraints"))


class PolicyCheck:
    """One pass over a policy's spec; variables become known to the expressions after them."""

    def __init__(self, obj: Object, old: Object | None, *, mutating: bool) -> None:
        self.errs: list[FieldError] = []
        self.mutating = mutating
        self.spec: Object = obj["spec"]
        self.name: str = obj["metadata"].get("name", "")
        self.old_spec: Object = old["spec"] if old is not None else {}
        self.is_update = old is not None
        self.has_params = self.spec.get("paramKind") is not None
        self.variables = Variables(has_params=self.has_params)

    def check_head(self) -> None:
        """What both kinds begin with."""
        spec, errs = self.spec, self.errs
        if spec.get("failurePolicy") is None:
            errs.append(required(SPEC.child("failurePolicy")))
        else:
            one_of(spec["failurePolicy"], FAILURE_POLICIES, SPEC, "failurePolicy", errs)
        if self.has_params:
            _validate_param_kind(spec["paramKind"], SPEC.child("paramKind"), errs)
        match, where = spec.get("matchConstraints"), SPEC.child("matchConstraints")
        if match is None:
            errs.append(required(where))
        else:
            validate_match_resources(match, where, errs)
            if not match.get("resourceRules"):
                errs.append(required(where.child("resourceRules")))
            if self.mutating:
                validate_mutating_operations(match, where, errs)
        if not self._keeps("paramKind", "matchConditions"):
            conditions = spec.get("matchConditions")
            stored = {one.get("expression", "") for one in self.old_spec.get("matchConditions") or ()}
            path = SPEC.child("matchConditions")
            validate_match_conditions(conditions, path, errs, stored=stored, has_params=self.has_params)
        for position, variable in enumerate(spec.get("variables") or ()):
            self._check_variable(variable, SPEC.child("variables").index(position))

    def _keeps(self, *fields: str) -> bool:
        return self.is_update and all(self.spec.get(name) == self.old_spec.get(name) for name in fields)

    def _check_variable(self, variable: Object, path: Path) -> None:
        name, text = variable.get("name", ""), variable.get("expression", "")
        if not name.strip():
            self.errs.append(required(path.child("name"), "name is not specified"))
        elif not _IDENTIFIER.fullmatch(name) or name in _RESERVED:
            self.errs.append(invalid(path.child("name"), name, "must be a valid CEL identifier"))
        if not text.strip():
            self.errs.append(required(path.child("expression"), "expression is not specified"))
        else:
            stored = {one.get("expression", "") for one in self.old_spec.get("validations") or ()}
            self._compile(text, "variable", path.child("expression"), text in stored)
            self.variables.declare(name, text)

    def _compile(self, text: str, purpose: str, path: Path, stored: bool, *, authorizer: bool = True) -> None:
        composed = self.mutating or bool(self.spec.get("variables"))
        expression = Expression(text, purpose, path, self.has_params, authorizer, self.variables, composed, stored)
        self.errs += compile_expressions([expression])

    def check_validations(self) -> None:
        """The rules of a validating policy, and what it writes into the audit log."""
        validations, annotations = self.spec.get("validations") or (), self.spec.get("auditAnnotations")
        if not validations and not annotations:
            self.errs += (required(SPEC.child(name), _AT_LEAST_ONE) for name in ("validations", "auditAnnotations"))
            return
        for position, validation in enumerate(validations):
            self._check_validation(validation, SPEC.child("validations").index(position))
        path = SPEC.child("auditAnnotations")
        if annotations and len(annotations) > _ANNOTATIONS_LIMIT:
            why = f"must not have more than {_ANNOTATIONS_LIMIT} auditAnnotations"
            shown = [{"Key": a.get("key", ""), "ValueExpression": a.get("valueExpression", "")} for a in annotations]
            self.errs.append(invalid(path, shown, why))
        seen: set[str] = set()
        for position, annotation in enumerate(annotations or ()):
            self._check_annotation(annotation, path.index(position))
            key = annotation.get("key", "")
            if key in seen:
                self.errs.append(duplicate(path.index(position).child("key"), key))
            seen.add(key)

    def _check_validation(self, validation: Object, path: Path) -> None:
        text, message = validation.get("expression", ""), validation.get("message", "")
        before = self.old_spec.get("validations") or ()
        if not text.strip():
            self.errs.append(required(path.child("expression"), "expression is not specified"))
        else:
            stored = any(one.get("expression") == text for one in before)
            self._compile(text, "validation", path.child("expression"), stored)
        reply = validation.get("messageExpression", "")
        if reply and not reply.strip():
            self.errs.append(invalid(path.child("messageExpression"), reply, "must be non-empty if specified"))
        elif reply:
            stored = any(one.get("messageExpression") == reply for one in before)
            self._compile(reply, "message", path.child("messageExpression"), stored, authorizer=False)
        if message and not message.strip():
            self.errs.append(invalid(path.child("message"), message, "must be non-empty if specified"))
        elif "\n" in message.strip() or "\r" in message.strip():
            self.errs.append(invalid(path.child("message"), message, "must not contain line breaks"))
        if validation.get("reason") is not None:
            one_of(validation["reason"], _REASONS, path, "reason", self.errs)

    def _check_annotation(self, annotation: Object, path: Path) -> None:
        key, text = annotation.get("key", ""), annotation.get("valueExpression", "").strip()
        if self.name:
            full = f"{self.name}/{key}"
            self.errs += (invalid(path.child("key"), full, message) for message in names.check_label_key(full))
        else:
            self.errs.append(invalid(path.child("key"), key, "requires metadata.name be non-empty"))
        where = path.child("valueExpression")
        if not text:
            self.errs.append(required(where, "valueExpression is not specified"))
        elif len(text.encode()) > _ANNOTATION_LENGTH:
            self.errs.append(required(where, f"must not exceed {_ANNOTATION_LENGTH} bytes in length"))
        else:
            before = self.old_spec.get("auditAnnotations") or ()
            stored = any(one.get("valueExpression") == annotation["valueExpression"] for one in before)
            before_compiling = len(self.errs)
            self._compile(text, "auditAnnotation", where, stored)
            for error in self.errs[before_compiling:]:
                error.value = annotation["valueExpression"]

    def check_mutations(self) -> None:
        """The patches of a mutating policy."""
        mutations = self.spec.get("mutations") or ()
        if not mutations:
            self.errs.append(required(SPEC.child("mutations"), "mutations must contain at least one item"))
        for position, mutation in enumerate(mutations):
            self._check_mutation(mutation, SPEC.child("mutations").index(position))
        policy = self.spec.get("reinvocationPolicy", "")
        one_of_required(policy, REINVOCATION_POLICIES, SPEC, "reinvocationPolicy", self.errs)

    def _check_mutation(self, mutation: Object, path: Path) -> None:
        patch = mutation.get("patchType", "")
        one_of_required(patch, _PATCH_TYPES, path, "patchType", self.errs)
        if patch not in _PATCH_TYPES:
            return
        wanted, other = (
            ("jsonPatch", "applyConfiguration") if patch == "JSONPatch" else ("applyConfiguration", "jsonPatch")
        )
        chosen = mutation.get(wanted)
        if chosen is None:
            self.errs.append(required(path.child(wanted), f"must be specified when patchType is {patch}"))
        else:
            text = chosen.get("expression", "").strip()
            where = path.child(wanted, "expression")
            if not text:
                self.errs.append(required(where))
            else:
                before = [
                    (one.get("applyConfiguration") or {}).get("expression")
                    for one in self.old_spec.get("mutations") or ()
                ]
                self._compile(text, wanted, where, chosen["expression"] in before)
        if mutation.get(other) is not None:
            why = f"must not be specified when patchType is {patch}"
            self.errs.append(invalid(path.child(other), f"{{{other}}}", why))


def _validate_param_kind(kind: Object, path: Path, errs: list[FieldError]) -> None:
    version, name = kind.get("apiVersion", ""), kind.get("kind", "")
    where = path.child("apiVersion")
    if not version:
        errs.append(required(where))
    elif version.count("/") > 1:
        errs.append(invalid(where, version, f"unexpected GroupVersion string: {version}"))
    else:
        group, slash, rest = version.partition("/")
        group, short = (group, rest) if slash else ("", version)
        if messages := names.check_dns1123_subdomain(group) if group else []:
            errs.append(invalid(where, group, ",".join(messages)))
        if not short:
            errs.append(invalid(where, version, "version must be specified"))
        elif messages := names.check_dns1035_label(short):
            errs.append(invalid(where, short, ",".join(messages)))
    if not name:
        errs.append(required(path.child("kind")))
    elif messages := names.check_dns1035_label(name.lower()):
        why = "may have mixed case, but should otherwise match: " + ",".join(messages)
        errs.append(invalid(path.child("kind"), name, why))


def validate_validating_policy(obj: Object, old: Object | None = None) -> list[FieldError]:
    """Errors of a validating policy."""
    check = PolicyCheck(obj, old, mutating=False)
    check.check_head()
    check.check_validations()
    return check.errs


def validate_mutating_policy(obj: Object, old: Object | None = None) -> list[FieldError]:
    """Errors of a mutating policy."""
    check = PolicyCheck(obj, old, mutating=True)
    check.check_head()
    check.check_mutations()
    return check.errs


def validate_policy_status(obj: Object) -> list[FieldError]:
    """Errors of what type checking reports about a policy."""
    errs: list[FieldError] = []
    status = obj.get("status") or {}
    for position, warning in enumerate((status.get("typeChecking") or {}).get("expressionWarnings") or ()):
        path = Path("status", "typeChecking", "expressionWarnings").index(position)
        if not warning.get("warning"):
            errs.append(required(path.child("warning")))
        named = warning.get("fieldRef", "").strip()
        if not named:
            errs.append(required(path.child("fieldRef")))
        elif fault := fault_of(f"{{{named}}}"):
            errs.append(invalid(path.child("fieldRef"), named, f"invalid JSONPath: {fault}"))
    validate_conditions(status.get("conditions"), Path("status", "conditions"), errs)
    return errs


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

    metadata_rules = MetadataRules(standard_finalizers=False)
    update_rules = UpdateRules(allow_unconditional=False)

    def default(self, obj: Object) -> None:
        default_policy(obj)

    def validate_update(self, ctx: Context, obj: Object, old: Object) -> list[FieldError]:
        return validate_policy_status(obj)


class ValidatingPolicyStrategy(RegistrationStrategy):
    """Validating admission policies."""

    subresources: ClassVar[Mapping[str, type[Strategy]]] = {"status": PolicyStatusStrategy}
    columns = _policy_columns(
        "Validations",
        "validations",
        "Validations indicates the number of validation rules defined in this configuration",
    )

    def default(self, obj: Object) -> None:
        default_policy(obj)

    def prepare_for_create(self, ctx: Context, obj: Object) -> None:
        clear_status(obj, "admissionregistration.v1.ValidatingAdmissionPolicy")

    def prepare_for_update(self, ctx: Context, obj: Object, old: Object) -> None:
        keep(obj, old, "status")

    def errors(self, obj: Object, old: Object | None) -> list[FieldError]:
        return validate_validating_policy(obj, old)


class MutatingPolicyStrategy(RegistrationStrategy):
    """Mutating admission policies."""

    columns = _policy_columns(
        "Mutations", "mutations", "Mutation indicates the number of mutations rules defined in this configuration"
    )

    def default(self, obj: Object) -> None:
        default_policy(obj)

    def errors(self, obj: Object, old: Object | None) -> list[FieldError]:
        return validate_mutating_policy(obj, old)
