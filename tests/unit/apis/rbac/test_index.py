import pytest

from pilothouse.apis import types
from pilothouse.apis.rbac.index import STRATEGIES
from pilothouse.apis.strategy import Context, Object
from pilothouse.machinery.schema.decoding import decode

KINDS = {
    "roles": "Role",
    "clusterroles": "ClusterRole",
    "rolebindings": "RoleBinding",
    "clusterrolebindings": "ClusterRoleBinding",
}


def made(resource: str, body: Object) -> Object:
    obj = decode(types.struct(f"rbac.v1.{KINDS[resource]}"), body)[0]
    STRATEGIES[resource]().default(obj)
    assert decode(types.struct(f"rbac.v1.{KINDS[resource]}"), obj)[0] == obj
    return obj


def errors_of(resource: str, body: Object, old: Object | None = None) -> list[str]:
    strategy, obj = STRATEGIES[resource](), made(resource, body)
    if old is None:
        return [str(error) for error in strategy.validate(Context(), obj)]
    return [str(error) for error in strategy.validate_update(Context(), obj, made(resource, old))]


RULE = {"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}
REF = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "r"}


@pytest.mark.parametrize(
    ("resource", "body", "expected"),
    [
        ("roles", {"rules": [RULE]}, []),
        ("roles", {}, []),
        # Declared rules come last and say nothing but that a value is required.
        (
            "roles",
            {"rules": [{}, {"nonResourceURLs": ["/x"], "verbs": ["get"]}]},
            [
                "rules[0].apiGroups: Required value: resource rules must supply at least one api group",
                "rules[0].resources: Required value: resource rules must supply at least one resource",
                'rules[1].nonResourceURLs: Invalid value: ["/x"]: namespaced rules cannot apply to non-resource URLs',
                "rules[0].verbs: Required value",
            ],
        ),
        (
            "clusterroles",
            {"rules": [{**RULE, "nonResourceURLs": ["x"]}]},
            [
                'rules[0].nonResourceURLs: Invalid value: ["x"]: rules cannot apply to both regular resources and '
                "non-resource URLs"
            ],
        ),
        (
            "clusterroles",
            {"aggregationRule": {}},
            [
                "aggregationRule.clusterRoleSelectors: Required value: at least one clusterRoleSelector required if "
                "aggregationRule is non-nil"
            ],
        ),
        ("clusterrolebindings", {"roleRef": REF, "subjects": [{"kind": "User", "name": "u"}]}, []),
        ("rolebindings", {"roleRef": REF, "subjects": [{"kind": "ServiceAccount", "name": "a"}]}, []),
        (
            "clusterrolebindings",
            {"roleRef": {"kind": "Role"}, "subjects": [{"kind": "ServiceAccount"}, {"kind": "Robot", "name": "r"}]},
            [
                'roleRef.kind: Unsupported value: "Role": supported values: "ClusterRole"',
                "subjects[0].namespace: Required value",
                'subjects[1].kind: Unsupported value: "Robot": supported values: "ServiceAccount", "User", "Group"',
                "subjects[0].name: Required value",
                "roleRef.name: Required value",
            ],
        ),
    ],
)
def test_errors_of_new_objects(resource: str, body: Object, expected: list[str]) -> None:
    assert errors_of(resource, body) == expected


def test_a_selector_that_cannot_be_understood_is_refused_twice() -> None:
    selector = {"matchExpressions": [{"key": "a", "operator": "Near"}]}
    found = errors_of("clusterroles", {"aggregationRule": {"clusterRoleSelectors": [selector]}})
    assert found[-1] == "aggregationRule.clusterRoleSelectors[0]: Invalid value: null: invalid label selector."
    assert len(found) == 2


def test_what_a_binding_grants_never_changes() -> None:
    old = {"roleRef": REF}
    assert errors_of("rolebindings", {"roleRef": REF, "subjects": [{"kind": "Group", "name": "g"}]}, old) == []
    assert errors_of("rolebindings", {"roleRef": {**REF, "name": "other"}}, old) == [
        'roleRef: Invalid value: {"APIGroup":"rbac.authorization.k8s.io","Kind":"ClusterRole","Name":"other"}: '
        "field is immutable"
    ]
    nobody = {"roleRef": {**REF, "name": ""}, "subjects": [{"kind": "X", "name": "g"}]}
    assert [error.partition(":")[0] for error in errors_of("rolebindings", nobody, old)] == [
        "roleRef.name",
        "subjects[0].kind",
        "roleRef",
    ]


def test_groups_of_references_and_subjects_are_filled_in() -> None:
    body = {"roleRef": {"kind": "Role", "name": "r"}, "subjects": [{"kind": "User"}, {"kind": "ServiceAccount"}]}
    obj = made("rolebindings", body)
    assert obj["roleRef"]["apiGroup"] == "rbac.authorization.k8s.io"
    assert [subject.get("apiGroup") for subject in obj["subjects"]] == ["rbac.authorization.k8s.io", None]


def test_columns_of_bindings_list_subjects_by_kind() -> None:
    subjects = [
        {"kind": "User", "name": "u"},
        {"kind": "User", "name": "v"},
        {"kind": "Group", "name": "g"},
        {"kind": "ServiceAccount", "name": "s", "namespace": "n"},
    ]
    obj = made("rolebindings", {"metadata": {"name": "b"}, "roleRef": REF, "subjects": subjects})
    cells = {column.name: column.cell(obj) for column in STRATEGIES["rolebindings"].columns if column.name != "Age"}
    assert cells == {"Name": "b", "Role": "ClusterRole/r", "Users": "u, v", "Groups": "g", "ServiceAccounts": "n/s"}


def test_names_are_path_segments_even_before_a_generated_ending() -> None:
    assert STRATEGIES["roles"].validate_name("system:a", False) == []
    assert STRATEGIES["roles"].validate_name("a/", True) == ["may not contain '/'"]
