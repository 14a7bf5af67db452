"""Specs that are not judged again."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import pytest

from pilothouse.apis.core.pod.known_specs import KnownSpecs, fingerprint
from pilothouse.apis.core.pod.strategy import PodStrategy
from pilothouse.apis.strategy import Context
from pilothouse.machinery.schema.emptied import Emptied

TOKEN = {"sources": [{"serviceAccountToken": {"path": "token", "expirationSeconds": 3607}}], "defaultMode": 420}


def pod(name: str = "kube-api-access-abcde", **spec: Any) -> dict[str, Any]:
    made: dict[str, Any] = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "web-1", "namespace": "default"},
        "spec": {
            "serviceAccountName": "default",
            "containers": [
                {"name": "main", "image": "nginx", "volumeMounts": [{"name": name, "mountPath": "/var/run/secrets"}]}
            ],
            "volumes": [{"name": name, "projected": deepcopy(TOKEN)}],
            **spec,
        },
    }
    PodStrategy().default(made)
    made["spec"]["serviceAccount"] = made["spec"]["serviceAccountName"]
    return made


def verdict(strategy: PodStrategy, obj: dict[str, Any]) -> tuple[list[str], list[str]]:
    context = Context(namespace="default", now="2026-01-01T00:00:00Z")
    errs = [str(error) for error in strategy.validate(context, obj)]
    return errs, [] if errs else strategy.warnings_on_create(context, obj)


def test_pods_of_one_template_have_one_fingerprint_whatever_name_was_drawn() -> None:
    assert fingerprint(pod("kube-api-access-abcde")) == fingerprint(pod("kube-api-access-x1y2z"))


@pytest.mark.parametrize("name", ["kube-api-access-ABCDE", "kube-api-access-abcdef", "kube-api-access-", "data", ""])
def test_names_of_any_other_form_count(name: str) -> None:
    assert fingerprint(pod(name)) != fingerprint(pod("kube-api-access-abcde"))


def test_a_blank_is_nothing_that_a_client_can_write() -> None:
    assert fingerprint(pod("\0")) != fingerprint(pod())


@pytest.mark.parametrize(
    "spec",
    [
        {"resourceClaims": [{"name": "gpu"}]},
        {"volumes": [{"name": "scratch", "ephemeral": {"volumeClaimTemplate": {"spec": {}}}}]},
        {"nodeSelector": {str(number): "x" for number in range(4000)}},
    ],
    ids=["claims named after the pod", "volumes named after the pod", "large"],
)
def test_specs_that_are_judged_each_time(spec: dict[str, Any]) -> None:
    assert fingerprint(pod(**spec)) is None


def test_annotations_and_values_given_as_empty_are_judged_each_time() -> None:
    annotated = pod()
    annotated["metadata"]["annotations"] = {"a": "b"}
    assert fingerprint(annotated) is None
    assert fingerprint(Emptied(pod(), {"status": {}})) is None


def test_the_verdict_of_a_known_spec_is_that_of_a_strategy_that_knows_none() -> None:
    knowing = PodStrategy()
    cases = [
        pod(),
        pod("kube-api-access-x1y2z"),
        pod(volumes=[]),  # its mount has no volume
        pod(volumes=[{"name": "kube-api-access-abcde", "emptyDir": {}}] * 2),
        pod(restartPolicy="Sometimes"),
        pod(nodeSelector={"beta.kubernetes.io/os": "linux"}),  # a warning
        pod(hostAliases=[{"ip": "010.0.0.1", "hostnames": ["a"]}]),
        pod("kube-api-access-ABCDE"),
    ]
    for _ in range(2):
        for case in cases:
            assert verdict(knowing, deepcopy(case)) == verdict(PodStrategy(), deepcopy(case))
    assert verdict(knowing, pod()) == ([], [])


def test_the_first_is_forgotten_for_the_newest() -> None:
    known = KnownSpecs()
    for number in range(300):
        known.add(b"%d" % number)
    assert b"0" not in known
    assert b"299" in known
