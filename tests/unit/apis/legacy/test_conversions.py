"""Forms of one object in an old version and in the one it is kept in."""

from __future__ import annotations

from typing import Any

import pytest

from pilothouse.apis.legacy.apiextensions import check_definition, default_definition
from pilothouse.apis.legacy.certificates import signer_of
from pilothouse.apis.legacy.flowcontrol import default_nominal
from pilothouse.apis.legacy.older import converters_of
from pilothouse.apis.resources import Resource, table
from pilothouse.machinery.gvk import GroupVersion

NO_SELECTOR = "pdb.kubernetes.io/deprecated-v1beta1-empty-selector-match"
MEANT = "flowcontrol.k8s.io/v1beta3-preserve-zero-concurrency-shares"
RBAC = "rbac.authorization.k8s.io"


def row(version: str, name: str) -> Resource:
    group, _, version = version.rpartition("/")
    return next(row for row in table()[GroupVersion(group, version)].resources if row.name == name)


def part(obj: Any, path: str) -> Any:
    for step in path.split("."):
        obj = obj[int(step)] if isinstance(obj, list) else obj.get(step)
        if obj is None:
            return None
    return obj


CASES = [
    (
        "extensions/v1beta1 ingresses",
        {"spec": {"backend": {"serviceName": "s", "servicePort": "http"}}},
        ("spec.defaultBackend", {"service": {"name": "s", "port": {"name": "http"}}}),
    ),
    (
        f"{RBAC}/v1alpha1 rolebindings",
        {"subjects": [{"kind": "User", "name": "u", "apiVersion": f"{RBAC}/v1alpha1"}], "roleRef": {}},
        ("subjects.0", {"kind": "User", "name": "u", "apiGroup": RBAC}),
    ),
    (
        "policy/v1beta1 poddisruptionbudgets",
        {"spec": {"selector": {}}},
        ("spec.selector", {"matchExpressions": [{"key": NO_SELECTOR, "operator": "Exists"}]}),
    ),
    (
        "node.k8s.io/v1alpha1 runtimeclasses",
        {"spec": {"runtimeHandler": "runc", "overhead": {"podFixed": {"cpu": "1"}}}},
        ("handler", "runc"),
    ),
    (
        "flowcontrol.apiserver.k8s.io/v1beta2 prioritylevelconfigurations",
        {"spec": {"type": "Limited", "limited": {"assuredConcurrencyShares": 7, "limitResponse": {"type": "Reject"}}}},
        ("spec.limited.nominalConcurrencyShares", 7),
    ),
    (
        "autoscaling/v2beta1 horizontalpodautoscalers",
        {
            "spec": {
                "scaleTargetRef": {"kind": "Deployment", "name": "d"},
                "maxReplicas": 3,
                "metrics": [{"type": "Resource", "resource": {"name": "cpu", "targetAverageUtilization": 60}}],
            }
        },
        ("spec.metrics.0.resource.target", {"type": "Utilization", "averageUtilization": 60}),
    ),
    (
        "discovery.k8s.io/v1beta1 endpointslices",
        {
            "addressType": "IPv4",
            "endpoints": [{"addresses": ["1.2.3.4"], "topology": {"topology.kubernetes.io/zone": "z"}}],
        },
        ("endpoints.0.zone", "z"),
    ),
    (
        "extensions/v1beta1 deployments",
        {"spec": {"template": {}, "rollbackTo": {"revision": 4}}},
        ("metadata.annotations", {"deprecated.deployment.rollback.to": "4"}),
    ),
    (
        "extensions/v1beta1 daemonsets",
        {"spec": {"template": {}, "templateGeneration": 4}},
        ("metadata.annotations", {"deprecated.daemonset.template.generation": "4"}),
    ),
]


@pytest.mark.parametrize(("where", "old", "expected"), CASES, ids=[case[0] for case in CASES])
def test_there_and_back(where: str, old: dict[str, Any], expected: tuple[str, Any]) -> None:
    to_hub, from_hub = converters_of(row(*where.split()))
    assert to_hub is not None and from_hub is not None
    kept = to_hub({"metadata": {"name": "a"}, **old})
    assert part(kept, expected[0]) == expected[1]
    shown = from_hub(kept)
    for name, value in old.items():
        _assert_has(shown[name], value)


def _assert_has(shown: Any, given: Any) -> None:
    if isinstance(given, dict):
        for name, value in given.items():
            if value != {} or name == "selector":
                _assert_has(shown[name], value)
    elif isinstance(given, list):
        assert len(shown) == len(given)
        for one, other in zip(shown, given, strict=True):
            _assert_has(one, other)
    else:
        assert shown == given


def test_everybody_was_a_user_once() -> None:
    to_hub, _ = converters_of(row(f"{RBAC}/v1alpha1", "clusterrolebindings"))
    assert to_hub is not None
    kept = to_hub({"metadata": {}, "subjects": [{"kind": "User", "name": "*"}], "roleRef": {}})
    assert kept["subjects"] == [{"kind": "Group", "name": "system:authenticated", "apiGroup": RBAC}]


def test_no_shares_must_be_meant() -> None:
    plain: dict[str, Any] = {"metadata": {}, "spec": {"limited": {"nominalConcurrencyShares": 0}}}
    default_nominal(plain)
    assert plain["spec"]["limited"]["nominalConcurrencyShares"] == 30
    meant: dict[str, Any] = {"metadata": {"annotations": {MEANT: ""}}, "spec": {"limited": {}}}
    default_nominal(meant)
    assert "nominalConcurrencyShares" not in meant["spec"]["limited"]


def test_requests_that_are_none_have_the_old_signer() -> None:
    assert signer_of(b"nothing", ["client auth"]) == "kubernetes.io/legacy-unknown"


def test_definitions_say_things_once() -> None:
    schema = {"openAPIV3Schema": {"type": "object"}}
    version = {"name": "v1", "served": True, "storage": True, "schema": schema}
    obj: dict[str, Any] = {"spec": {"versions": [version], "validation": schema, "names": {}}}
    default_definition(obj)
    assert obj["spec"]["version"] == "v1"
    assert [error.field for error in check_definition(obj)] == ["spec.validation", "spec.versions"]
    obj["spec"]["version"] = "v2"
    assert check_definition(obj)[0].field == "spec.version"
