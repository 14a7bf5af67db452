import pytest

from pilothouse.authn import reviews
from pilothouse.authn.authenticator import Authenticated, InvalidCredentials
from pilothouse.machinery.errors import StatusError
from pilothouse.machinery.user import User


def test_self_subject_review():
    review = {"kind": "SelfSubjectReview", "apiVersion": "v1", "status": {"userInfo": {"username": "root"}}}
    user = User("a", "1", ("g",), {"k": ("v",)})
    assert reviews.review_self(review, user, "T") == {
        "kind": "SelfSubjectReview",
        "apiVersion": "v1",
        "metadata": {"creationTimestamp": "T"},
        "status": {"userInfo": {"username": "a", "uid": "1", "groups": ["g"], "extra": {"k": ["v"]}}},
    }


ALICE = {"username": "alice", "groups": ["system:authenticated"]}


class Tokens:
    async def authenticate_header(self, header, audiences):
        if header.strip() == b"Bearer":
            return None, 0.0
        if header != b"Bearer good":
            raise InvalidCredentials("invalid bearer token", "because")
        return Authenticated(User("alice"), audiences[:1]), 1.0


@pytest.mark.parametrize(
    ("spec", "status"),
    [
        (
            {"token": "good"},
            {"authenticated": True, "user": ALICE, "audiences": ["api"]},
        ),
        (
            {"token": "good", "audiences": ["x", "y"]},
            {"authenticated": True, "user": ALICE, "audiences": ["x"]},
        ),
        ({"token": "bad"}, {"user": {}, "error": "[invalid bearer token, because]"}),
        (
            {"token": " "},
            {"authenticated": True, "user": {"username": "system:anonymous", "groups": ["system:unauthenticated"]},
             "audiences": ["api"]},
        ),
    ],
)  # fmt: skip
async def test_token_review(spec, status):
    answer = await reviews.review_token({"spec": spec}, Tokens(), ("api",), anonymous=True)
    assert answer == {"spec": spec, "status": status}


@pytest.mark.parametrize("review", [{}, {"spec": {}}, {"spec": {"token": ""}}])
def test_token_review_needs_a_token(review):
    with pytest.raises(StatusError) as caught:
        reviews.validate_token_review(review)
    assert (caught.value.code, caught.value.message) == (400, "token is required for TokenReview in authentication")
