"""The kinds that ask who may do what: they store nothing, a create asks a question and answers it.

Pure functions of the posted object; the caller has decoded it, runs admission and encodes the answer. Validation
errors are raised as StatusError. The kind is missing in their text because kube-apiserver loses it while decoding.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any, Final

from pilothouse.authz.attributes import Attributes
from pilothouse.authz.authorizer import AuthorizationFailed, Authorizer, Decision, RuleReader, RuleResolver
from pilothouse.machinery import errors, fields, labels
from pilothouse.machinery.field_errors import FieldError, Path, forbidden, invalid, listed, required
from pilothouse.machinery.gvk import GroupKind
from pilothouse.machinery.names import check_label_key, check_label_value
from pilothouse.machinery.objects import Object
from pilothouse.machinery.user import User
from pilothouse.machinery.workers import attempted, weighed

_KIND: Final = GroupKind("authorization.k8s.io", "")
_ONE_OF: Final = "exactly one of nonResourceAttributes or resourceAttributes must be specified"
_LABEL_OPERATORS: Final = {
    "In": labels.IN,
    "NotIn": labels.NOT_IN,
    "Exists": labels.EXISTS,
    "DoesNotExist": labels.DOES_NOT_EXIST,
}

Spec = Mapping[str, Any]


def validate_subject_access_review(review: Object) -> None:
    """Raise StatusError 422 for a wrong SubjectAccessReview."""
    _raise(_spec_errors(review.get("spec") or {}, with_subject=True), _metadata_errors(review, ()))


def validate_self_subject_access_review(review: Object) -> None:
    """Raise StatusError 422 for a wrong SelfSubjectAccessReview."""
    _raise(_spec_errors(review.get("spec") or {}, with_subject=False), _metadata_errors(review, ()))


def validate_local_subject_access_review(review: Object, namespace: str) -> None:
    """Raise StatusError for a wrong LocalSubjectAccessReview posted to the namespace."""
    spec = review.get("spec") or {}
    errs: list[FieldError] = []
    own = (review.get("metadata") or {}).get("namespace", "")
    resource, path = spec.get("resourceAttributes"), spec.get("nonResourceAttributes")
    if resource is not None and resource.get("namespace", "") != own:
        where = Path("spec.resourceAttributes.namespace")
        errs.append(invalid(where, resource.get("namespace", ""), "must match metadata.namespace"))
    if path is not None:
        where = Path("spec.nonResourceAttributes")
        errs.append(invalid(where, _go_names(path), "disallowed on this kind of request"))
    _raise(_spec_errors(spec, with_subject=True), _metadata_errors(review, ("namespace",)), errs)
    if namespace != own:
        raise errors.bad_request(f"spec.resourceAttributes.namespace must match namespace: {namespace}")


async def review_access(review: Object, authorizer: Authorizer, user: User | None = None, *, weight: int = 0) -> Object:
    """Answer a validated access review: about the user for the Self kind, else about the subject in its spec.

    ``weight`` is how many bytes it came in: a long one is read aside.
    """
    spec = review["spec"]
    attributes = await weighed(weight, _attributes, spec, user)
    failure = ""
    try:
        decision, reason = await authorizer.authorize(attributes)
    except AuthorizationFailed as error:
        decision, reason, failure = error.decision, "", str(error)
    status: Object = {"allowed": decision is Decision.ALLOW}
    if decision is Decision.DENY:
        status["denied"] = True
    if reason:
        status["reason"] = reason
    evaluation = _evaluation_error(failure, attributes)
    if evaluation:
        status["evaluationError"] = evaluation
    return {**review, "status": status}


async def review_rules(review: Object, resolver: RuleResolver, user: User) -> Object:
    """Answer a SelfSubjectRulesReview. Raises StatusError 400 without a namespace."""
    namespace = (review.get("spec") or {}).get("namespace", "")
    if not namespace:
        raise errors.bad_request("no namespace on request")
    status = await attempted(0, _rules_status, resolver.rules_for(user, namespace))
    return {**_head(review), "metadata": {}, "spec": {}, "status": status}


def count_rules(answer: Object) -> int:
    """How many rules a SelfSubjectRulesReview was answered with."""
    return sum(len(answer["status"][rules]) for rules in ("resourceRules", "nonResourceRules"))


def _rules_status(read: RuleReader) -> Object:
    rules = read()
    status: Object = {
        "resourceRules": [
            _present(verbs=r.verbs, apiGroups=r.groups, resources=r.resources, resourceNames=r.names)
            for r in rules.resource_rules
        ],
        "nonResourceRules": [_present(verbs=r.verbs, nonResourceURLs=r.paths) for r in rules.path_rules],
        "incomplete": rules.incomplete,
    }
    if rules.error:
        status["evaluationError"] = rules.error
    return status


def _raise(*found: Iterable[FieldError]) -> None:
    """Refuse with what was found, as much of it as anybody reads: a requirement of two bytes may be three errors."""
    if errs := listed(chain.from_iterable(found), repeated=True):
        raise errors.invalid(_KIND, "", errs)


def _spec_errors(spec: Spec, *, with_subject: bool) -> Iterator[FieldError]:
    path = Path("spec")
    resource, url = spec.get("resourceAttributes"), spec.get("nonResourceAttributes")
    if (resource is None) == (url is None):
        yield invalid(path, None if url is None else _go_names(url), _ONE_OF)
    if with_subject and not spec.get("user") and not spec.get("groups"):
        yield invalid(path.child("user"), "", "at least one of user or group must be specified")
    if resource is not None:
        where = Path("spec.resourceAttributes")
        for name, check in (("fieldSelector", _field_errors), ("labelSelector", _label_errors)):
            if resource.get(name) is not None:
                yield from _selector_errors(resource[name], where.child(name))
                for index, requirement in enumerate(resource[name].get("requirements") or ()):
                    yield from check(requirement, where.child(name, "requirements").index(index))


def _selector_errors(selector: Spec, path: Path) -> list[FieldError]:
    raw, requirements = selector.get("rawSelector"), selector.get("requirements")
    if raw and requirements:
        return [invalid(path.child("rawSelector"), raw, "may not specified at the same time as requirements")]
    if not raw and not requirements:
        detail = f"when {path} is specified, requirements or rawSelector is required"
        return [required(path.child("requirements"), detail)]
    return []


def _field_errors(requirement: Spec, path: Path) -> list[FieldError]:
    errs = [] if requirement.get("key") else [required(path.child("key"), "must be specified")]
    return errs + _operator_errors(requirement, path)


def _label_errors(requirement: Spec, path: Path) -> Iterator[FieldError]:
    key = requirement.get("key") or ""
    yield from _operator_errors(requirement, path)
    for message in check_label_key(key):
        yield invalid(path.child("key"), key, message)
    for index, value in enumerate(requirement.get("values") or ()):
        where = path.child("values").index(index)
        for message in check_label_value(value):
            yield invalid(where, value, message)


def _operator_errors(requirement: Spec, path: Path) -> list[FieldError]:
    operator, values = requirement.get("operator"), requirement.get("values")
    if operator in ("In", "NotIn") and not values:
        return [required(path.child("values"), "must be specified when `operator` is 'In' or 'NotIn'")]
    if operator in ("Exists", "DoesNotExist") and values:
        detail = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"
        return [forbidden(path.child("values"), detail)]
    return []


def _metadata_errors(review: Object, allowed: tuple[str, ...]) -> list[FieldError]:
    metadata = review.get("metadata") or {}
    if any(value for key, value in metadata.items() if key not in (*allowed, "managedFields")):
        detail = "must be empty except for namespace" if allowed else "must be empty"
        # A namespace that was taken from the path is shown in its usual place.
        leading = {key: metadata[key] for key in ("name", "generateName", "namespace") if key in metadata}
        return [invalid(Path("metadata"), leading | metadata, detail)]
    return []


def _subject(spec: Spec) -> User:
    extra = {key: tuple(values or ()) for key, values in (spec.get("extra") or {}).items()}
    return User(spec.get("user", ""), spec.get("uid", ""), tuple(spec.get("groups") or ()), extra)


def _attributes(spec: Spec, user: User | None) -> Attributes:
    user = user or _subject(spec)
    resource = spec.get("resourceAttributes")
    if resource is None:
        url = spec["nonResourceAttributes"]
        return Attributes(user, url.get("verb", ""), resource_request=False, path=url.get("path", ""))
    attributes = Attributes(
        user,
        resource.get("verb", ""),
        namespace=resource.get("namespace", ""),
        group=resource.get("group", ""),
        version=resource.get("version") or "*",
        resource=resource.get("resource", ""),
        subresource=resource.get("subresource", ""),
        name=resource.get("name", ""),
    )
    _read_field_selector(resource.get("fieldSelector") or {}, attributes)
    _read_label_selector(resource.get("labelSelector") or {}, attributes)
    return attributes


def _read_field_selector(selector: Spec, attributes: Attributes) -> None:
    if selector.get("rawSelector"):
        try:
            attributes.field_selector = fields.parse(selector["rawSelector"]).requirements
        except fields.SelectorError as error:
            attributes.field_selector_error = str(error)
    understood: list[fields.Requirement] = []
    for requirement in selector.get("requirements") or ():
        operator = {"In": fields.EQUALS, "NotIn": fields.NOT_EQUALS}.get(requirement.get("operator", ""))
        values: list[str] = requirement.get("values") or []
        if operator is None or len(values) != 1:
            attributes.field_selector_error = "a requirement is not supported"
        else:
            understood.append(fields.Requirement(requirement.get("key", ""), operator, values[0]))
    attributes.field_selector = tuple(understood) or attributes.field_selector


def _read_label_selector(selector: Spec, attributes: Attributes) -> None:
    if selector.get("rawSelector"):
        try:
            attributes.label_selector = labels.parse(selector["rawSelector"]).requirements
        except labels.SelectorError as error:
            attributes.label_selector_error = str(error)
    understood: list[labels.Requirement] = []
    for requirement in selector.get("requirements") or ():
        operator = _LABEL_OPERATORS.get(requirement.get("operator", ""))
        if operator is None:
            attributes.label_selector_error = "a requirement is not supported"
            continue
        parsed, errs = labels.new_requirement(requirement.get("key", ""), operator, requirement.get("values") or ())
        if errs:
            attributes.label_selector_error = str(errs[0])
        else:
            understood.append(parsed)
    attributes.label_selector = tuple(understood) or attributes.label_selector


def _evaluation_error(failure: str, attributes: Attributes) -> str:
    found = [failure] if failure else []
    for word, error, requirements in (
        ("fieldSelector", attributes.field_selector_error, attributes.field_selector),
        ("labelSelector", attributes.label_selector_error, attributes.label_selector),
    ):
        if error:
            ignored = "partially ignored" if requirements else "ignored"
            found.append(f"spec.resourceAttributes.{word} {ignored} due to parse error")
    return "; ".join(found)


def _head(review: Object) -> Object:
    return {key: value for key, value in review.items() if key in ("kind", "apiVersion")}


def _go_names(url: Spec) -> Object:
    """Attributes of a path as kube-apiserver's internal type shows them in messages."""
    return {"Path": url.get("path", ""), "Verb": url.get("verb", "")}


def _present(**lists: Sequence[str]) -> Object:
    return {key: values if isinstance(values, list) else list(values) for key, values in lists.items() if values}
