"""Acting as somebody else: what the Impersonate-* headers ask for, and who may ask for it.

There are five ways, tried in this order, each with verbs of its own:

    associated-node   a service account as the node its pod runs on           the constrained ways need two rights:
    arbitrary-node    any node                                                `impersonate-on:<way>:<verb>` for what
    serviceaccount    any service account                                     the request does, and `impersonate:<way>`
    user-info         everybody else, with groups, uid and extra              for whom it is done as
    legacy            anybody, by the verb `impersonate` alone

The first way that allows it decides; if none does, the answer is the first refusal. The way that last worked for a
requestor is tried first, so its refusals are what such a requestor sees.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Final, NamedTuple

from pilothouse.authn.request_header import unescape_key
from pilothouse.authz.attributes import Attributes
from pilothouse.authz.authorizer import AuthorizationFailed, Authorizer, Decision, forbidden
from pilothouse.authz.metrics import ImpersonationMetrics
from pilothouse.machinery import errors
from pilothouse.machinery.field_errors import Path, aggregate
from pilothouse.machinery.go_quote import quote
from pilothouse.machinery.names import check_dns1123_subdomain, check_domain_prefixed_path
from pilothouse.machinery.user import (
    ALL_AUTHENTICATED,
    ALL_UNAUTHENTICATED,
    ANONYMOUS,
    NODE_NAME,
    NODE_PREFIX,
    NODES_GROUP,
    SYSTEM_MASTERS,
    User,
    service_account_groups,
    split_service_account,
)
from pilothouse.net.messages import Request

_GROUP: Final = "authentication.k8s.io"
_USER_HEADER: Final = b"impersonate-user"
_UID_HEADER: Final = b"impersonate-uid"
_GROUP_HEADER: Final = b"impersonate-group"
_EXTRA_PREFIX: Final = b"impersonate-extra-"
# From this many groups or extra values on, the right to all of them is asked for first.
_MANY: Final = 4
_MAX_REMEMBERED: Final = 10_000
_LEGACY: Final = ""
WAYS: Final = ("associated-node", "arbitrary-node", "serviceaccount", "user-info", _LEGACY)


class Impersonated(NamedTuple):
    """The identity to act as, and the verb that allowed it (empty for the legacy way), for audit."""

    user: User
    constraint: str


def read_headers(request: Request) -> User | None:
    """The identity that the headers ask for, None without them; takes them off the request.

    Raises StatusError 400 when there are groups, a uid or extra values but no user.
    """
    headers = request.headers
    extra_names = [name for name in headers if name.startswith(_EXTRA_PREFIX)]
    if not extra_names and _USER_HEADER not in headers and _UID_HEADER not in headers and _GROUP_HEADER not in headers:
        return None
    extra: dict[str, tuple[str, ...]] = {}
    for name in extra_names:
        key = unescape_key(_text(name[len(_EXTRA_PREFIX) :]))
        extra[key] = extra.get(key, ()) + tuple(_text(value) for value in request.header_values(name))
    groups = tuple(_text(value) for value in request.header_values(_GROUP_HEADER))
    wanted = User(_text(headers.get(_USER_HEADER, b"")), _text(headers.get(_UID_HEADER, b"")), groups, extra)
    if not wanted.name:
        if wanted.uid or wanted.groups or extra_names:
            raise errors.bad_request(f"requested {_show(wanted)} without impersonating a user name")
        return None
    for name in (_USER_HEADER, _UID_HEADER, _GROUP_HEADER, *extra_names):
        headers.pop(name, None)
    return wanted


class Impersonation:
    """Decides who may act as whom."""

    def __init__(
        self, authorizer: Authorizer, metrics: ImpersonationMetrics | None = None, *, constrained: bool = True
    ) -> None:
        self._ways = WAYS if constrained else (_LEGACY,)
        self._authorizer = authorizer
        self._metrics = metrics or ImpersonationMetrics()
        self._last_way: dict[str, str] = {}

    async def impersonate(self, wanted: User, attributes: Attributes) -> Impersonated:
        """The identity to go on with. ``attributes`` are those of the request as sent. Raises StatusError 403."""
        started = time.perf_counter()
        try:
            way, found = await self._find_way(wanted, attributes)
        except errors.StatusError:
            self._metrics.attempted("", "denied", time.perf_counter() - started)
            raise
        self._metrics.attempted(way or "legacy", "allowed", time.perf_counter() - started)
        return found

    async def _find_way(self, wanted: User, attributes: Attributes) -> tuple[str, Impersonated]:
        requestor = attributes.user.name
        last = self._last_way.get(requestor)
        ways = self._ways if last is None else (last, *(way for way in self._ways if way != last))
        refusal: errors.StatusError | None = None
        for way in ways:
            if not _applies(way, wanted, attributes.user):
                continue
            try:
                found = await self._try(way, wanted, attributes)
            except errors.StatusError as error:
                refusal = refusal or error
                continue
            self._remember(requestor, way)
            return way, found
        raise refusal or errors.generic("all impersonation modes failed")

    def _remember(self, requestor: str, way: str) -> None:
        self._last_way.pop(requestor, None)
        if len(self._last_way) >= _MAX_REMEMBERED:
            del self._last_way[next(iter(self._last_way))]
        self._last_way[requestor] = way

    async def _try(self, way: str, wanted: User, attributes: Attributes) -> Impersonated:
        requestor = attributes.user
        if way == "associated-node":
            requestor = _without_details(requestor)
        if way != _LEGACY:
            action = attributes.copy()
            action.user = requestor
            action.verb = f"impersonate-on:{way}:{attributes.verb}"
            await self._require(action)
        check = _Check(way, requestor)
        user = check.resulting(wanted)
        await self._require(check.username(wanted.name))
        if wanted.uid:
            await self._require(check.question(_GROUP, "uids", wanted.uid))
        if wanted.groups:
            await self._require_groups(check, wanted.groups)
        if wanted.extra:
            await self._require_extra(check, wanted.extra)
        return Impersonated(user, check.verb if way != _LEGACY else "")

    async def _require_groups(self, check: _Check, groups: tuple[str, ...]) -> None:
        if check.constrained:
            if "" in groups:
                reason = "impersonating the empty string group is not allowed"
                raise forbidden(check.question(check.group, "groups", ""), reason)
            if SYSTEM_MASTERS in groups:
                reason = "impersonating the system:masters group is not allowed"
                raise forbidden(check.question(check.group, "groups", SYSTEM_MASTERS), reason)
            if len(groups) >= _MANY and await self._allows(check.question(check.group, "groups", "*")):
                return
        for group in groups:
            await self._require(check.question(check.group, "groups", group))

    async def _require_extra(self, check: _Check, extra: Mapping[str, tuple[str, ...]]) -> None:
        if check.constrained:
            error = describe_bad_extra(extra)
            if error:
                raise forbidden(check.question(_GROUP, "userextras", ""), error)
            many = len(extra) >= _MANY or sum(len(values) for values in extra.values()) >= _MANY
            if many and await self._allows(check.question(_GROUP, "userextras", "*", "*")):
                return
        for key, values in extra.items():
            for value in values:
                await self._require(check.question(_GROUP, "userextras", value, key))

    async def _allows(self, question: Attributes) -> bool:
        try:
            await self._require(question)
        except errors.StatusError:
            return False
        return True

    async def _require(self, question: Attributes) -> None:
        started = time.perf_counter()
        decision = Decision.NO_OPINION
        try:
            decision, reason = await self._authorizer.authorize(question)
        except AuthorizationFailed as failure:
            raise forbidden(question, str(failure)) from None
        finally:
            way = [*question.verb.split(":", 2), "legacy"][1]
            verdict = "allowed" if decision is Decision.ALLOW else "denied"
            self._metrics.checked(way, verdict, time.perf_counter() - started)
        if decision is not Decision.ALLOW:
            raise forbidden(question, reason)


class _Check:
    """The questions of one way."""

    __slots__ = ("constrained", "group", "requestor", "verb", "way")

    def __init__(self, way: str, requestor: User) -> None:
        self.way = way
        self.requestor = requestor
        self.constrained = way != _LEGACY
        self.verb = f"impersonate:{way}" if self.constrained else "impersonate"
        self.group = _GROUP if self.constrained else ""

    def question(self, group: str, resource: str, name: str, subresource: str = "") -> Attributes:
        return Attributes(
            self.requestor, self.verb, group=group, version="v1", resource=resource, subresource=subresource, name=name
        )

    def username(self, name: str) -> Attributes:
        node, account = _node_name(name), split_service_account(name)
        if self.constrained and node:
            # The associated node is a right to whichever node it is.
            return self.question(self.group, "nodes", "*" if self.way == "associated-node" else node)
        if account is not None:
            asked = self.question(self.group, "serviceaccounts", account[1])
            asked.namespace = account[0]
            return asked
        return self.question(self.group, "users", name)

    def resulting(self, wanted: User) -> User:
        """The identity with the groups that go with its name."""
        groups = wanted.groups
        if not groups:
            account = split_service_account(wanted.name)
            if self.constrained and _node_name(wanted.name):
                groups = (NODES_GROUP,)
            elif account is not None:
                groups = service_account_groups(account[0])
        if wanted.name == ANONYMOUS:
            added = ALL_UNAUTHENTICATED
        else:
            added = ALL_UNAUTHENTICATED if ALL_UNAUTHENTICATED in groups else ALL_AUTHENTICATED
        if added not in groups:
            groups = (*groups, added)
        return wanted.with_groups(groups)


def _applies(way: str, wanted: User, requestor: User) -> bool:
    node = _node_name(wanted.name)
    only_name = not (wanted.uid or wanted.groups or wanted.extra)
    match way:
        case "associated-node":
            associated = split_service_account(requestor.name) and requestor.extra.get(NODE_NAME) == (node,)
            return bool(only_name and node and associated)
        case "arbitrary-node":
            return bool(only_name and node)
        case "serviceaccount":
            return only_name and split_service_account(wanted.name) is not None
        case "user-info":
            return not node and split_service_account(wanted.name) is None
    return True


def describe_bad_extra(extra: Mapping[str, tuple[str, ...]]) -> str:
    """What is wrong with extra values in the constrained ways; empty if nothing."""
    for key, values in extra.items():
        if not key:
            return "impersonating the empty string key in extra is not allowed"
        errs = check_domain_prefixed_path(Path("extra", "key"), key)
        if errs:
            listed = aggregate(str(error) for error in errs)
            return f"impersonating an invalid key in extra is not allowed: {listed}"
        if key != key.lower():
            return f"impersonating a non-lowercase key in extra is not allowed: {quote(key)}"
        if not values:
            return "impersonating empty values in extra is not allowed"
        if "" in values:
            return "impersonating the empty string value in extra is not allowed"
    return ""


def _without_details(requestor: User) -> User:
    """The requestor with the names of its extra values only: the right must not depend on the node."""
    keys = tuple(sorted(requestor.extra))
    extra = {"authentication.kubernetes.io/associated-node-keys": keys}
    return User(requestor.name, requestor.uid, requestor.groups, extra)


def _node_name(username: str) -> str:
    if not username.startswith(NODE_PREFIX):
        return ""
    name = username[len(NODE_PREFIX) :]
    return "" if check_dns1123_subdomain(name) else name


def _show(user: User) -> str:
    groups = _show_list(user.groups) if user.groups else "[]string(nil)"
    extra = "map[string][]string(nil)"
    if user.extra:
        pairs = ", ".join(f"{quote(key)}:{_show_list(user.extra[key])}" for key in sorted(user.extra))
        extra = f"map[string][]string{{{pairs}}}"
    return f"&user.DefaultInfo{{Name:{quote(user.name)}, UID:{quote(user.uid)}, Groups:{groups}, Extra:{extra}}}"


def _show_list(values: tuple[str, ...]) -> str:
    return "[]string{" + ", ".join(quote(value) for value in values) + "}"


def _text(value: bytes) -> str:
    return value.decode("utf-8", "replace")
