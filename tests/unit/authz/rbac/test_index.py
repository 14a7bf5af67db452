"""The index against a naive evaluation of the same objects, and the reasons it gives."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pilothouse.authz.attributes import Attributes
from pilothouse.authz.authorizer import Decision
from pilothouse.authz.rbac.authorizer import RBACAuthorizer
from pilothouse.authz.rbac.index import Index
from pilothouse.machinery.user import User

GROUP = "rbac.authorization.k8s.io"


def role(name, *rules, namespace=None):
    metadata = {"name": name, **({"namespace": namespace} if namespace else {})}
    return {"metadata": metadata, "rules": list(rules)}


def rule(verbs, groups=(), resources=(), names=(), urls=()):
    return {
        "verbs": list(verbs),
        "apiGroups": list(groups),
        "resources": list(resources),
        "resourceNames": list(names),
        "nonResourceURLs": list(urls),
    }


def binding(name, role_kind, role_name, *subjects, namespace=None):
    metadata = {"name": name, **({"namespace": namespace} if namespace else {})}
    return {
        "metadata": metadata,
        "roleRef": {"apiGroup": GROUP, "kind": role_kind, "name": role_name},
        "subjects": [dict(zip(("kind", "name", "namespace"), subject, strict=False)) for subject in subjects],
    }


def ask(index, user, verb="get", resource="pods", namespace="", group="", subresource="", name="", path=""):
    attributes = Attributes(
        user, verb, namespace=namespace, group=group, resource="" if path else resource, subresource=subresource,
        name=name, resource_request=not path, path=path,
    )  # fmt: skip
    return RBACAuthorizer(index).decide(attributes)


ALICE = User("alice", groups=("devs", "system:authenticated"))


def test_reasons():
    index = Index()
    index.put("ClusterRole", role("view", rule(["get"], [""], ["pods"])))
    index.put("Role", role("local", rule(["list"], [""], ["pods"]), namespace="ns"))
    index.put("ClusterRoleBinding", binding("b", "ClusterRole", "view", ("User", "zoe"), ("Group", "devs")))
    index.put("RoleBinding", binding("rb", "Role", "local", ("User", "alice"), namespace="ns"))
    index.put("RoleBinding", binding("sa", "ClusterRole", "view", ("ServiceAccount", "bot"), namespace="ns"))
    allow = Decision.ALLOW
    assert ask(index, ALICE) == (
        allow, 'RBAC: allowed by ClusterRoleBinding "b" of ClusterRole "view" to Group "devs"')  # fmt: skip
    assert ask(index, ALICE, "list", namespace="ns") == (
        allow, 'RBAC: allowed by RoleBinding "rb/ns" of Role "local" to User "alice"')  # fmt: skip
    assert ask(index, User("system:serviceaccount:ns:bot"), namespace="ns") == (
        allow, 'RBAC: allowed by RoleBinding "sa/ns" of ClusterRole "view" to ServiceAccount "bot/ns"')  # fmt: skip
    assert ask(index, ALICE, "list") == (Decision.NO_OPINION, "")
    assert ask(index, ALICE, "list", namespace="other") == (Decision.NO_OPINION, "")


def test_missing_roles_are_told():
    index = Index()
    index.put("ClusterRoleBinding", binding("b", "ClusterRole", "gone", ("Group", "devs")))
    index.put("RoleBinding", binding("c", "Role", "lost", ("User", "alice"), namespace="ns"))
    index.put("RoleBinding", binding("d", "Thing", "x", ("User", "alice"), namespace="ns"))
    assert ask(index, ALICE)[1] == 'RBAC: clusterrole.rbac.authorization.k8s.io "gone" not found'
    assert ask(index, ALICE, namespace="ns")[1] == (
        'RBAC: [clusterrole.rbac.authorization.k8s.io "gone" not found, '
        'role.rbac.authorization.k8s.io "lost" not found, unsupported role reference kind: "Thing"]'
    )
    index.put("ClusterRole", role("gone", rule(["*"], ["*"], ["*"])))
    assert ask(index, ALICE)[0] is Decision.ALLOW


@pytest.mark.parametrize(
    ("asked", "allowed"),
    [
        ({"resource": "pods"}, True),
        ({"resource": "pods", "subresource": "log"}, True),
        ({"resource": "pods", "subresource": "exec"}, False),
        ({"resource": "deployments", "group": "apps", "subresource": "scale"}, True),
        ({"resource": "deployments", "group": "apps"}, False),
        ({"resource": "secrets", "name": "mine"}, True),
        ({"resource": "secrets", "name": "yours"}, False),
        ({"resource": "secrets", "verb": "list"}, False),
        ({"path": "/metrics"}, True),
        ({"path": "/metrics/x"}, False),
        ({"path": "/logs/"}, True),
        ({"path": "/logs"}, False),
        ({"path": "/logs/a/b"}, True),
        ({"path": "/metrics", "verb": "post"}, False),
    ],
)
def test_matching(asked, allowed):
    index = Index()
    index.put(
        "ClusterRole",
        role(
            "r",
            rule(["get"], [""], ["pods", "pods/log"]),
            rule(["get"], ["*"], ["*/scale"]),
            rule(["get", "list"], [""], ["secrets"], ["mine"]),
            rule(["get"], urls=["/metrics", "/logs/*"]),
        ),
    )
    index.put("ClusterRoleBinding", binding("b", "ClusterRole", "r", ("User", "alice")))
    assert (ask(index, ALICE, **asked)[0] is Decision.ALLOW) == allowed


def test_changes_are_seen_at_once():
    index = Index()
    index.put("ClusterRoleBinding", binding("b", "ClusterRole", "r", ("User", "alice")))
    assert ask(index, ALICE)[0] is Decision.NO_OPINION
    index.put("ClusterRole", role("r", rule(["get"], [""], ["pods"])))
    assert ask(index, ALICE)[0] is Decision.ALLOW
    index.put("ClusterRole", role("r", rule(["list"], [""], ["pods"])))
    assert ask(index, ALICE)[0] is Decision.NO_OPINION
    assert ask(index, ALICE, "list")[0] is Decision.ALLOW
    index.put("ClusterRoleBinding", binding("b", "ClusterRole", "r", ("User", "bob")))
    assert ask(index, ALICE, "list")[0] is Decision.NO_OPINION
    assert ask(index, User("bob"), "list")[0] is Decision.ALLOW
    index.remove("ClusterRoleBinding", "", "b")
    assert ask(index, User("bob"), "list")[0] is Decision.NO_OPINION
    index.remove("ClusterRoleBinding", "", "b")
    index.remove("Role", "x", "never-there")


def test_unchanged_objects_change_no_generation():
    index = Index()
    objects = [
        ("ClusterRole", role("r", rule(["get"], [""], ["pods"]))),
        ("Role", role("r", rule(["get"], [""], ["pods"]), namespace="n")),
        ("ClusterRoleBinding", binding("b", "ClusterRole", "r", ("User", "alice"))),
    ]
    for kind, obj in objects * 2:
        index.put(kind, obj)
    assert index.generation == 3


def test_rules_for_lists_every_binding_and_the_errors():
    index = Index()
    index.put("ClusterRole", role("r", rule(["get"], [""], ["pods"]), rule(["get"], urls=["/x"])))
    index.put("ClusterRoleBinding", binding("a", "ClusterRole", "r", ("User", "alice")))
    index.put("ClusterRoleBinding", binding("b", "ClusterRole", "r", ("Group", "devs")))
    index.put("RoleBinding", binding("c", "Role", "lost", ("User", "alice"), namespace="ns"))
    rules = RBACAuthorizer(index).rules_for(ALICE, "ns")()
    assert [r.resources for r in rules.resource_rules] == [["pods"]] * 2
    assert [r.paths for r in rules.path_rules] == [["/x"]] * 2
    assert rules.error == 'role.rbac.authorization.k8s.io "lost" not found'


def naive(objects, attributes):
    """RBAC as its documentation says it, one nested loop."""
    user, namespace = attributes.user, attributes.namespace

    def means(subject, at):
        if subject["kind"] == "User":
            return subject["name"] == user.name
        if subject["kind"] == "Group":
            return subject["name"] in user.groups
        home = subject.get("namespace") or at
        return bool(home) and user.name == f"system:serviceaccount:{home}:{subject['name']}"

    def matches(r):
        if not {"*", attributes.verb} & set(r["verbs"]):
            return False
        if not attributes.resource_request:
            return any(
                u in ("*", attributes.path) or (u.endswith("*") and attributes.path.startswith(u.rstrip("*")))
                for u in r["nonResourceURLs"]
            )
        sub = attributes.subresource
        full = f"{attributes.resource}/{sub}" if sub else attributes.resource
        resources = {"*", full} | ({f"*/{sub}"} if sub else set())
        return (
            bool({"*", attributes.group} & set(r["apiGroups"]))
            and bool(resources & set(r["resources"]))
            and (not r["resourceNames"] or attributes.name in r["resourceNames"])
        )

    for (kind, at, _), obj in objects.items():
        if not kind.endswith("Binding") or (at and at != namespace):
            continue
        if not any(means(subject, at) for subject in obj["subjects"]):
            continue
        reference = obj["roleRef"]
        where = "" if reference["kind"] == "ClusterRole" else at
        held = objects.get((reference["kind"], where, reference["name"]))
        if held is not None and any(matches(r) for r in held["rules"]):
            return True
    return False


VERBS, GROUPS, RESOURCES = ["get", "list", "*"], ["", "apps", "*"], ["pods", "pods/log", "*/log", "*", "secrets"]
NAMES, PATHS, SPACES = ["a", "b"], ["/x", "/x/*", "*", "/x/y"], ["n1", "n2"]


def some(values, least=0):
    return st.lists(st.sampled_from(values), min_size=least, max_size=3, unique=True)


rules = st.builds(rule, some(VERBS, 1), some(GROUPS), some(RESOURCES), some(NAMES), some(PATHS))
subjects = st.one_of(
    st.tuples(st.just("User"), st.sampled_from(["u1", "u2", "system:serviceaccount:n1:s"])),
    st.tuples(st.just("Group"), st.sampled_from(["g1", "g2"])),
    st.tuples(st.just("ServiceAccount"), st.just("s"), st.sampled_from(["", "n1", "n2"])),
)


@st.composite
def changes(draw):
    kind = draw(st.sampled_from(["ClusterRole", "Role", "ClusterRoleBinding", "RoleBinding"]))
    name = draw(st.sampled_from(["x", "y"]))
    namespace = "" if kind.startswith("Cluster") else draw(st.sampled_from(SPACES))
    if draw(st.integers(0, 4)) == 0:
        return kind, namespace, name, None
    if not kind.endswith("Binding"):
        return kind, namespace, name, role(name, *draw(st.lists(rules, max_size=3)), namespace=namespace)
    held = "ClusterRole" if kind == "ClusterRoleBinding" else draw(st.sampled_from(["ClusterRole", "Role"]))
    who = draw(st.lists(subjects, max_size=3))
    return kind, namespace, name, binding(name, held, draw(st.sampled_from(["x", "y"])), *who, namespace=namespace)


@st.composite
def questions(draw):
    user = User(
        draw(st.sampled_from(["u1", "u2", "system:serviceaccount:n1:s", "system:serviceaccount:n2:s"])),
        groups=tuple(draw(some(["g1", "g2"]))),
    )
    resource_request = draw(st.booleans())
    return Attributes(
        user,
        draw(st.sampled_from(["get", "list", "watch"])),
        namespace=draw(st.sampled_from(["", *SPACES])) if resource_request else "",
        group=draw(st.sampled_from(["", "apps"])),
        resource=draw(st.sampled_from(["pods", "secrets"])),
        subresource=draw(st.sampled_from(["", "log"])),
        name=draw(st.sampled_from(["", "a", "b"])),
        resource_request=resource_request,
        path=draw(st.sampled_from(["/x", "/x/y", "/z"])),
    )


@given(st.lists(st.tuples(changes(), st.lists(questions(), max_size=4)), max_size=15))
def test_index_equals_naive_evaluation(history):
    index, objects = Index(), {}
    for (kind, namespace, name, obj), asked in history:
        if obj is None:
            index.remove(kind, namespace, name)
            objects.pop((kind, namespace, name), None)
        else:
            index.put(kind, obj)
            objects[kind, namespace, name] = obj
        for attributes in asked:
            decision, reason = RBACAuthorizer(index).decide(attributes)
            assert (decision is Decision.ALLOW) == naive(objects, attributes)
            assert reason.startswith("RBAC: allowed by") == (decision is Decision.ALLOW)
