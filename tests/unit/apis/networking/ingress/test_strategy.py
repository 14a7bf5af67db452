"""Ingresses."""

from __future__ import annotations

from typing import Any

import pytest

GROUP = "networking.k8s.io/v1"


BACKEND: dict[str, Any] = {"service": {"name": "s", "port": {"number": 80}}}


def rule(**fields: Any) -> dict[str, Any]:
    path = {"pathType": "Prefix", "path": "/", "backend": BACKEND, **fields}
    return {"spec": {"rules": [{"http": {"paths": [path]}}]}}


@pytest.mark.parametrize(
    ("body", "wanted"),
    [
        (rule(), []),
        ({"spec": {}}, ["spec: Invalid value: null: either `defaultBackend` or `rules` must be specified"]),
        (rule(path="x"), ['spec.rules[0].http.paths[0].path: Invalid value: "x": must be an absolute path']),
        (rule(path="", pathType="ImplementationSpecific"), []),
        (
            rule(path="/a//b/.."),
            [
                "spec.rules[0].http.paths[0].path: Invalid value: \"/a//b/..\": must not contain '//'",
                "spec.rules[0].http.paths[0].path: Invalid value: \"/a//b/..\": cannot end with '/..'",
            ],
        ),
        (
            rule(pathType="Odd"),
            [
                'spec.rules[0].http.paths[0].pathType: Unsupported value: "Odd": '
                'supported values: "Exact", "ImplementationSpecific", "Prefix"'
            ],
        ),
        (rule(pathType=None), ["spec.rules[0].http.paths[0].pathType: Required value: pathType must be specified"]),
        (
            {"spec": {"defaultBackend": {"service": {"name": "s"}}}},
            ["spec.defaultBackend: Required value: port name or number is required"],
        ),
        (
            {"spec": {"defaultBackend": {}}},
            ['spec.defaultBackend: Invalid value: "": resource or service backend is required'],
        ),
        (
            {"spec": {"defaultBackend": BACKEND, "rules": [{"host": "10.0.0.1"}]}},
            ['spec.rules[0].host: Invalid value: "10.0.0.1": must be a DNS name, not an IP address'],
        ),
        ({"spec": {"defaultBackend": BACKEND, "tls": [{"hosts": ["*.a.b"], "secretName": "s"}]}}, []),
    ],
)
def test_ingress_errors(kind: Any, body: dict[str, Any], wanted: list[str]) -> None:
    assert kind(GROUP, "ingresses").errors(body) == wanted


def test_ingress_generations_rows_and_warnings(kind: Any) -> None:
    ingresses = kind(GROUP, "ingresses")
    hosts = [{"host": f"h{at}.a"} for at in range(5)]
    stored = ingresses.create(
        {
            "metadata": {"name": "a", "annotations": {"kubernetes.io/ingress.class": "x"}},
            "spec": {"defaultBackend": BACKEND, "rules": hosts},
        }
    )
    assert stored["metadata"]["generation"] == 1
    warning = "annotation \"kubernetes.io/ingress.class\" is deprecated, please use 'spec.ingressClassName' instead"
    assert ingresses.warnings == [warning]
    assert ingresses.row(stored)[1:5] == ["<none>", "h0.a,h1.a,h2.a + 2 more...", "", "80"]
    assert ingresses.update(stored, {"spec": {"rules": hosts[:1]}})["metadata"]["generation"] == 2
    assert ingresses.update(stored, {"metadata": {"labels": {"a": "b"}}})["metadata"]["generation"] == 1
    clash = {
        "metadata": {"name": "a", "annotations": {"kubernetes.io/ingress.class": "x"}},
        "spec": {"defaultBackend": BACKEND, "ingressClassName": "y"},
    }
    why = "must match `ingressClassName` when both are specified"
    assert ingresses.errors(clash) == [f'annotations.kubernetes.io/ingress.class: Invalid value: "x": {why}']


def test_wildcard_rules_are_not_judged_again_where_one_named_a_service_by_a_digit(kind: Any) -> None:
    ingresses = kind(GROUP, "ingresses")

    def body(name: str, path: str = "/") -> dict[str, Any]:
        backend = {"service": {"name": name, "port": {"number": 80}}}
        paths = [{"pathType": "Prefix", "path": path, "backend": backend}]
        return {"spec": {"rules": [{"host": "*.a.b", "http": {"paths": paths}}]}}

    assert ingresses.errors(body("1s", "x"), ingresses.create(body("1s"))) == []
    assert len(ingresses.errors(body("s", "x"), ingresses.create(body("s")))) == 1
