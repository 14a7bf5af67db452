"""What is asked and answered in one POST: who am I, is this token good, may somebody do this, give me a token.

Reviews are never stored. Each is read, tracked, admitted and validated like any created object, then answered with its
status filled in.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Final

from pilothouse.apis.strategy import Context, Object
from pilothouse.app.authentication import Authentication
from pilothouse.authn.token_request import check_names
from pilothouse.authz import reviews
from pilothouse.authz.authorizer import Authorizer, RuleResolver
from pilothouse.endpoints.admission import CREATE
from pilothouse.endpoints.input import read_object
from pilothouse.endpoints.installer import OwnVerbs
from pilothouse.endpoints.negotiation import Media, negotiate
from pilothouse.endpoints.request import APIRequest
from pilothouse.endpoints.responding import object_response
from pilothouse.endpoints.scope import Endpoint, EndpointVerb
from pilothouse.endpoints.writing import attributes_of
from pilothouse.machinery import errors
from pilothouse.machinery.field_manager import FieldManager, manager_of
from pilothouse.machinery.gvk import GroupResource, GroupVersionKind
from pilothouse.machinery.schema.emptied import without_notes
from pilothouse.machinery.times import now
from pilothouse.net.messages import Response
from pilothouse.registry.rest.before_create import ensure_namespace, wipe_system_fields

_AUTHENTICATION: Final = "authentication.k8s.io"
_AUTHORIZATION: Final = "authorization.k8s.io"
_TOKEN_SECONDS: Final = 3600
_ISSUED_CREDENTIAL: Final = "authentication.kubernetes.io/issued-credential-id"
_managers: dict[tuple[GroupVersionKind, str], FieldManager] = {}

Answer = Callable[["Review"], Awaitable[Object]]


class Review:
    """One posted review, past mutating admission."""

    __slots__ = ("_ctx", "_endpoint", "_media", "object", "request")

    def __init__(self, endpoint: Endpoint, request: APIRequest, ctx: Context, media: Media, obj: Object) -> None:
        self._endpoint, self._ctx, self._media = endpoint, ctx, media
        self.request, self.object = request, obj

    async def admit(self) -> None:
        """Let validating admission have its say."""
        admission = self._endpoint.admission
        if admission is not None and admission.handles(CREATE):
            await admission.validate(attributes_of(self._endpoint, self.request, self._ctx, CREATE, self.object, None))

    def respond(self, answer: Object) -> Response:
        """The answered review, as created."""
        for warning in self._ctx.warnings:
            self.request.warn(warning)
        head = {"kind": self._endpoint.kind.kind, "apiVersion": self._endpoint.api_version}
        return object_response(self._media, {**head, **answer}, 201)


async def read_review(
    endpoint: Endpoint, request: APIRequest, default: Callable[[Object], None] | None = None
) -> Review:
    """Read the posted object and bring it past mutating admission."""
    media = negotiate(request, endpoint.formats)
    obj, options = await read_object(request, endpoint.expected)
    obj = without_notes(obj)
    obj.pop("kind", None)
    obj.pop("apiVersion", None)
    if default is not None:
        default(obj)
    if request.audit is not None:
        request.audit.note_object({"kind": endpoint.kind.kind, "apiVersion": endpoint.api_version, **obj})
    ctx = endpoint.context(request)
    ctx.dry_run = options.dry_run
    wipe_system_fields(obj["metadata"])
    ensure_namespace(endpoint.resource, ctx, obj["metadata"])
    agent = request.headers.get(b"user-agent", b"").decode("latin-1")
    obj = _manager_for(endpoint).update(None, obj, manager_of(options.field_manager, agent), ctx.now)
    admission = endpoint.admission
    if admission is not None and admission.handles(CREATE):
        attributes = attributes_of(endpoint, request, ctx, CREATE, obj, None)
        await admission.admit(attributes)
        obj = attributes.object if attributes.object is not None else obj
    return Review(endpoint, request, ctx, media, obj)


def _manager_for(endpoint: Endpoint) -> FieldManager:
    key = (endpoint.kind, endpoint.subresource)
    manager = _managers.get(key)
    if manager is None:
        manager = FieldManager(endpoint.expected.struct, endpoint.kind, subresource=endpoint.subresource)
        _managers[key] = manager
    return manager


def review_verbs(authentication: Authentication, authorizer: Authorizer) -> OwnVerbs:
    """The verbs of all reviews and of token requests, by what they are installed at."""
    answers = ReviewAnswers(authentication, authorizer)
    posts = {
        (_AUTHENTICATION, "selfsubjectreviews", ""): _creating(answers.who_am_i),
        (_AUTHENTICATION, "tokenreviews", ""): _creating(answers.review_token),
        (_AUTHORIZATION, "subjectaccessreviews", ""): _creating(answers.review_access),
        (_AUTHORIZATION, "selfsubjectaccessreviews", ""): _creating(answers.review_own_access),
        (_AUTHORIZATION, "localsubjectaccessreviews", ""): _creating(answers.review_local_access),
        (_AUTHORIZATION, "selfsubjectrulesreviews", ""): _creating(answers.review_own_rules),
    }
    if authentication.token_requests is not None:
        posts["", "serviceaccounts", "token"] = _creating(answers.issue_token, _default_token_request)
    return {where: {"create": verb} for where, verb in posts.items()}


def _creating(answer: Answer, default: Callable[[Object], None] | None = None) -> EndpointVerb:
    async def create(endpoint: Endpoint, request: APIRequest) -> Response:
        review = await read_review(endpoint, request, default)
        return review.respond(await answer(review))

    return create


def _default_token_request(obj: Object) -> None:
    spec = obj.setdefault("spec", {})
    if spec.get("expirationSeconds") is None:
        spec["expirationSeconds"] = _TOKEN_SECONDS


class ReviewAnswers:
    """How each kind of review is answered."""

    def __init__(self, authentication: Authentication, authorizer: Authorizer) -> None:
        self._authentication = authentication
        self._authorizer = authorizer

    async def who_am_i(self, review: Review) -> Object:
        """SelfSubjectReview."""
        await review.admit()
        return reviews.review_self({}, review.request.user, now())

    async def review_token(self, review: Review) -> Object:
        """TokenReview."""
        reviews.validate_token_review(review.object)
        await review.admit()
        built = self._authentication.built
        if built.bearer is None:
            return {**review.object, "status": {"user": {}, "error": "invalid bearer token"}}
        return await reviews.review_token(
            review.object, built.bearer, built.audiences, anonymous=self._authentication.anonymous
        )

    async def review_access(self, review: Review) -> Object:
        """SubjectAccessReview."""
        reviews.validate_subject_access_review(review.object)
        await review.admit()
        return await reviews.review_access(review.object, self._authorizer)

    async def review_own_access(self, review: Review) -> Object:
        """SelfSubjectAccessReview."""
        reviews.validate_self_subject_access_review(review.object)
        await review.admit()
        return await reviews.review_access(review.object, self._authorizer, review.request.user)

    async def review_local_access(self, review: Review) -> Object:
        """LocalSubjectAccessReview."""
        reviews.validate_local_subject_access_review(review.object, review.request.info.namespace)
        await review.admit()
        return await reviews.review_access(review.object, self._authorizer)

    async def review_own_rules(self, review: Review) -> Object:
        """SelfSubjectRulesReview."""
        await review.admit()
        assert isinstance(self._authorizer, RuleResolver)
        return reviews.review_rules(review.object, self._authorizer, review.request.user)

    async def issue_token(self, review: Review) -> Object:
        """TokenRequest."""
        requests = self._authentication.token_requests
        assert requests is not None
        info = review.request.info
        check_names(review.object.get("metadata") or {}, info.name, info.namespace)
        account = await self._authentication.objects.get("serviceaccounts", info.namespace, info.name)
        if account is None:
            raise errors.not_found(GroupResource("", "serviceaccounts"), info.name)
        requests.complete(review.object, account, info.name)
        await review.admit()
        issued = await requests.issue(review.object, account)
        if review.request.audit is not None:
            review.request.audit.annotate(_ISSUED_CREDENTIAL, issued.credential_id)
        for warning in issued.warnings:
            review.request.warn(warning)
        return issued.request
