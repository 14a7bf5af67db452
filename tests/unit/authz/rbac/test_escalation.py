import pytest

from pilothouse.authz.rbac.authorizer import RBACAuthorizer
from pilothouse.authz.rbac.escalation import check_binding, check_role
from pilothouse.authz.rbac.index import Index
from pilothouse.machinery.errors import StatusError
from pilothouse.machinery.user import User

GROUP = "rbac.authorization.k8s.io"
MANAGER = User("mgr", groups=("team", "system:authenticated"))


def rule(verbs, resources, group="", **more):
    return {"verbs": verbs, "apiGroups": [group], "resources": resources, **more}


def bind(name, role, user="mgr", kind="ClusterRole", namespace=None):
    metadata = {"name": name, **({"namespace": namespace} if namespace else {})}
    return {
        "metadata": metadata,
        "roleRef": {"apiGroup": GROUP, "kind": kind, "name": role},
        "subjects": [{"kind": "User", "name": user}],
    }


@pytest.fixture
def index():
    index = Index()
    index.put("ClusterRole", {"metadata": {"name": "reader"}, "rules": [rule(["get"], ["pods"])]})
    index.put("ClusterRole", {"metadata": {"name": "strong"}, "rules": [rule(["delete"], ["nodes"])]})
    index.put("ClusterRoleBinding", bind("b", "reader"))
    return index


async def refusal(check):
    with pytest.raises(StatusError) as caught:
        await check
    return caught.value.code, caught.value.message


def role(*rules, **more):
    return {"metadata": {"name": "r"}, "rules": list(rules), **more}


async def test_roles(index):
    authorizer = RBACAuthorizer(index)
    await check_role(MANAGER, authorizer, index, role(rule(["get"], ["pods"])), resource="roles", namespace="ns")
    wanted = role(rule(["get", "delete"], ["pods", "secrets"]))
    assert await refusal(check_role(MANAGER, authorizer, index, wanted, resource="roles", namespace="ns")) == (
        403,
        'roles.rbac.authorization.k8s.io "r" is forbidden: user "mgr" (groups=["team" "system:authenticated"]) is '
        "attempting to grant RBAC permissions not currently held:\n"
        '{APIGroups:[""], Resources:["pods"], Verbs:["delete"]}\n'
        '{APIGroups:[""], Resources:["secrets"], Verbs:["get" "delete"]}',
    )
    await check_role(User("x", groups=("system:masters",)), authorizer, index, wanted, resource="roles")


async def test_escalate_verb(index):
    index.put("ClusterRole", {"metadata": {"name": "e"}, "rules": [rule(["escalate"], ["roles"], GROUP)]})
    index.put("ClusterRoleBinding", bind("e", "e"))
    wanted = role(rule(["*"], ["*"]))
    await check_role(MANAGER, RBACAuthorizer(index), index, wanted, resource="roles", namespace="ns")
    assert (await refusal(check_role(MANAGER, RBACAuthorizer(index), index, wanted, resource="clusterroles")))[0] == 403


async def test_aggregation_needs_everything(index):
    wanted = role(aggregationRule={"clusterRoleSelectors": [{"matchLabels": {"a": "b"}}]})
    assert await refusal(check_role(MANAGER, RBACAuthorizer(index), index, wanted, resource="clusterroles")) == (
        403,
        'clusterroles.rbac.authorization.k8s.io "r" is forbidden: must have cluster-admin privileges to use the '
        "aggregationRule",
    )
    assert await refusal(check_role(MANAGER, RBACAuthorizer(index), index, role(), wanted, resource="clusterroles"))


async def test_collector_may_release_stronger_roles(index):
    old = role(rule(["*"], ["*"]))
    new = {**old, "metadata": {"name": "r", "finalizers": ["x"], "ownerReferences": [{"uid": "1"}]}}
    await check_role(MANAGER, RBACAuthorizer(index), index, new, old, resource="roles", namespace="ns")
    new["metadata"]["labels"] = {"a": "b"}
    assert await refusal(check_role(MANAGER, RBACAuthorizer(index), index, new, old, resource="roles", namespace="ns"))


async def test_bindings(index):
    authorizer = RBACAuthorizer(index)
    await check_binding(MANAGER, authorizer, index, bind("n", "reader"), resource="rolebindings", namespace="ns")
    _, message = await refusal(
        check_binding(MANAGER, authorizer, index, bind("n", "strong"), resource="clusterrolebindings")
    )
    assert message.startswith('clusterrolebindings.rbac.authorization.k8s.io "n" is forbidden: user "mgr"')
    missing = bind("n", "nope", kind="Role")
    assert await refusal(
        check_binding(MANAGER, authorizer, index, missing, resource="rolebindings", namespace="ns")
    ) == (404, 'rolebindings.rbac.authorization.k8s.io "nope" not found')


@pytest.mark.parametrize(
    ("name", "kind", "namespace", "expected"),
    [
        ("nope", "Role", "", "Namespace parameter required."),
        ("", "Role", "ns", "Name parameter required."),
        ("", "ClusterRole", "", "Name parameter required."),
        ("a/b", "ClusterRole", "ns", "Name parameter invalid: \"a/b\": may not contain '/'"),
        ("..", "Role", "ns", "Name parameter invalid: \"..\": may not be '..'"),
    ],
)
async def test_roles_that_cannot_be(index, name, kind, namespace, expected):
    wanted, resource = bind("n", name, kind=kind), "rolebindings" if namespace else "clusterrolebindings"
    checking = check_binding(MANAGER, RBACAuthorizer(index), index, wanted, resource=resource, namespace=namespace)
    assert await refusal(checking) == (400, expected)


async def test_bind_verb(index):
    held = rule(["bind"], ["clusterroles"], GROUP, resourceNames=["strong"])
    index.put("Role", {"metadata": {"name": "binder", "namespace": "ns"}, "rules": [held]})
    index.put("RoleBinding", bind("x", "binder", kind="Role", namespace="ns"))
    authorizer = RBACAuthorizer(index)
    await check_binding(MANAGER, authorizer, index, bind("n", "strong"), resource="rolebindings", namespace="ns")
    assert await refusal(
        check_binding(MANAGER, authorizer, index, bind("n", "strong"), resource="rolebindings", namespace="other")
    )


async def test_unresolved_bindings_are_told(index):
    index.put("ClusterRoleBinding", bind("dangling", "gone"))
    _, message = await refusal(
        check_role(MANAGER, RBACAuthorizer(index), index, role(rule(["x"], ["y"])), resource="clusterroles")
    )
    assert message.endswith('; resolution errors: [clusterroles.rbac.authorization.k8s.io "gone" not found]')
