"""An index over roles and bindings that answers "what does this identity hold here" without a search.

    put/remove      bindings are filed under each user name and group they name; a role's rules are compiled once
    grants(user)    the bindings of one identity in one scope (the cluster, or a namespace), in the order of their
                    names, with their compiled rules; made on the first question and kept
    matches(...)    inside such grants, the answer for one verb and resource is kept too, with the object names it is
                    limited to, so the name of the object is not part of the key

A change drops exactly what it can have changed: a Role or RoleBinding the grants of its namespace, a
ClusterRoleBinding those of the cluster, a ClusterRole all. Both caches are bounded.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final, NamedTuple

from pilothouse.authz.rbac.rules import CompiledRules, Names
from pilothouse.machinery.go_quote import quote
from pilothouse.machinery.user import User, service_account_name

CLUSTER_ROLE: Final = "ClusterRole"
ROLE: Final = "Role"
CLUSTER_ROLE_BINDING: Final = "ClusterRoleBinding"
ROLE_BINDING: Final = "RoleBinding"

MAX_IDENTITIES: Final = 8192
MAX_ANSWERS: Final = 2048
_MANY_GROUPS: Final = 64
"""Of a user in more of them those are looked for that have bindings."""
LONGEST_REMEMBERED: Final = 1024
"""Anybody may ask for a path of a megabyte, and for another one each time."""
MAX_IDENTITY_TEXT: Final = 32 * 1024 * 1024

Key = tuple[str, str]
Match = tuple[Names, str]


class Binding:
    """A binding as the index needs it: the role it refers to and where each subject stands in its list."""

    __slots__ = ("group_positions", "name", "namespace", "role_kind", "role_name", "subjects", "user_positions")

    def __init__(self, namespace: str, obj: dict[str, Any]) -> None:
        self.namespace = namespace
        self.name: str = obj["metadata"]["name"]
        reference = obj.get("roleRef") or {}
        self.role_kind: str = reference.get("kind", "")
        self.role_name: str = reference.get("name", "")
        self.subjects: list[dict[str, Any]] = list(obj.get("subjects") or ())
        self.user_positions: dict[str, int] = {}
        self.group_positions: dict[str, int] = {}
        for position, subject in enumerate(self.subjects):
            self._file(position, subject)

    def _file(self, position: int, subject: dict[str, Any]) -> None:
        kind, name = subject.get("kind", ""), subject.get("name", "")
        if kind == "User":
            self.user_positions.setdefault(name, position)
        elif kind == "Group":
            self.group_positions.setdefault(name, position)
        elif kind == "ServiceAccount":
            namespace = subject.get("namespace") or self.namespace
            if namespace:
                self.user_positions.setdefault(service_account_name(namespace, name), position)

    def same_as(self, other: Binding) -> bool:
        return (self.role_kind, self.role_name, self.subjects) == (other.role_kind, other.role_name, other.subjects)

    def position_of(self, user: User) -> int:
        """The first subject that means this user."""
        positions = [self.group_positions[group] for group in user.groups if group in self.group_positions]
        if user.name in self.user_positions:
            positions.append(self.user_positions[user.name])
        return min(positions)

    def describe(self, position: int) -> str:
        """How the reason of a decision names the binding and the subject."""
        name = f"{self.name}/{self.namespace}" if self.namespace else self.name
        kind = ROLE_BINDING if self.namespace else CLUSTER_ROLE_BINDING
        subject = self.subjects[position]
        who = subject.get("name", "")
        if subject["kind"] == "ServiceAccount":
            who = f"{who}/{subject.get('namespace') or self.namespace}"
        return f"{kind} {quote(name)} of {self.role_kind} {quote(self.role_name)} to {subject['kind']} {quote(who)}"


class RoleDigest(NamedTuple):
    """A role as the index needs it."""

    namespace: str
    name: str
    rules: CompiledRules


def digest(kind: str, obj: dict[str, Any]) -> Binding | RoleDigest:
    """What the index takes of an object: of a long one that is much work, which any thread can do."""
    metadata = obj["metadata"]
    namespace = metadata.get("namespace", "")
    if kind in (CLUSTER_ROLE_BINDING, ROLE_BINDING):
        return Binding(namespace if kind == ROLE_BINDING else "", obj)
    return RoleDigest(namespace, metadata["name"], CompiledRules(obj.get("rules") or []))


class Grants:
    """What one identity holds in one scope."""

    __slots__ = ("_answers", "_roles", "errors", "sources")

    def __init__(self, sources: list[tuple[Binding, int, CompiledRules]], errors: tuple[str, ...]) -> None:
        self.sources = sources
        self.errors = errors
        # Several bindings to one role say the same; the first of them is the reason.
        roles: dict[int, tuple[CompiledRules, Binding, int]] = {}
        for binding, position, rules in sources:
            roles.setdefault(id(rules), (rules, binding, position))
        self._roles = tuple(roles.values())
        self._answers: dict[tuple[str, ...], tuple[Match, ...]] = {}

    def resource_matches(self, verb: str, group: str, resource: str, subresource: str) -> tuple[Match, ...]:
        """The object names allowed and why, in order; ends at the first that allows every name."""
        key = (verb, group, resource, subresource)
        answer = self._answers.get(key)
        if answer is None:
            answer = self._keep(key, self._match_resource(*key))
        return answer

    def path_matches(self, verb: str, path: str) -> tuple[Match, ...]:
        """The same for a path."""
        key = (verb, path)
        answer = self._answers.get(key)
        if answer is None:
            answer = self._keep(key, self._match_path(verb, path))
        return answer

    def _match_resource(self, verb: str, group: str, resource: str, subresource: str) -> tuple[Match, ...]:
        found: list[Match] = []
        for rules, binding, position in self._roles:
            everything, names = rules.names_for(verb, group, resource, subresource)
            if everything:
                found.append((None, f"RBAC: allowed by {binding.describe(position)}"))
                break
            if names:
                found.append((names, f"RBAC: allowed by {binding.describe(position)}"))
        return tuple(found)

    def _match_path(self, verb: str, path: str) -> tuple[Match, ...]:
        for rules, binding, position in self._roles:
            if rules.allows_path(verb, path):
                return ((None, f"RBAC: allowed by {binding.describe(position)}"),)
        return ()

    def _keep(self, key: tuple[str, ...], answer: tuple[Match, ...]) -> tuple[Match, ...]:
        if sum(map(len, key)) <= LONGEST_REMEMBERED:
            if len(self._answers) >= MAX_ANSWERS:
                self._answers.clear()
            self._answers[key] = answer
        return answer


class _Scope:
    """The bindings of the cluster or of one namespace, filed by subject, and the grants made from them."""

    __slots__ = ("by_group", "by_user", "grants", "kept")

    def __init__(self) -> None:
        self.by_user: dict[str, dict[str, Binding]] = {}
        self.by_group: dict[str, dict[str, Binding]] = {}
        self.grants: dict[tuple[str, tuple[str, ...]], Grants] = {}
        self.kept = 0
        """Letters of the identities that grants were made for, since they were last forgotten for being too many."""

    def keep(self, identity: tuple[str, tuple[str, ...]], grants: Grants) -> None:
        """Remember what an identity holds. A user may have a hundred thousand groups, and another ones each time."""
        size = len(identity[0]) + sum(map(len, identity[1]))
        if len(self.grants) >= MAX_IDENTITIES or self.kept + size > MAX_IDENTITY_TEXT:
            self.grants.clear()
            self.kept = 0
        self.grants[identity] = grants
        self.kept += size

    def file(self, binding: Binding) -> None:
        for user in binding.user_positions:
            self.by_user.setdefault(user, {})[binding.name] = binding
        for group in binding.group_positions:
            self.by_group.setdefault(group, {})[binding.name] = binding
        self.grants.clear()

    def unfile(self, binding: Binding) -> None:
        for index, subjects in ((self.by_user, binding.user_positions), (self.by_group, binding.group_positions)):
            for subject in subjects:
                filed = index[subject]
                del filed[binding.name]
                if not filed:
                    del index[subject]
        self.grants.clear()

    def bindings_of(self, user: User) -> list[Binding]:
        found = dict(self.by_user.get(user.name, ()))
        groups: Iterable[str] = user.groups
        if len(user.groups) > _MANY_GROUPS:
            groups = self.by_group.keys() & user.groups
        for group in groups:
            found.update(self.by_group.get(group, ()))
        return [found[name] for name in sorted(found)]


class Index:
    """All RBAC objects of the cluster; feed it every change, in any order."""

    def __init__(self) -> None:
        self._cluster_roles: dict[str, CompiledRules] = {}
        self._roles: dict[Key, CompiledRules] = {}
        self._bindings: dict[Key, Binding] = {}
        self._cluster = _Scope()
        self._namespaces: dict[str, _Scope] = {}
        self._nobody = _Scope()
        # Grows with every change, for caches above this one.
        self.generation = 0

    def put(self, kind: str, obj: dict[str, Any]) -> None:
        """A role or binding was created or changed."""
        self.take(kind, digest(kind, obj))

    def take(self, kind: str, digested: Binding | RoleDigest) -> None:
        """The same, with what ``digest`` has made of the object."""
        if isinstance(digested, Binding):
            self._put_binding(digested)
        elif kind == CLUSTER_ROLE:
            self._put_cluster_role(digested.name, digested.rules)
        elif kind == ROLE:
            self._put_role((digested.namespace, digested.name), digested.rules)

    def remove(self, kind: str, namespace: str, name: str) -> None:
        """A role or binding was deleted."""
        if kind == CLUSTER_ROLE:
            if self._cluster_roles.pop(name, None) is not None:
                self._forget_everything()
        elif kind == ROLE:
            if self._roles.pop((namespace, name), None) is not None:
                self._forget(namespace)
        elif kind in (CLUSTER_ROLE_BINDING, ROLE_BINDING):
            self._remove_binding(namespace if kind == ROLE_BINDING else "", name)

    def grants(self, user: User, namespace: str = "") -> Grants:
        """What the user holds in the cluster, or in the namespace by its own bindings alone."""
        scope = self._namespaces.get(namespace, self._nobody) if namespace else self._cluster
        identity = (user.name, user.groups)
        found = scope.grants.get(identity)
        if found is None:
            found = self._resolve(scope, user, namespace)
            if scope is not self._nobody:
                scope.keep(identity, found)
        return found

    def role_rules(self, kind: str, namespace: str, name: str) -> list[dict[str, Any]]:
        """The rules of the role that a binding in the namespace refers to. Raises ``LookupError`` with the reason."""
        return list(self._compiled(kind, namespace, name).rules)

    def roles_of(self, user: User, namespace: str) -> list[CompiledRules]:
        """The roles that apply to the user, once for each binding that grants them."""
        scopes = ("", namespace) if namespace else ("",)
        return [rules for scope in scopes for _, _, rules in self.grants(user, scope).sources]

    def errors(self, user: User, namespace: str) -> list[str]:
        """What went wrong while resolving the user's bindings."""
        found = list(self.grants(user).errors)
        if namespace:
            found += self.grants(user, namespace).errors
        return found

    def _resolve(self, scope: _Scope, user: User, namespace: str) -> Grants:
        sources: list[tuple[Binding, int, CompiledRules]] = []
        errors: dict[str, None] = {}
        for binding in scope.bindings_of(user):
            try:
                rules = self._compiled(binding.role_kind, namespace, binding.role_name)
            except LookupError as error:
                errors[str(error.args[0])] = None
                continue
            sources.append((binding, binding.position_of(user), rules))
        return Grants(sources, tuple(errors))

    def _compiled(self, kind: str, namespace: str, name: str) -> CompiledRules:
        if kind == CLUSTER_ROLE:
            rules = self._cluster_roles.get(name)
        elif kind == ROLE:
            rules = self._roles.get((namespace, name))
        else:
            raise LookupError(f"unsupported role reference kind: {quote(kind)}")
        if rules is None:
            raise LookupError(f"{kind.lower()}.rbac.authorization.k8s.io {quote(name)} not found")
        return rules

    def _put_cluster_role(self, name: str, rules: CompiledRules) -> None:
        known = self._cluster_roles.get(name)
        if known is None or known.rules != rules.rules:
            self._cluster_roles[name] = rules
            self._forget_everything()

    def _put_role(self, key: Key, rules: CompiledRules) -> None:
        known = self._roles.get(key)
        if known is None or known.rules != rules.rules:
            self._roles[key] = rules
            self._forget(key[0])

    def _put_binding(self, binding: Binding) -> None:
        key = (binding.namespace, binding.name)
        known = self._bindings.get(key)
        if known is not None:
            if known.same_as(binding):
                return
            self._remove_binding(*key)
        self._bindings[key] = binding
        self._scope(binding.namespace).file(binding)
        self.generation += 1

    def _remove_binding(self, namespace: str, name: str) -> None:
        binding = self._bindings.pop((namespace, name), None)
        if binding is None:
            return
        scope = self._scope(namespace)
        scope.unfile(binding)
        if namespace and not scope.by_user and not scope.by_group:
            del self._namespaces[namespace]
        self.generation += 1

    def _scope(self, namespace: str) -> _Scope:
        if not namespace:
            return self._cluster
        return self._namespaces.setdefault(namespace, _Scope())

    def _forget(self, namespace: str) -> None:
        self.generation += 1
        scope = self._namespaces.get(namespace)
        if scope is not None:
            scope.grants.clear()

    def _forget_everything(self) -> None:
        self.generation += 1
        self._cluster.grants.clear()
        for scope in self._namespaces.values():
            scope.grants.clear()
