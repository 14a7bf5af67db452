"""The kinds that ask who somebody is: pure functions of the posted object, as in ``authz.reviews``."""

from __future__ import annotations

from typing import Protocol

from pilothouse.authn.authenticator import Authenticated, InvalidCredentials, add_authenticated_group
from pilothouse.machinery import errors
from pilothouse.machinery.objects import Object
from pilothouse.machinery.user import ALL_UNAUTHENTICATED, ANONYMOUS, User


class HeaderAuthenticator(Protocol):
    """Authenticates the value of an Authorization header for given audiences (``authn.bearer.Bearer`` does)."""

    async def authenticate_header(
        self, header: bytes, audiences: tuple[str, ...]
    ) -> tuple[Authenticated | None, float]:
        """The identity, None without a token; raises InvalidCredentials."""
        ...


def review_self(review: Object, user: User, now: str) -> Object:
    """Answer a SelfSubjectReview; ``now`` is the time in RFC 3339."""
    return {**_head(review), "metadata": {"creationTimestamp": now}, "status": {"userInfo": user.as_info()}}


def validate_token_review(review: Object) -> None:
    """Raise StatusError 400 for a TokenReview without a token."""
    if not (review.get("spec") or {}).get("token"):
        raise errors.bad_request("token is required for TokenReview in authentication")


async def review_token(
    review: Object, tokens: HeaderAuthenticator, api_audiences: tuple[str, ...], *, anonymous: bool
) -> Object:
    """Answer a validated TokenReview; ``anonymous`` says whether requests without a token are let in."""
    spec = review["spec"]
    audiences = tuple(spec.get("audiences") or ()) or api_audiences
    try:
        found, _ = await tokens.authenticate_header(f"Bearer {spec['token']}".encode(), audiences)
    except InvalidCredentials as refusal:
        return {**review, "status": {"user": {}, "error": str(refusal)}}
    if found is None and anonymous:
        # A "token" of white space is no token.
        found = Authenticated(User(ANONYMOUS, groups=(ALL_UNAUTHENTICATED,)), audiences)
    if found is None:
        return {**review, "status": {"user": {}}}
    found = add_authenticated_group(found)
    if audiences and frozenset(found.audiences).isdisjoint(audiences):
        raise errors.internal_error("error validating audiences")
    status: Object = {"authenticated": True, "user": found.user.as_info()}
    if found.audiences:
        status["audiences"] = list(found.audiences)
    return {**review, "status": status}


def _head(review: Object) -> Object:
    return {key: value for key, value in review.items() if key in ("kind", "apiVersion")}
