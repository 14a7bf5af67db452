from __future__ import annotations

import pytest

from pilothouse.openapi.naming import article, identifier, model_name, operation_id_and_tag


@pytest.mark.parametrize(
    ("type_name", "model"),
    [
        ("core.v1.Pod", "io.k8s.api.core.v1.Pod"),
        ("meta.v1.ObjectMeta", "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"),
        ("apiregistration.v1.APIService", "io.k8s.kube-aggregator.pkg.apis.apiregistration.v1.APIService"),
        (
            "apiextensions.v1.JSONSchemaProps",
            "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaProps",
        ),
    ],
)
def test_model_names(type_name: str, model: str) -> None:
    assert model_name(type_name) == model


@pytest.mark.parametrize(
    ("text", "capitalize", "expected"),
    [
        ("rbac.authorization", True, "RbacAuthorization"),
        ("v1beta1", False, "v1beta1"),
        (".well-known", False, "WellKnown"),
    ],
)
def test_identifiers(text: str, capitalize: bool, expected: str) -> None:
    assert identifier(text, capitalize) == expected


@pytest.mark.parametrize(
    ("operation", "path", "identity", "tag"),
    [
        ("createNamespacedPod", "/api/v1/namespaces/{namespace}/pods", "createCoreV1NamespacedPod", "core_v1"),
        ("deletecollectionNode", "/api/v1/nodes", "deleteCoreV1CollectionNode", "core_v1"),
        ("getAPIGroup", "/apis/apps/", "getAppsAPIGroup", "apps"),
        ("getAPIVersions", "/apis/", "getAPIVersions", "apis"),
        ("getAPIVersions", "/api/", "getCoreAPIVersions", "core"),
        ("getCodeVersion", "/version/", "getCodeVersion", "version"),
        (
            "watchNodeList",
            "/apis/internal.apiserver.k8s.io/v1alpha1/x",
            "watchInternalApiserverV1alpha1NodeList",
            "internalApiserver_v1alpha1",
        ),
        ("logFileHandler", "/logs/{logpath}", "logFileHandler", "logs"),
    ],
)
def test_operation_ids(operation: str, path: str, identity: str, tag: str) -> None:
    assert operation_id_and_tag(operation, path) == (identity, tag)


@pytest.mark.parametrize(
    ("noun", "expected"), [("Pod", " a "), ("Ingress", " an "), ("Endpoints", " "), ("StorageClass", " a ")]
)
def test_articles(noun: str, expected: str) -> None:
    assert article(noun) == expected
