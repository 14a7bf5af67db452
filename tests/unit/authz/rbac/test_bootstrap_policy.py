import copy

import pytest

from pilothouse.authz.attributes import Attributes
from pilothouse.authz.authorizer import Decision
from pilothouse.authz.rbac import bootstrap_policy
from pilothouse.authz.rbac.authorizer import RBACAuthorizer
from pilothouse.authz.rbac.bootstrap_policy import reconcile
from pilothouse.authz.rbac.index import Index
from pilothouse.machinery.user import User

KINDS = {
    "clusterroles": "ClusterRole",
    "clusterrolebindings": "ClusterRoleBinding",
    "roles": "Role",
    "rolebindings": "RoleBinding",
}


def everything():
    return [(resource, obj) for resource in bootstrap_policy.RESOURCES for obj in bootstrap_policy.load(resource)]


def test_policy_is_complete_and_bare():
    counts = {resource: len(bootstrap_policy.load(resource)) for resource in bootstrap_policy.RESOURCES}
    assert counts == {"clusterroles": 73, "clusterrolebindings": 54, "roles": 7, "rolebindings": 7}
    for resource, obj in everything():
        assert obj["kind"] == KINDS[resource]
        assert set(obj["metadata"]) <= {"name", "namespace", "labels", "annotations"}
        assert obj["metadata"]["annotations"] == {bootstrap_policy.AUTO_UPDATE: "true"}
        assert obj["metadata"]["labels"]["kubernetes.io/bootstrapping"] == "rbac-defaults"


def rules(role, *gates):
    roles = bootstrap_policy.load("clusterroles", frozenset(gates))
    wanted = next(each for each in roles if each["metadata"]["name"] == f"system:{role}")
    return [(*rule["resources"], *rule["verbs"]) for rule in wanted["rules"] if "resources" in rule]


def test_features_add_rules_where_the_role_has_them():
    read, update = ("get", "list", "watch"), ("patch", "update")
    gates = ("GenericWorkload", "CompositePodGroup", "EvictionRequestAPI")
    assert rules("aggregate-to-view", *gates)[len(rules("aggregate-to-view")) :] == [
        ("podgroups", "podgroups/status", "workloads", *read),
        ("compositepodgroups", "compositepodgroups/status", *read),
        ("evictionrequests", "evictions", *read),
    ]
    assert rules("kube-scheduler", *gates)[-4:] == [
        ("podgroups", *read),
        ("podgroups/status", *update),
        ("compositepodgroups", *read),
        ("compositepodgroups/status", *update),
    ]
    assert rules("kube-scheduler", "GenericWorkload")[-1] == ("podgroups/status", *update)
    assert rules("controller:resource-claim-controller", "DRAWorkloadResourceClaims")[-3:-1] == [
        ("podgroups", *read),
        ("podgroups/status", *update),
    ]
    nodes = rules("node", "CSIVolumeHealth")
    assert nodes[nodes.index(("csinodes/status", "get", *update)) - 1][0] == "csinodes"


@pytest.mark.parametrize("gate", ["StorageVersionAPI", "GenericWorkload", "DRAResourcePoolStatus"])
def test_features_bring_controllers_with_their_role_and_binding(gate):
    for resource in ("clusterroles", "clusterrolebindings"):
        assert len(bootstrap_policy.load(resource, frozenset({gate}))) == len(bootstrap_policy.load(resource)) + 1


@pytest.mark.parametrize(("resource", "obj"), everything(), ids=lambda value: str(value)[:30])
def test_what_is_in_line_stays(resource, obj):
    assert reconcile(None, obj) == ("create", obj)
    assert reconcile(obj, obj) is None
    served = copy.deepcopy(obj)
    served["metadata"].update(uid="u", resourceVersion="7", annotations={**obj["metadata"]["annotations"], "mine": "x"})
    assert reconcile(served, obj) is None


