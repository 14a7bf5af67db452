import contextlib

import pytest

from pilothouse.authn.webhook_calls import WebhookFailed
from pilothouse.authz.attributes import Attributes
from pilothouse.authz.authorizer import AuthorizationFailed, Decision
from pilothouse.authz.metrics import WebhookMetrics
from pilothouse.authz.webhook import WebhookAuthorizer
from pilothouse.machinery import fields, labels
from pilothouse.machinery.metrics import render
from pilothouse.machinery.user import User

ALICE = User("alice", "1", ("a",), {"k": ("v",)})


class Service:
    """Always the same answer; counts the questions."""

    def __init__(self, status):
        self.status = status
        self.bodies = []

    async def __call__(self, body):
        self.bodies.append(body)
        if isinstance(self.status, Exception):
            raise self.status
        return {"status": self.status}


def question(**more):
    return Attributes(ALICE, "list", resource="pods", namespace="ns", version="v1", **more)


@pytest.mark.parametrize(
    ("status", "answer"),
    [
        ({"allowed": True, "reason": "r"}, (Decision.ALLOW, "r")),
        ({"allowed": False, "reason": "r"}, (Decision.NO_OPINION, "r")),
        ({"denied": True}, (Decision.DENY, "")),
        ({}, (Decision.NO_OPINION, "")),
    ],
)
async def test_answers(status, answer):
    assert await WebhookAuthorizer(Service(status), "v1").authorize(question()) == answer


async def test_contradiction_is_a_denial():
    with pytest.raises(AuthorizationFailed, match="both allow and deny") as caught:
        await WebhookAuthorizer(Service({"allowed": True, "denied": True}), "v1").authorize(question())
    assert caught.value.decision is Decision.DENY


@pytest.mark.parametrize("decision", [Decision.DENY, Decision.NO_OPINION])
async def test_failure_policy(decision):
    authorizer = WebhookAuthorizer(Service(WebhookFailed("down")), "v1", decision_on_error=decision)
    with pytest.raises(AuthorizationFailed, match="down") as caught:
        await authorizer.authorize(question())
    assert caught.value.decision is decision


async def test_what_is_asked():
    service = Service({})
    selectors = {
        "field_selector": (fields.Requirement("spec.nodeName", "=", "n"), fields.Requirement("a", "!=", "b")),
        "label_selector": labels.parse("x in (1),!y,z>3").requirements,
    }
    await WebhookAuthorizer(service, "v1").authorize(question(**selectors))
    await WebhookAuthorizer(service, "v1beta1").authorize(Attributes(ALICE, "get", resource_request=False, path="/x"))
    first, second = (body["spec"] for body in service.bodies)
    assert first == {
        "resourceAttributes": {
            "namespace": "ns", "verb": "list", "version": "v1", "resource": "pods",
            "fieldSelector": {"requirements": [
                {"key": "spec.nodeName", "operator": "In", "values": ["n"]},
                {"key": "a", "operator": "NotIn", "values": ["b"]}]},
            "labelSelector": {"requirements": [
                {"key": "x", "operator": "In", "values": ["1"]}, {"key": "y", "operator": "DoesNotExist"}]},
        },
        "user": "alice", "groups": ["a"], "extra": {"k": ["v"]}, "uid": "1",
    }  # fmt: skip
    assert second == {
        "nonResourceAttributes": {"path": "/x", "verb": "get"},
        "user": "alice", "group": ["a"], "extra": {"k": ["v"]}, "uid": "1",
    }  # fmt: skip
    versions = [body["apiVersion"] for body in service.bodies]
    assert versions == ["authorization.k8s.io/v1", "authorization.k8s.io/v1beta1"]


@pytest.mark.parametrize(("status", "seconds"), [({"allowed": True}, 300), ({"allowed": False}, 30)])
async def test_answers_are_remembered(status, seconds):
    service, now = Service(status), [0.0]
    authorizer = WebhookAuthorizer(service, "v1", clock=lambda: now[0])
    for moment, asked in ((0.0, 1), (seconds - 1.0, 1), (seconds + 0.0, 2)):
        now[0] = moment
        await authorizer.authorize(question())
        assert len(service.bodies) == asked
    await authorizer.authorize(question(name="x" * 10_001))
    await authorizer.authorize(question(name="x" * 10_001))
    assert len(service.bodies) == 4


def test_versions_and_rules():
    with pytest.raises(ValueError, match='unsupported webhook authorizer version "v3"'):
        WebhookAuthorizer(Service({}), "v3")
    rules = WebhookAuthorizer(Service({}), "v1").rules_for(ALICE, "ns")()
    assert (rules.incomplete, rules.error) == (True, "webhook authorizer does not support user rule resolution")


@pytest.mark.parametrize("status", [{"allowed": "true"}, {"allowed": 1}, {"allowed": True, "reason": 5}, [True]])
async def test_answers_of_another_shape_allow_nothing(status):
    with pytest.raises(AuthorizationFailed, match="cannot be used") as failure:
        await WebhookAuthorizer(Service(status), "v1", decision_on_error=Decision.DENY).authorize(question())
    assert failure.value.decision is Decision.DENY


async def test_calls_are_counted():
    metrics = WebhookMetrics()
    late = WebhookFailed("late", timed_out=True)
    for answer in ({"allowed": True}, WebhookFailed("down"), late):
        authorizer = WebhookAuthorizer(Service(answer), "v1", name="hook", metrics=metrics)
        with contextlib.suppress(AuthorizationFailed):
            await authorizer.authorize(question())
    page = render(metrics.instruments()).decode().splitlines()
    for result in ("success", "error", "timeout"):
        assert f'apiserver_authorization_webhook_evaluations_total{{name="hook",result="{result}"}} 1' in page
        assert f'apiserver_authorization_webhook_duration_seconds_count{{name="hook",result="{result}"}} 1' in page
    assert 'apiserver_authorization_webhook_evaluations_fail_open_total{name="hook",result="timeout"} 1' in page
