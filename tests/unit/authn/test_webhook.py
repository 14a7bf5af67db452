import pytest

from pilothouse.authn.authenticator import InvalidCredentials
from pilothouse.authn.webhook import TokenWebhook
from pilothouse.authn.webhook_calls import WebhookFailed, call
from pilothouse.machinery.user import User


class Service:
    """Plays back answers; an exception is raised."""

    def __init__(self, *answers):
        self.answers = list(answers)
        self.bodies = []

    async def __call__(self, body):
        self.bodies.append(body)
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer


REVIEW = {"kind": "TokenReview", "apiVersion": "authentication.k8s.io/v1"}
ALICE = {"username": "alice", "uid": "1", "groups": ["a"], "extra": {"k": ["v"]}}


async def test_review_of_a_known_token():
    service = Service({"status": {"authenticated": True, "user": ALICE, "audiences": ["b", "c"]}})
    found = await TokenWebhook(service, "v1beta1", ["api"]).authenticate_token("t", ("a", "b"))
    assert (found.user, found.audiences) == (User("alice", "1", ("a",), {"k": ("v",)}), ("b",))
    body = service.bodies[0]
    assert (body["apiVersion"], body["kind"]) == ("authentication.k8s.io/v1beta1", "TokenReview")
    assert body["spec"] == {"token": "t", "audiences": ["a", "b"]}


@pytest.mark.parametrize(
    ("status", "asked", "audiences"),
    [
        ({"authenticated": True, "user": ALICE}, ("api",), ("api",)),
        ({"authenticated": True, "user": ALICE}, ("x",), None),
        ({"authenticated": True, "user": ALICE, "audiences": ["y"]}, ("x",), None),
        ({"authenticated": True, "user": ALICE}, (), ()),
        ({"authenticated": False}, (), None),
        ({}, (), None),
    ],
)
async def test_audiences(status, asked, audiences):
    found = await TokenWebhook(Service({"status": status}), "v1", ["api"]).authenticate_token("t", asked)
    assert (None if found is None else found.audiences) == audiences


@pytest.mark.parametrize("answer", [{"status": {"error": "bad token"}}, WebhookFailed("bad token")])
async def test_errors_refuse(answer):
    with pytest.raises(InvalidCredentials, match="bad token"):
        await TokenWebhook(Service(answer), "v1").authenticate_token("t", ())


def test_versions():
    with pytest.raises(ValueError, match='unsupported authentication webhook version "v2"'):
        TokenWebhook(Service(), "v2")


async def test_retries_with_growing_pauses():
    pauses = []

    async def sleep(seconds):
        pauses.append(round(seconds, 4))

    busy = WebhookFailed("busy", retry=True)
    assert await call(Service(busy, busy, {"status": {"error": "e"}}), REVIEW, sleep, lambda: 0.5) == {
        "error": "e",
        "user": {},
    }
    assert pauses == [0.55, 0.825]
    with pytest.raises(WebhookFailed, match="busy"):
        await call(Service(*[busy] * 5), {}, sleep, lambda: 0.0)
    service = Service(WebhookFailed("no"), {})
    with pytest.raises(WebhookFailed, match="no"):
        await call(service, {}, sleep)
    assert len(service.bodies) == 1


@pytest.mark.parametrize(
    "answer",
    [
        {"status": {"authenticated": "true", "user": ALICE}},
        {"status": {"authenticated": 1, "user": ALICE}},
        {"status": {"authenticated": True, "user": {"username": 5}}},
        {"status": {"authenticated": True, "user": {"username": "a", "groups": "system:masters"}}},
        {"status": {"authenticated": True, "user": {"username": "a", "groups": [["system:masters"]]}}},
        {"status": {"authenticated": True, "user": {"username": "a", "extra": {"k": "v"}}}},
        {"status": {"authenticated": True, "user": ALICE, "audiences": "api"}},
        {"status": [True]},
        {"kind": "SubjectAccessReview", "status": {"authenticated": True, "user": ALICE}},
        {"apiVersion": "authentication.k8s.io/v1beta1", "status": {"authenticated": True, "user": ALICE}},
    ],
)
async def test_answers_of_another_shape_prove_nothing(answer):
    with pytest.raises(InvalidCredentials, match="the webhook's answer"):
        await TokenWebhook(Service(answer), "v1", ["api"]).authenticate_token("t", ("api",))
