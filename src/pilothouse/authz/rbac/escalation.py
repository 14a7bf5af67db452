"""Nobody may grant what they do not hold: the checks on writes of roles and bindings.

Members of ``system:masters`` may, and those with the verb ``escalate`` on the role, or ``bind`` on the role a binding
refers to. Everybody else must hold every rule they would grant, in the scope where they grant it. An update that only
touches what the garbage collector touches is let through.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import chain
from typing import Final

from pilothouse.authz.attributes import Attributes
from pilothouse.authz.authorizer import AuthorizationFailed, Authorizer, Decision
from pilothouse.authz.rbac.coverage import count_parts, rules_covered
from pilothouse.authz.rbac.index import Index
from pilothouse.authz.rbac.rules import Rule, compact
from pilothouse.machinery import errors
from pilothouse.machinery.addressing import check_looked_up
from pilothouse.machinery.field_errors import aggregate
from pilothouse.machinery.go_quote import quote
from pilothouse.machinery.gvk import GroupResource
from pilothouse.machinery.objects import Object
from pilothouse.machinery.user import SYSTEM_MASTERS, User
from pilothouse.machinery.weights import weight_of_values
from pilothouse.machinery.workers import weighed

GROUP: Final = "rbac.authorization.k8s.io"
_FULL_AUTHORITY: Final[list[Rule]] = [
    {"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]},
    {"nonResourceURLs": ["*"], "verbs": ["*"]},
]
_AGGREGATION: Final = "must have cluster-admin privileges to use the aggregationRule"


async def check_role(
    user: User,
    authorizer: Authorizer,
    index: Index,
    role: Object,
    old: Object | None = None,
    *,
    resource: str,
    namespace: str = "",
    request_name: str = "",
) -> None:
    """Check a create (``old`` is None) or update of a role. ``request_name`` is the name in the path, if any.

    Raises StatusError 403.
    """
    if SYSTEM_MASTERS in user.groups:
        return
    question = Attributes(
        user, "escalate", group=GROUP, version="*", resource=resource, name=request_name, namespace=namespace
    )
    if await _allowed(authorizer, question) or (old is not None and only_collector_fields_change(role, old)):
        return
    name = role["metadata"].get("name", "")
    refusal = await describe_escalation(user, index, role.get("rules") or [], resource, namespace)
    if refusal:
        raise errors.forbidden(GroupResource(GROUP, resource), name, refusal)
    aggregated = _aggregates(role) or (old is not None and _aggregates(old))
    if aggregated and await describe_escalation(user, index, _FULL_AUTHORITY, resource, namespace):
        raise errors.forbidden(GroupResource(GROUP, resource), name, _AGGREGATION)


async def check_binding(
    user: User,
    authorizer: Authorizer,
    index: Index,
    binding: Object,
    old: Object | None = None,
    *,
    resource: str,
    namespace: str = "",
) -> None:
    """Check a create (``old`` is None) or update of a binding. Raises StatusError: 400, 403 or 404."""
    if SYSTEM_MASTERS in user.groups or (old is not None and only_collector_fields_change(binding, old)):
        return
    reference = binding.get("roleRef") or {}
    kind, role_name = reference.get("kind", ""), reference.get("name", "")
    if kind in ("ClusterRole", "Role"):
        question = Attributes(
            user,
            "bind",
            group=reference.get("apiGroup", ""),
            version="*",
            resource=f"{kind.lower()}s",
            name=role_name,
            namespace=namespace,
        )
        if await _allowed(authorizer, question):
            return
    try:
        rules = index.role_rules(kind, namespace, role_name)
    except LookupError as error:
        if kind not in ("ClusterRole", "Role"):
            raise errors.generic(str(error.args[0])) from None
        # kube-apiserver looks the role up where roles are stored, in the name of the binding's resource.
        if kind == "Role" and not namespace:
            raise errors.bad_request("Namespace parameter required.") from None
        check_looked_up(role_name)
        raise errors.not_found(GroupResource(GROUP, resource), role_name) from None
    refusal = await describe_escalation(user, index, rules, resource, namespace)
    if refusal:
        raise errors.forbidden(GroupResource(GROUP, resource), binding["metadata"].get("name", ""), refusal)


async def describe_escalation(user: User, index: Index, rules: Sequence[Rule], resource: str, namespace: str) -> str:
    """What of the rules the user does not hold, in the words of the refusal; empty if they hold everything."""
    roles = {id(role): role.rules for role in index.roles_of(user, namespace)}.values()
    weight = weight_of_values(sum(map(len, roles)) + sum(map(count_parts, rules)))
    listed = await weighed(weight, _list_missing, chain.from_iterable(roles), rules)
    if not listed:
        return ""
    text = (
        f"user {quote(user.name)} (groups={_quoted(user.groups)}) is attempting to grant RBAC permissions not "
        f"currently held:\n{listed}"
    )
    failures = [_in_the_name_of(resource, failure) for failure in index.errors(user, namespace)]
    return f"{text}; resolution errors: [{aggregate(failures)}]" if failures else text


def _list_missing(owned: Iterable[Rule], rules: Sequence[Rule]) -> str:
    return "\n".join(sorted({describe_rule(rule) for rule in compact(rules_covered(owned, rules))}))


def describe_rule(rule: Rule) -> str:
    """A rule in one line."""
    parts = (
        ("APIGroups", "apiGroups"),
        ("Resources", "resources"),
        ("NonResourceURLs", "nonResourceURLs"),
        ("ResourceNames", "resourceNames"),
        ("Verbs", "verbs"),
    )
    return "{" + ", ".join(f"{title}:{_quoted(rule[key])}" for title, key in parts if rule.get(key)) + "}"


def only_collector_fields_change(new: Object, old: Object) -> bool:
    """Whether owner references, finalizers and bookkeeping are all that changes."""
    ignored = ("ownerReferences", "finalizers", "selfLink", "managedFields")

    def kept(obj: Object) -> Object:
        metadata = {key: value for key, value in obj["metadata"].items() if key not in ignored and value}
        return {**{key: value for key, value in obj.items() if value}, "metadata": metadata}

    return kept(new) == kept(old)


async def _allowed(authorizer: Authorizer, question: Attributes) -> bool:
    try:
        return (await authorizer.authorize(question))[0] is Decision.ALLOW
    except AuthorizationFailed:
        return False


def _aggregates(role: Object) -> bool:
    return bool((role.get("aggregationRule") or {}).get("clusterRoleSelectors"))


def _in_the_name_of(resource: str, failure: str) -> str:
    head, dot, rest = failure.partition(".")
    return f"{resource}{dot}{rest}" if head in ("clusterrole", "role") else failure


def _quoted(values: Sequence[str]) -> str:
    return "[" + " ".join(quote(value) for value in values) + "]"
