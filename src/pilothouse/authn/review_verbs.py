"""The verbs of the reviews that ask who somebody is, and of requests for tokens."""

from __future__ import annotations

from typing import Final

from pilothouse.authn import reviews
from pilothouse.authn.authentication import Authentication
from pilothouse.authn.token_issuing import TokenIssuing
from pilothouse.authn.token_request import TokenRequests, check_names
from pilothouse.endpoints.installer import OwnVerbs
from pilothouse.endpoints.reviews import Answer, Review, answering
from pilothouse.machinery import errors
from pilothouse.machinery.gvk import GroupResource
from pilothouse.machinery.objects import Object
from pilothouse.machinery.times import now

_GROUP: Final = "authentication.k8s.io"
_TOKEN_SECONDS: Final = 3600
_ISSUED_CREDENTIAL: Final = "authentication.kubernetes.io/issued-credential-id"


def identity_review_verbs(authentication: Authentication) -> OwnVerbs:
    """SelfSubjectReview and TokenReview, by what they are installed at."""

    async def who_am_i(review: Review) -> Object:
        await review.validate()
        return reviews.review_self({}, review.request.user, now())

    async def review_token(review: Review) -> Object:
        await review.check(reviews.validate_token_review)
        await review.validate()
        built = authentication.built
        if built.bearer is None:
            return {**review.object, "status": {"user": {}, "error": "invalid bearer token"}}
        return await reviews.review_token(
            review.object, built.bearer, built.audiences, anonymous=authentication.anonymous
        )

    return {
        (_GROUP, "selfsubjectreviews", ""): {"create": answering(who_am_i)},
        (_GROUP, "tokenreviews", ""): {"create": answering(review_token)},
    }


def token_request_verbs(issuing: TokenIssuing) -> OwnVerbs:
    """The token subresource of service accounts; nothing where no tokens are issued."""
    if issuing.requests is None:
        return {}
    verb = answering(_issue_token(issuing, issuing.requests), _default_token_request, keeps_metadata=True)
    return {("", "serviceaccounts", "token"): {"create": verb}}


def _default_token_request(obj: Object) -> None:
    spec = obj.setdefault("spec", {})
    if spec.get("expirationSeconds") is None:
        spec["expirationSeconds"] = _TOKEN_SECONDS


def _issue_token(issuing: TokenIssuing, requests: TokenRequests) -> Answer:
    async def issue(review: Review) -> Object:
        info = review.request.info
        check_names(review.object.get("metadata") or {}, info.name, info.namespace)
        account = await issuing.objects.get("serviceaccounts", info.namespace, info.name)
        if account is None:
            raise errors.not_found(GroupResource("", "serviceaccounts"), info.name)
        requests.complete(review.object, account, info.name)
        await review.validate()
        issued = await requests.issue(review.object, account)
        if review.request.audit is not None:
            review.request.audit.annotate(_ISSUED_CREDENTIAL, issued.credential_id)
        for warning in issued.warnings:
            review.request.warn(warning)
        return issued.request

    return issue
