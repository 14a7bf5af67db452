"""The verbs of the reviews that ask who may do what."""

from __future__ import annotations

from typing import Final

from pilothouse.authz import reviews
from pilothouse.authz.authorizer import Authorizer, RuleResolver
from pilothouse.endpoints.installer import OwnVerbs
from pilothouse.endpoints.reviews import Review, answering
from pilothouse.machinery.objects import Object
from pilothouse.machinery.weights import weight_of_values

_GROUP: Final = "authorization.k8s.io"


def access_review_verbs(authorizer: Authorizer) -> OwnVerbs:
    """The verbs, by what they are installed at."""
    answers = AccessAnswers(authorizer)
    posts = {
        (_GROUP, "subjectaccessreviews", ""): answering(answers.review_access),
        (_GROUP, "selfsubjectaccessreviews", ""): answering(answers.review_own_access),
        (_GROUP, "localsubjectaccessreviews", ""): answering(answers.review_local_access),
        (_GROUP, "selfsubjectrulesreviews", ""): answering(answers.review_own_rules),
    }
    return {where: {"create": verb} for where, verb in posts.items()}


class AccessAnswers:
    """How each kind of review is answered."""

    def __init__(self, authorizer: Authorizer) -> None:
        self._authorizer = authorizer

    async def review_access(self, review: Review) -> Object:
        """SubjectAccessReview."""
        await review.check(reviews.validate_subject_access_review)
        await review.validate()
        return await reviews.review_access(review.object, self._authorizer, weight=review.request.weight)

    async def review_own_access(self, review: Review) -> Object:
        """SelfSubjectAccessReview."""
        await review.check(reviews.validate_self_subject_access_review)
        await review.validate()
        request = review.request
        return await reviews.review_access(review.object, self._authorizer, request.user, weight=request.weight)

    async def review_local_access(self, review: Review) -> Object:
        """LocalSubjectAccessReview."""
        await review.check(reviews.validate_local_subject_access_review, review.request.info.namespace)
        await review.validate()
        return await reviews.review_access(review.object, self._authorizer, weight=review.request.weight)

    async def review_own_rules(self, review: Review) -> Object:
        """SelfSubjectRulesReview."""
        await review.validate()
        assert isinstance(self._authorizer, RuleResolver)
        answer = await reviews.review_rules(review.object, self._authorizer, review.request.user)
        review.weight = weight_of_values(reviews.count_rules(answer))
        return answer
