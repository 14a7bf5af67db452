"""From flags to everything that has to do with who is asking: authenticators, tokens, and the documents about them.

``Authentication`` owns what changes at run time: files named by flags (``poll`` re-reads them off the event loop) and
``--authentication-config``, whose new content replaces the whole authenticator at once, or is refused and logged.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from pilothouse.apis.strategy import Context, Object
from pilothouse.app.reloaded_file import ReloadedFile
from pilothouse.authn import building
from pilothouse.authn.authentication_configuration import (
    AuthenticationConfiguration,
    TrustedIssuer,
    issuer_from_flags,
    parse_configuration,
)
from pilothouse.authn.authenticator import Authenticated, Authenticator
from pilothouse.authn.certificate_chain import parse_authorities
from pilothouse.authn.external_signer import SERVICE, ExternalSigner, SigningFailed
from pilothouse.authn.jose import Signer, VerificationKey, load_private_key
from pilothouse.authn.metrics import AuthenticationMetrics, SignerMetrics
from pilothouse.authn.openid_metadata import MAX_AGE
from pilothouse.authn.outgoing import OutgoingCalls
from pilothouse.authn.service_account import LAST_USED_LABEL, last_used_label
from pilothouse.authn.token_request import MIN_SECONDS, ClaimSigner, TokenRequests
from pilothouse.authn.watched_file import WatchedFile
from pilothouse.authn.webhook_kubeconfig import read_webhook_kubeconfig
from pilothouse.machinery import errors
from pilothouse.machinery.times import format_duration, now
from pilothouse.net.messages import Request
from pilothouse.net.unary_calls import UnaryCalls
from pilothouse.registry.storage import StorageFactory
from pilothouse.storage.backends.contract import StorageError

if TYPE_CHECKING:
    from pilothouse.options import ServerOptions

logger = logging.getLogger(__name__)
_WEBHOOK_SECONDS: Final = 30.0


class StoredObjects:
    """Reads the objects that tokens refer to from the stores."""

    def __init__(self, storage: StorageFactory) -> None:
        self._storage = storage

    async def get(self, resource: str, namespace: str, name: str) -> Mapping[str, Any] | None:
        """The object, None if there is none."""
        if not name or "/" in name or "/" in namespace:
            return None
        store = self._storage.store("", "v1", resource)
        try:
            return store.decode(await store.get(namespace, name))
        except errors.StatusError as error:
            if error.code == 404:
                return None
            raise


class SignerUnusable(OSError):
    """The external signer of tokens is not there, or not fit for what the flags ask."""


class Replaceable:
    """An authenticator that can be exchanged while requests are served."""

    def __init__(self, current: Authenticator) -> None:
        self.current = current

    async def authenticate(self, request: Request) -> Authenticated | None:
        """As the present one."""
        return await self.current.authenticate(request)


class Authentication:
    """All ways of authenticating that the flags ask for, and the issuing of tokens."""

    def __init__(
        self, options: ServerOptions, storage: StorageFactory, outgoing: OutgoingCalls, identity: str = ""
    ) -> None:
        self._options, self._storage, self._outgoing = options, storage, outgoing
        self.objects, self.metrics = StoredObjects(storage), AuthenticationMetrics(identity)
        self._tasks: set[asyncio.Task[None]] = set()
        self._background: list[asyncio.Task[None]] = []
        self._anonymous: tuple[bool | None, tuple[str, ...]] | None = None
        flags, endpoint = options.authentication, options.control_plane.service_account_signing_endpoint
        self._signer_calls = UnaryCalls(endpoint, SERVICE) if endpoint else None
        self._signer: ExternalSigner | None = None
        if self._signer_calls is not None:
            self.metrics.signer = SignerMetrics()
            self._signer = ExternalSigner(self._signer_calls, self.metrics.signer)
        self._file: ReloadedFile[AuthenticationConfiguration] | None = None
        if flags.authentication_config:
            self._file = ReloadedFile(
                flags.authentication_config, lambda data: parse_configuration(data, self.issuers), self.metrics.reloads
            )
        self._configuration: AuthenticationConfiguration | None = None
        if self._file is not None:
            self._accept(self._file.value)
        self._oidc_authority = WatchedFile(flags.oidc_ca_file, _read_authority) if flags.oidc_ca_file else None
        self._settings = self._read_flags()
        self._built = self._build()
        exchangeable = self._file is not None or self._oidc_authority is not None
        self._replaceable = Replaceable(self._built.authenticator) if exchangeable else None
        self.authenticator: Authenticator = self._replaceable or self._built.authenticator
        self._key_files: list[WatchedFile[Any]] = []
        self.keys = building.read_keys(flags.service_account_key_file, self._key_files)
        self.token_requests = self._token_requests()

    @property
    def issuers(self) -> tuple[str, ...]:
        """The names under which this server issues and accepts tokens; the first issues."""
        return self._options.authentication.service_account_issuer

    @property
    def built(self) -> building.Authentication:
        """The authenticators as they are now."""
        return self._built

    @property
    def anonymous(self) -> bool:
        """Whether a request without credentials is let in somewhere."""
        return self._present().anonymous

    def public_keys(self) -> list[VerificationKey]:
        """The keys that tokens of this server are verified with, as far as others are told."""
        return list(self.keys() if self._signer is None else self._signer.shown_keys())

    @property
    def keys_max_age(self) -> int:
        """For how many seconds others may keep the keys."""
        return MAX_AGE if self._signer is None else self._signer.max_age

    async def start(self) -> None:
        """Ask the external signer for its keys and limits, if there is one. Raises SignerUnusable."""
        if self._signer is None:
            return
        try:
            try:
                await self._signer.refresh()
            except SigningFailed as failure:
                words = "while initially filling key cache: while performing initial cache fill"
                raise SigningFailed(f"{words}: {failure}") from None
            longest = await self._signer.longest_seconds()
        except SigningFailed as failure:
            raise SignerUnusable(f"while setting up external-jwt-signer: {failure}") from None
        self._limit_lifetimes(longest)
        task = asyncio.ensure_future(self._signer.keep_fresh())
        self._background.append(task)

    def _limit_lifetimes(self, longest: int) -> None:
        if longest < MIN_SECONDS:
            raise SignerUnusable(
                f"max token life supported by external-jwt-signer ({longest}s) is less than acceptable "
                f"(min {MIN_SECONDS}s)"
            )
        requests = self.token_requests
        if requests is None:
            return
        if requests.max_seconds > longest:
            raise SignerUnusable(
                "service-account-max-token-expiration cannot be set longer than the token expiration supported by "
                f"service-account-signing-endpoint: {format_duration(requests.max_seconds * 10**9)} > "
                f"{format_duration(longest * 10**9)}"
            )
        requests.max_seconds = requests.max_seconds or longest
        requests.extended_seconds = min(longest, requests.extended_seconds)

    def poll(self) -> None:
        """Re-read files that changed. Not to be called on the event loop."""
        for path in self._built.poll_files():
            logger.info("%s changed and was read again", path)
        for file in self._key_files:
            file.poll()
        if self._oidc_authority is not None and self._oidc_authority.poll():
            self._settings = self._read_flags()
            self._replace()
            logger.info("%s changed and was read again", self._oidc_authority.path)
        if self._file is not None:
            self._file.poll_into(self._take)

    def _take(self, configuration: AuthenticationConfiguration) -> None:
        self._accept(configuration)
        self._replace()

    def _accept(self, configuration: AuthenticationConfiguration) -> None:
        """Go by a content of the file from now on. Raises ``ValueError``.

        Who need not authenticate is settled at the start, by one source.
        """
        said = (configuration.anonymous, configuration.anonymous_paths)
        if self._anonymous is None:
            if configuration.anonymous is not None and "anonymous-auth" in self._options.given:
                detail = "--anonymous-auth flag cannot be set when anonymous field is configured in authentication "
                raise ValueError(f"anonymous: Forbidden: {detail}configuration file")
            self._anonymous = said
        elif said != self._anonymous:
            raise ValueError("anonymous: Forbidden: changed from initial configuration file")
        self._configuration = configuration

    def _replace(self) -> None:
        """Authenticate from now on by what files say now. Raises ``OSError`` and ``ValueError``."""
        assert self._replaceable is not None
        self._built = self._build()
        self._replaceable.current = self._built.authenticator

    async def close(self) -> None:
        """Wait for what was begun on the side."""
        for task in self._background:
            task.cancel()
        await asyncio.gather(*self._background, return_exceptions=True)
        if self._signer_calls is not None:
            await self._signer_calls.close()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    # Building

    def _build(self) -> building.Authentication:
        return building.build(
            self._present(),
            self.objects,
            lambda issuer: self._fetch_for(issuer),
            self._note_legacy_use,
            self.metrics,
        )

    def _fetch_for(self, issuer: TrustedIssuer) -> Any:
        return self._outgoing.fetch_for(issuer.certificate_authority)

    def _present(self) -> building.Settings:
        """The flags together with what the configuration file says now."""
        configuration = self._configuration
        if configuration is None:
            return self._settings
        settings = replace(self._settings, oidc_issuers=configuration.issuers)
        if configuration.anonymous is not None:
            settings.anonymous = configuration.anonymous
            settings.anonymous_paths = configuration.anonymous_paths
        return settings

    def _read_flags(self) -> building.Settings:
        flags = self._options.authentication
        settings = building.Settings(
            client_ca_file=flags.client_ca_file,
            token_file=flags.token_auth_file,
            service_account_key_files=flags.service_account_key_file,
            external_signer=self._signer,
            service_account_issuers=flags.service_account_issuer,
            service_account_lookup=flags.service_account_lookup,
            api_audiences=flags.api_audiences,
            bootstrap_tokens=flags.enable_bootstrap_token_auth,
            token_webhook_version=flags.token_webhook_version,
            token_webhook_ttl=flags.token_webhook_cache_ttl,
            anonymous=flags.anonymous_auth,
        )
        if flags.requestheader_client_ca_file:
            settings.front_proxy = building.FrontProxy(
                flags.requestheader_client_ca_file,
                flags.requestheader_allowed_names,
                flags.requestheader_username_headers,
                flags.requestheader_uid_headers,
                flags.requestheader_group_headers,
                flags.requestheader_extra_headers_prefix,
            )
        if flags.oidc_issuer_url:
            settings.oidc_issuers = (self._issuer_of_flags(),)
            settings.oidc_algorithms = flags.oidc_signing_algs
        if flags.token_webhook_config_file:
            endpoint = read_webhook_kubeconfig(flags.token_webhook_config_file)
            settings.token_webhook = self._outgoing.post_to(endpoint, _WEBHOOK_SECONDS)
        return settings

    def _issuer_of_flags(self) -> TrustedIssuer:
        flags = self._options.authentication
        authority = "" if self._oidc_authority is None else self._oidc_authority.value
        return issuer_from_flags(
            flags.oidc_issuer_url,
            flags.oidc_client_id,
            flags.oidc_username_claim,
            flags.oidc_username_prefix,
            flags.oidc_groups_claim,
            flags.oidc_groups_prefix,
            flags.oidc_required_claim,
            authority,
        )

    def _token_requests(self) -> TokenRequests | None:
        flags, path = self._options.authentication, self._options.control_plane.service_account_signing_key_file
        signer: ClaimSigner | None = self._signer
        if signer is None and path:
            with open(path, "rb") as file:
                signer = Signer(load_private_key(file.read()))
        if signer is None or not self.issuers:
            return None
        return TokenRequests(
            self.issuers[0],
            signer,
            self._built.audiences,
            self.objects,
            time.time,
            max_seconds=int(flags.service_account_max_token_expiration),
            extend=flags.service_account_extend_token_expiration,
        )

    # Tokens in secrets

    def _note_legacy_use(self, secret: Mapping[str, Any]) -> None:
        """Label the secret of a used token with the day, on the side."""
        day = last_used_label(secret, time.time())
        if day:
            metadata = secret["metadata"]
            task = asyncio.ensure_future(self._label(metadata["namespace"], metadata["name"], day))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _label(self, namespace: str, name: str, day: str) -> None:
        async def change(old: Object | None) -> Object:
            assert old is not None
            metadata = dict(old["metadata"])
            metadata["labels"] = {**(metadata.get("labels") or {}), LAST_USED_LABEL: day}
            return {**old, "metadata": metadata}

        store = self._storage.store("", "v1", "secrets")
        ctx = Context(user="system:apiserver", namespace=namespace, verb="patch", now=now())
        try:
            await store.update(ctx, name, change, create=False)
        except (errors.StatusError, StorageError) as error:
            logger.warning("cannot note the use of the token in secret %s/%s: %s", namespace, name, error)


def _read_authority(content: bytes) -> str:
    """Certificates to trust an issuer by. Raises ``ValueError``."""
    parse_authorities(content)
    return content.decode("ascii")