def test_missing_rules_and_labels_come_back_and_additions_stay():
    wanted = {"metadata": {"name": "r", "labels": {"a": "1"}}, "rules": [
        {"verbs": ["get", "list"], "apiGroups": [""], "resources": ["pods"]}]}  # fmt: skip
    extra = {"verbs": ["*"], "apiGroups": ["x"], "resources": ["y"]}
    existing = {"metadata": {"name": "r", "uid": "u", "labels": {"b": "2"}}, "rules": [
        {"verbs": ["get"], "apiGroups": [""], "resources": ["pods"]}, extra]}  # fmt: skip
    before = copy.deepcopy(existing)
    operation, merged = reconcile(existing, wanted)
    assert operation == "update"
    assert merged["metadata"] == {"name": "r", "uid": "u", "labels": {"a": "1", "b": "2"}}
    assert merged["rules"] == [*existing["rules"], {"verbs": ["list"], "apiGroups": [""], "resources": ["pods"]}]
    assert existing == before


def test_protected_objects_are_left_alone():
    annotations = {bootstrap_policy.AUTO_UPDATE: "false"}
    existing = {"metadata": {"name": "r", "annotations": annotations}, "rules": []}
    wanted = {"metadata": {"name": "r"}, "rules": [{"verbs": ["get"], "apiGroups": [""], "resources": ["pods"]}]}
    assert reconcile(existing, wanted) is None
    binding = {"metadata": {"name": "b", "annotations": annotations}, "roleRef": {"name": "x"}, "subjects": []}
    assert reconcile(binding, {"metadata": {"name": "b"}, "roleRef": {"name": "y"}, "subjects": []}) is None


def test_bindings():
    wanted = {"metadata": {"name": "b"}, "roleRef": {"name": "x"}, "subjects": [{"kind": "User", "name": "a"}]}
    more = {"kind": "User", "name": "mine"}
    assert reconcile({**wanted, "roleRef": {"name": "y"}}, wanted) == ("recreate", wanted)
    assert reconcile({**wanted, "subjects": [more]}, wanted) == (
        "update", {**wanted, "subjects": [more, *wanted["subjects"]]})  # fmt: skip
    assert reconcile({**wanted, "subjects": [*wanted["subjects"], more]}, wanted) is None


def test_aggregation_rules():
    rule = {"clusterRoleSelectors": [{"matchLabels": {"a": "1"}}]}
    mine = {"matchLabels": {"b": "1"}}
    plain = {"metadata": {"name": "r"}, "rules": []}
    assert reconcile({**plain, "aggregationRule": rule}, plain) == ("update", plain)
    assert reconcile(plain, {**plain, "aggregationRule": rule}) == ("update", {**plain, "aggregationRule": rule})
    _, merged = reconcile(
        {**plain, "aggregationRule": {"clusterRoleSelectors": [mine]}}, {**plain, "aggregationRule": rule}
    )
    assert merged["aggregationRule"]["clusterRoleSelectors"] == [mine, *rule["clusterRoleSelectors"]]


@pytest.mark.parametrize(
    ("user", "verb", "target", "allowed"),
    [
        (User("x", groups=("system:unauthenticated",)), "get", {"path": "/version"}, True),
        (User("x", groups=("system:unauthenticated",)), "get", {"path": "/api"}, False),
        (User("x", groups=("system:authenticated",)), "get", {"path": "/api"}, True),
        (User("x", groups=("system:masters",)), "delete", {"resource": "nodes"}, True),
        (User("system:kube-scheduler"), "create", {"resource": "pods", "subresource": "binding"}, True),
        (User("x", groups=("system:authenticated",)), "create",
         {"group": "authentication.k8s.io", "resource": "selfsubjectreviews"}, True),
    ],
)  # fmt: skip
def test_policy_in_force(user, verb, target, allowed):
    index = Index()
    for resource, obj in everything():
        index.put(KINDS[resource], obj)
    attributes = Attributes(user, verb, resource_request="path" not in target, **target)
    assert (RBACAuthorizer(index).decide(attributes)[0] is Decision.ALLOW) == allowed
