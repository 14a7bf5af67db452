"""Access checks inside policies: `authorizer.group('apps').resource('deployments').check('create').allowed()`.

The values build an `AccessCheck` and hand it to the decider that the caller put into the `Authorizer`. A decider that
must wait for its answer raises an exception of its own, which nothing here absorbs; its caller awaits the answer and
evaluates again with it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from pilothouse.cel.declarations import Function, Library, Overload
from pilothouse.cel.types import struct
from pilothouse.cel.values import fail
from pilothouse.machinery import names

_PREFIX = "kubernetes.authorization."
AUTHORIZER_TYPE = struct(_PREFIX + "Authorizer")
PATH_CHECK_TYPE = struct(_PREFIX + "PathCheck")
GROUP_CHECK_TYPE = struct(_PREFIX + "GroupCheck")
RESOURCE_CHECK_TYPE = struct(_PREFIX + "ResourceCheck")
DECISION_TYPE = struct(_PREFIX + "Decision")


@dataclass(frozen=True, slots=True)
class AccessCheck:
    """What is asked: who may use which verb on which resource or path. `user` None means the requester."""

    user: tuple[str, str] | None = None
    path: str = ""
    group: str = ""
    resource: str = ""
    subresource: str = ""
    namespace: str = ""
    name: str = ""
    field_selector: str = ""
    label_selector: str = ""
    verb: str = ""


@dataclass(frozen=True, slots=True)
class Decision:
    """The answer: allowed or not, why, and what went wrong while deciding."""

    allowed: bool
    reason: str = ""
    error: str | None = None

    @property
    def cel_type(self) -> Any:
        return DECISION_TYPE


Decider = Callable[[AccessCheck], Decision]


@dataclass(frozen=True, slots=True)
class _Builder:
    decide: Decider
    check: AccessCheck


class Authorizer(_Builder):
    """The variable `authorizer`; `check.user` tells for which service account it speaks, if not for the requester."""

    __slots__ = ()
    cel_type = AUTHORIZER_TYPE


class PathCheck(_Builder):
    """A path to be checked."""

    __slots__ = ()
    cel_type = PATH_CHECK_TYPE


class GroupCheck(_Builder):
    """An API group whose resource is still to be named."""

    __slots__ = ()
    cel_type = GROUP_CHECK_TYPE


class ResourceCheck(_Builder):
    """A resource to be checked; also `authorizer.requestResource`."""

    __slots__ = ()
    cel_type = RESOURCE_CHECK_TYPE


def _path(authorizer: Authorizer, path: str) -> PathCheck:
    if not path.strip():
        fail("path must not be empty")
    return PathCheck(authorizer.decide, replace(authorizer.check, path=path))


def _group(authorizer: Authorizer, group: str) -> GroupCheck:
    return GroupCheck(authorizer.decide, replace(authorizer.check, group=group))


def _service_account(authorizer: Authorizer, namespace: str, name: str) -> Authorizer:
    if names.check_dns1123_subdomain(name):
        fail("Invalid service account name")
    if names.check_dns1123_label(namespace):
        fail("Invalid service account namespace")
    return Authorizer(authorizer.decide, AccessCheck(user=(namespace, name)))


def _resource(group: GroupCheck, resource: str) -> ResourceCheck:
    if not resource.strip():
        fail("resource must not be empty")
    return ResourceCheck(group.decide, replace(group.check, resource=resource))


def _setting(attribute: str) -> Callable[[ResourceCheck, str], ResourceCheck]:
    def apply(check: ResourceCheck, value: str) -> ResourceCheck:
        changed: dict[str, Any] = {attribute: value}
        return ResourceCheck(check.decide, replace(check.check, **changed))

    return apply


def _decide(check: _Builder, verb: str) -> Decision:
    return check.decide(replace(check.check, verb=verb))


_R = RESOURCE_CHECK_TYPE.name
_D = DECISION_TYPE.name


def _builder(name: str, id: str, attribute: str) -> Function:
    return Function(name, [Overload(id, f"{_R}.(string) -> {_R}", _setting(attribute))])


AUTHORIZING_LIBRARY = Library(
    (
        Function("path", [Overload("authorizer_path", f"{AUTHORIZER_TYPE}.(string) -> {PATH_CHECK_TYPE}", _path)]),
        Function("group", [Overload("authorizer_group", f"{AUTHORIZER_TYPE}.(string) -> {GROUP_CHECK_TYPE}", _group)]),
        Function(
            "serviceAccount",
            [
                Overload(
                    "authorizer_serviceaccount",
                    f"{AUTHORIZER_TYPE}.(string, string) -> {AUTHORIZER_TYPE}",
                    _service_account,
                )
            ],
        ),
        Function("resource", [Overload("groupcheck_resource", f"{GROUP_CHECK_TYPE}.(string) -> {_R}", _resource)]),
        _builder("subresource", "resourcecheck_subresource", "subresource"),
        _builder("namespace", "resourcecheck_namespace", "namespace"),
        _builder("name", "resourcecheck_name", "name"),
        Function(
            "check",
            [
                Overload("pathcheck_check", f"{PATH_CHECK_TYPE}.(string) -> {_D}", _decide),
                Overload("resourcecheck_check", f"{_R}.(string) -> {_D}", _decide),
            ],
        ),
        Function("errored", [Overload("decision_errored", f"{_D}.() -> bool", lambda item: item.error is not None)]),
        Function("error", [Overload("decision_error", f"{_D}.() -> string", lambda item: item.error or "")]),
        Function("allowed", [Overload("decision_allowed", f"{_D}.() -> bool", lambda item: item.allowed)]),
        Function("reason", [Overload("decision_reason", f"{_D}.() -> string", lambda item: item.reason)]),
    ),
    types=(AUTHORIZER_TYPE, PATH_CHECK_TYPE, GROUP_CHECK_TYPE, RESOURCE_CHECK_TYPE, DECISION_TYPE),
)
SELECTORS_LIBRARY = Library(
    (
        _builder("fieldSelector", "authorizer_fieldselector", "field_selector"),
        _builder("labelSelector", "authorizer_labelselector", "label_selector"),
    )
)
