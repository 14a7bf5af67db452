"""Puts the authenticators together in the order of kube-apiserver.

    front proxy → client certificate → bearer token → WebSocket bearer token → anonymous
    a token:  our own → token file → legacy service account → service account → bootstrap → OIDC → webhook, all cached

Takes plain values, not options; the HTTP clients and the reader of objects are injected. Files are read here once and
again by ``poll_files``, which the owner calls now and then off the event loop.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from pilothouse.authn.anonymous import Anonymous
from pilothouse.authn.authenticator import AudienceAgnostic, Authenticator, TokenAuthenticator, TokenUnion, Union
from pilothouse.authn.bearer import Bearer, WebSocketBearer
from pilothouse.authn.bootstrap_token import BootstrapTokens
from pilothouse.authn.certificate_chain import parse_authorities
from pilothouse.authn.client_certificate import ClientCertificate, VerifiedCertificates
from pilothouse.authn.external_signer import ExternalSigner
from pilothouse.authn.issuer_documents import Fetch
from pilothouse.authn.jose import ALGORITHMS, VerificationKey, load_public_keys
from pilothouse.authn.metrics import AuthenticationMetrics
from pilothouse.authn.request_header import RequestHeader
from pilothouse.authn.service_account import BoundTokens, LegacyTokens, ObjectGetter
from pilothouse.authn.token_cache import TokenCache
from pilothouse.authn.token_file import TokenFile
from pilothouse.authn.webhook import TokenWebhook
from pilothouse.authn.webhook_calls import Post
from pilothouse.machinery.watched_file import WatchedFile

if TYPE_CHECKING:
    from pilothouse.authn.authentication_configuration import TrustedIssuer


@dataclass(slots=True)
class FrontProxy:
    """The ``--requestheader-*`` flags."""

    client_ca_file: str
    allowed_names: Sequence[str] = ()
    username_headers: Sequence[str] = ()
    uid_headers: Sequence[str] = ()
    group_headers: Sequence[str] = ()
    extra_prefixes: Sequence[str] = ()


@dataclass(slots=True)
class Settings:
    """What to authenticate by; everything left out is off. ``api_audiences`` defaults to the issuers."""

    front_proxy: FrontProxy | None = None
    client_ca_file: str = ""
    token_file: str = ""
    service_account_key_files: Sequence[str] = ()
    # Takes the place of key files.
    external_signer: ExternalSigner | None = None
    service_account_issuers: Sequence[str] = ()
    service_account_lookup: bool = True
    api_audiences: Sequence[str] = ()
    bootstrap_tokens: bool = False
    oidc_issuers: Sequence[TrustedIssuer] = ()
    oidc_algorithms: Sequence[str] = ALGORITHMS
    token_webhook: Post | None = None
    token_webhook_version: str = "v1beta1"
    token_webhook_ttl: float = 120.0
    anonymous: bool = True
    anonymous_paths: Sequence[str] = ()
    own_tokens: Sequence[TokenAuthenticator] = ()
    """Knows tokens that parts of this process gave out; asked first."""
    token_success_ttl: float = 10.0
    token_failure_ttl: float = 0.0


@dataclass(slots=True)
class Authentication:
    """The authenticator of requests, and the parts of it that others need too."""

    authenticator: Union
    audiences: tuple[str, ...]
    # For TokenReview; None if no tokens are accepted.
    bearer: Bearer | None = None
    tokens: TokenCache | None = None
    files: list[WatchedFile[Any]] = field(default_factory=list)

    def poll_files(self) -> list[str]:
        """Re-read changed files; the paths of those that changed. What was remembered about tokens is forgotten."""
        changed = [file.path for file in self.files if file.poll()]
        if changed and self.tokens is not None:
            self.tokens.forget_all()
        return changed


def build(
    settings: Settings,
    objects: ObjectGetter,
    fetch_for: Callable[[TrustedIssuer], Fetch] | None = None,
    note_legacy_use: Callable[[Mapping[str, Any]], object] = lambda secret: None,
    metrics: AuthenticationMetrics | None = None,
) -> Authentication:
    """Build it all. Raises ``OSError`` and ``ValueError`` for files that cannot be read or used."""
    metrics = metrics or AuthenticationMetrics()
    audiences = tuple(settings.api_audiences) or tuple(settings.service_account_issuers)
    files: list[WatchedFile[Any]] = []
    authenticators: list[Authenticator] = []
    proxy = settings.front_proxy
    named: RequestHeader | None = None
    if proxy is not None:
        named = _front_proxy(proxy, audiences, files)
        authenticators.append(named)
    if settings.client_ca_file:
        authenticators.append(
            ClientCertificate(_certificates(settings.client_ca_file, files, metrics.observe_expiration))
        )
    token_authenticators = _token_authenticators(
        settings, audiences, objects, fetch_for, note_legacy_use, files, metrics
    )
    bearer: Bearer | None = None
    cache: TokenCache | None = None
    if token_authenticators:
        union = TokenUnion(token_authenticators)
        cache = TokenCache(union, settings.token_success_ttl, settings.token_failure_ttl, metrics=metrics.cache)
        bearer = Bearer(cache, audiences)
        authenticators += [bearer, WebSocketBearer(cache, audiences)]
    anonymous = Anonymous(settings.anonymous_paths, audiences) if settings.anonymous else None
    headers: list[str] = []
    if proxy is not None:
        headers = [*proxy.username_headers, *proxy.uid_headers, *proxy.group_headers]
    prefixes = proxy.extra_prefixes if proxy is not None else ()
    authenticator = Union(
        authenticators,
        anonymous,
        recall=None if bearer is None else bearer.recall,
        recall_named=None if named is None else named.recall,
        proxy_headers=headers,
        proxy_extra_prefixes=prefixes,
    )
    return Authentication(authenticator, audiences, bearer, cache, files)


def _front_proxy(proxy: FrontProxy, audiences: tuple[str, ...], files: list[WatchedFile[Any]]) -> RequestHeader:
    return RequestHeader(
        _certificates(proxy.client_ca_file, files),
        proxy.allowed_names,
        proxy.username_headers,
        proxy.uid_headers,
        proxy.group_headers,
        proxy.extra_prefixes,
        audiences,
    )


def _certificates(
    path: str, files: list[WatchedFile[Any]], observe: Callable[[float], object] = lambda seconds: None
) -> VerifiedCertificates:
    file = WatchedFile(path, parse_authorities)
    files.append(file)
    return VerifiedCertificates(file, observe=observe)


def _token_authenticators(
    settings: Settings,
    audiences: tuple[str, ...],
    objects: ObjectGetter,
    fetch_for: Callable[[TrustedIssuer], Fetch] | None,
    note_legacy_use: Callable[[Mapping[str, Any]], object],
    files: list[WatchedFile[Any]],
    metrics: AuthenticationMetrics,
) -> list[TokenAuthenticator]:
    found: list[TokenAuthenticator] = [AudienceAgnostic(audiences, own) for own in settings.own_tokens]
    if settings.token_file:
        token_file = TokenFile(settings.token_file)
        files.append(token_file.file)
        found.append(AudienceAgnostic(audiences, token_file))
    signer = settings.external_signer
    if signer is not None or settings.service_account_key_files:
        keys = signer.known_keys if signer is not None else read_keys(settings.service_account_key_files, files)
        shared: dict[str, Any] = {
            "metrics": metrics.tokens,
            "find_key": None if signer is None else signer.find_key,
        }
        looked_up = objects if settings.service_account_lookup else None
        found.append(LegacyTokens(keys, audiences, looked_up, note_legacy_use, **shared))
        if settings.service_account_issuers:
            found.append(BoundTokens(settings.service_account_issuers, keys, audiences, objects, **shared))
    if settings.bootstrap_tokens:
        found.append(AudienceAgnostic(audiences, BootstrapTokens(objects)))
    if settings.oidc_issuers:
        if fetch_for is None:
            raise ValueError("OIDC issuers need a way to fetch their documents")
        from pilothouse.authn.oidc import OIDCAuthenticator  # most servers trust none

        trusted = [
            OIDCAuthenticator(issuer, fetch_for(issuer), settings.oidc_algorithms, metrics=metrics)
            for issuer in settings.oidc_issuers
        ]
        found.append(AudienceAgnostic(audiences, TokenUnion(trusted, fail_on_error=True)))
    if settings.token_webhook is not None:
        webhook = TokenWebhook(settings.token_webhook, settings.token_webhook_version, audiences)
        ttl = settings.token_webhook_ttl
        found.append(TokenCache(webhook, ttl, ttl, cache_errors=False, metrics=metrics.cache))
    return found


def read_keys(paths: Sequence[str], files: list[WatchedFile[Any]]) -> Callable[[], Sequence[VerificationKey]]:
    """The keys of all files, as they are now; the watched files are added to the list."""
    watched = [WatchedFile(path, load_public_keys) for path in paths]
    files.extend(watched)
    return lambda: [key for file in watched for key in file.value]
