"""Reviews about hundreds of thousands of groups and audiences, which are gone through for each question."""

from __future__ import annotations

from typing import Any

import pytest

ACCOUNTS = "/api/v1/namespaces/default/serviceaccounts"
COUNT = 400_000
WAIT = 0.02
"""What one in a hundred may wait for here: a few calls that go through all of them."""


@pytest.fixture(scope="module")
def token(victim: Any) -> str:
    account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "reviewed"}}
    assert victim.call("POST", ACCOUNTS, account).status == 201
    asked = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}
    made: str = victim.call("POST", f"{ACCOUNTS}/reviewed/token", asked).json["status"]["token"]
    return made


@pytest.mark.parametrize(
    ("what", "audiences"),
    [("the same", ["a"] * COUNT), ("different", [f"a{number}" for number in range(COUNT // 3)])],
)
def test_a_token_for_many_audiences(victim: Any, token: str, what: str, audiences: list[str]) -> None:
    review = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview"}
    body = {**review, "spec": {"token": token, "audiences": audiences}}
    with victim.attacked(f"a token for many audiences, {what}", allowance=192 << 20, longest_wait=WAIT):
        for _ in range(3):
            answer = victim.call("POST", "/apis/authentication.k8s.io/v1/tokenreviews", body)
            assert "is invalid for the target audiences" in answer.json["status"]["error"]


def test_a_subject_in_one_group_many_times(victim: Any) -> None:
    review = {"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview"}
    attributes = {"resource": "pods", "verb": "get"}
    groups = ["system:authenticated"] * (COUNT // 4)
    body = {**review, "spec": {"user": "u", "groups": groups, "resourceAttributes": attributes}}
    with victim.attacked("a subject in one group many times", longest_wait=WAIT):
        for number in range(3):
            body["spec"]["user"] = f"u{number}"
            answer = victim.call("POST", "/apis/authorization.k8s.io/v1/subjectaccessreviews", body)
            assert answer.json["status"]["allowed"] is False
