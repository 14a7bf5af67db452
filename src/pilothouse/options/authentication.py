"""Flags that say who may be whom: client certificates, tokens, OIDC, service accounts, front proxies, webhooks."""

from __future__ import annotations

import re
from collections.abc import Sequence, Set
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from pilothouse.machinery.go_quote import quote
from pilothouse.options.declaring import FlagGroup, flag
from pilothouse.options.kinds import BOOL, CLAIMS, DURATION, STRING, STRING_ARRAY, STRINGS

if TYPE_CHECKING:
    from pilothouse.authn.authentication import Authentication
    from pilothouse.authn.authentication_configuration import TrustedIssuer
    from pilothouse.authn.authenticator import TokenAuthenticator
    from pilothouse.authn.outgoing import OutgoingCalls
    from pilothouse.authn.service_account import ObjectGetter
    from pilothouse.authn.token_issuing import TokenIssuing
    from pilothouse.authn.union import Settings
    from pilothouse.machinery.supervision import Supervisor
    from pilothouse.registry.storage import StorageFactory

_WEBHOOK_SECONDS: Final = 30.0
_OVERLAP = (
    "--requestheader-client-ca-file and --client-ca-file contain overlapping certificates; "
    "--requestheader-allowed-names must be specified to ensure regular client certificates cannot set authenticating "
    "proxy headers for arbitrary users"
)


@dataclass
class AuthenticationOptions(FlagGroup):
    """The ``authentication`` section."""

    section = "authentication"

    anonymous_auth: bool = flag(
        "anonymous-auth",
        BOOL,
        True,
        "Let requests without credentials in as system:anonymous in system:unauthenticated.",
    )
    api_audiences: tuple[str, ...] = flag(
        "api-audiences",
        STRINGS,
        (),
        "Audiences this API answers to in tokens. Default: --service-account-issuer.",
    )
    authentication_config: str = flag(
        "authentication-config",
        STRING,
        "",
        "File that configures JWT and anonymous authentication; excludes --oidc-*.",
    )
    token_webhook_cache_ttl: float = flag(
        "authentication-token-webhook-cache-ttl",
        DURATION,
        120.0,
        "How long answers of the token webhook are kept.",
    )
    token_webhook_config_file: str = flag(
        "authentication-token-webhook-config-file",
        STRING,
        "",
        "Kubeconfig file of a webhook that reviews tokens.",
    )
    token_webhook_version: str = flag(
        "authentication-token-webhook-version",
        STRING,
        "v1beta1",
        "Version of TokenReview to send to the webhook.",
    )
    client_ca_file: str = flag(
        "client-ca-file",
        STRING,
        "",
        "Authorities whose client certificates name users by CN and groups by O.",
    )
    enable_bootstrap_token_auth: bool = flag(
        "enable-bootstrap-token-auth",
        BOOL,
        False,
        "Accept bootstrap tokens kept as secrets in kube-system.",
    )
    oidc_ca_file: str = flag(
        "oidc-ca-file", STRING, "", "Authority that the OIDC issuer's certificate is checked with."
    )
    oidc_client_id: str = flag("oidc-client-id", STRING, "", "Client ID that OIDC tokens are issued for.")
    oidc_groups_claim: str = flag("oidc-groups-claim", STRING, "", "OIDC claim with the user's groups.")
    oidc_groups_prefix: str = flag("oidc-groups-prefix", STRING, "", "Put in front of every OIDC group.")
    oidc_issuer_url: str = flag("oidc-issuer-url", STRING, "", "URL of the OIDC issuer (https).")
    oidc_required_claim: dict[str, str] = flag(
        "oidc-required-claim", CLAIMS, {}, "key=value that OIDC tokens must carry. Repeatable."
    )
    oidc_signing_algs: tuple[str, ...] = flag(
        "oidc-signing-algs", STRINGS, ("RS256",), "Signature algorithms accepted in OIDC tokens."
    )
    oidc_username_claim: str = flag("oidc-username-claim", STRING, "sub", "OIDC claim with the user's name.")
    oidc_username_prefix: str = flag(
        "oidc-username-prefix",
        STRING,
        "",
        "Put in front of OIDC user names; '-' is nothing. Default: the issuer's URL, except for the claim email.",
    )
    requestheader_allowed_names: tuple[str, ...] = flag(
        "requestheader-allowed-names",
        STRINGS,
        (),
        "Common names of front proxies; empty is any name signed by --requestheader-client-ca-file.",
    )
    requestheader_client_ca_file: str = flag(
        "requestheader-client-ca-file",
        STRING,
        "",
        "Authorities of front proxies that may name the user in headers.",
    )
    requestheader_extra_headers_prefix: tuple[str, ...] = flag(
        "requestheader-extra-headers-prefix",
        STRINGS,
        (),
        "Prefix of headers with extra attributes, such as X-Remote-Extra-.",
    )
    requestheader_group_headers: tuple[str, ...] = flag(
        "requestheader-group-headers",
        STRINGS,
        (),
        "Headers with the user's groups, such as X-Remote-Group.",
    )
    requestheader_uid_headers: tuple[str, ...] = flag(
        "requestheader-uid-headers", STRINGS, (), "Headers with the user's UID, such as X-Remote-Uid."
    )
    requestheader_username_headers: tuple[str, ...] = flag(
        "requestheader-username-headers",
        STRINGS,
        (),
        "Headers with the user's name, such as X-Remote-User.",
    )
    service_account_extend_token_expiration: bool = flag(
        "service-account-extend-token-expiration",
        BOOL,
        True,
        "Let tokens that pods get at start live for up to a year.",
    )
    service_account_issuer: tuple[str, ...] = flag(
        "service-account-issuer",
        STRING_ARRAY,
        (),
        "Issuer in service account tokens; the first signs, all are accepted.",
    )
    service_account_jwks_uri: str = flag(
        "service-account-jwks-uri",
        STRING,
        "",
        "URI of the key set in the OpenID discovery document (https).",
    )
    service_account_key_file: tuple[str, ...] = flag(
        "service-account-key-file",
        STRING_ARRAY,
        (),
        "PEM keys that service account tokens are checked with. Repeatable.",
    )
    service_account_lookup: bool = flag(
        "service-account-lookup",
        BOOL,
        True,
        "Check that a token's service account and objects still exist.",
    )
    service_account_max_token_expiration: float = flag(
        "service-account-max-token-expiration",
        DURATION,
        0.0,
        "Longest validity of a service account token.",
    )
    token_auth_file: str = flag("token-auth-file", STRING, "", 'CSV file of tokens: token,user,uid,"groups".')

    def client_authorities(self) -> tuple[str, ...]:
        """The files with the authorities of clients and of front proxies."""
        paths = (self.client_ca_file, self.requestheader_client_ca_file)
        return tuple(dict.fromkeys(path for path in paths if path))

    def build(
        self,
        storage: StorageFactory,
        outgoing: OutgoingCalls,
        issuing: TokenIssuing,
        supervisor: Supervisor,
        identity: str,
        given: Set[str],
        own_tokens: Sequence[TokenAuthenticator] = (),
    ) -> Authentication:
        """What authenticates requests, also by ``own_tokens`` that parts of this process give out.

        Raises OSError and ValueError for files that cannot be used.
        """
        from pilothouse.authn.authentication import Authentication
        from pilothouse.authn.metrics import AuthenticationMetrics
        from pilothouse.authn.stored_objects import LegacyTokenUse
        from pilothouse.machinery.reloaded_file import ReloadedFile
        from pilothouse.machinery.watched_file import WatchedFile

        metrics, configuration = AuthenticationMetrics(identity), None
        if self.authentication_config:
            from pilothouse.authn.authentication_configuration import parse_file

            configuration = ReloadedFile(
                self.authentication_config,
                lambda content: parse_file(self.authentication_config, content, self.service_account_issuer),
                metrics.reloads,
            )
        authority = WatchedFile(self.oidc_ca_file, _read_authority) if self.oidc_ca_file else None
        return Authentication(
            lambda: self._settings(outgoing, issuing, "" if authority is None else authority.value, own_tokens),
            issuing.objects,
            LegacyTokenUse(storage, supervisor),
            outgoing,
            metrics,
            configuration=configuration,
            sources=() if authority is None else (authority,),
            anonymous_fixed="anonymous-auth" in given,
        )

    def _settings(
        self,
        outgoing: OutgoingCalls,
        issuing: TokenIssuing,
        oidc_authority: str,
        own_tokens: Sequence[TokenAuthenticator],
    ) -> Settings:
        """What to authenticate by, as far as flags say it."""
        from pilothouse.authn.union import FrontProxy, Settings
        from pilothouse.authn.webhook_kubeconfig import read_webhook_kubeconfig

        settings = Settings(
            client_ca_file=self.client_ca_file,
            token_file=self.token_auth_file,
            service_account_key_files=self.service_account_key_file,
            external_signer=issuing.external,
            service_account_issuers=self.service_account_issuer,
            service_account_lookup=self.service_account_lookup,
            api_audiences=self.api_audiences,
            bootstrap_tokens=self.enable_bootstrap_token_auth,
            token_webhook_version=self.token_webhook_version,
            token_webhook_ttl=self.token_webhook_cache_ttl,
            anonymous=self.anonymous_auth,
            own_tokens=own_tokens,
        )
        if self.requestheader_client_ca_file:
            settings.front_proxy = FrontProxy(
                self.requestheader_client_ca_file,
                self.requestheader_allowed_names,
                self.requestheader_username_headers,
                self.requestheader_uid_headers,
                self.requestheader_group_headers,
                self.requestheader_extra_headers_prefix,
            )
        if self.oidc_issuer_url:
            settings.oidc_issuers = (self._oidc_issuer(oidc_authority),)
            settings.oidc_algorithms = self.oidc_signing_algs
        if self.token_webhook_config_file:
            endpoint = read_webhook_kubeconfig(self.token_webhook_config_file)
            settings.token_webhook = outgoing.post_to(endpoint, _WEBHOOK_SECONDS)
        return settings

    def _oidc_issuer(self, authority: str) -> TrustedIssuer:
        from pilothouse.authn.authentication_configuration import issuer_from_flags

        return issuer_from_flags(
            self.oidc_issuer_url,
            self.oidc_client_id,
            self.oidc_username_claim,
            self.oidc_username_prefix,
            self.oidc_groups_claim,
            self.oidc_groups_prefix,
            self.oidc_required_claim,
            authority,
        )

    def build_issuing(
        self, objects: ObjectGetter, supervisor: Supervisor, signing_key_file: str, signing_endpoint: str
    ) -> TokenIssuing:
        """What issues service account tokens. Raises OSError and ValueError for files that cannot be used."""
        from pilothouse.authn.token_issuing import IssuingSettings, TokenIssuing

        settings = IssuingSettings(
            issuers=self.service_account_issuer,
            audiences=self.api_audiences or self.service_account_issuer,
            key_files=self.service_account_key_file,
            signing_key_file=signing_key_file,
            signing_endpoint=signing_endpoint,
            max_seconds=int(self.service_account_max_token_expiration),
            extend=self.service_account_extend_token_expiration,
        )
        return TokenIssuing(settings, objects, supervisor)

    def validate(self, given: Set[str]) -> list[str]:
        """OIDC, service accounts and request headers."""
        errors = self._oidc_errors(given) + self._issuer_errors()
        if not self.service_account_issuer:
            errors.append("service-account-issuer is a required flag")
        if not self.service_account_key_file and "service-account-signing-endpoint" not in given:
            errors.append("either `--service-account-key-file` or `--service-account-signing-endpoint` must be set")
        uri = self.service_account_jwks_uri
        if uri and urlsplit(uri).scheme != "https":
            errors.append(f"service-account-jwks-uri requires https scheme, parsed as: {uri}")
        errors += self._request_header_errors()
        expiration = self.service_account_max_token_expiration
        if expiration and not 3600 <= expiration <= 2**32:
            errors.append("the service-account-max-token-expiration must be between 1 hour and 2^32 seconds")
        return errors

    def _oidc_errors(self, given: Set[str]) -> list[str]:
        if not any(name.startswith("oidc-") for name in given):
            return []
        if self.authentication_config:
            return ["authentication-config file and oidc-* flags are mutually exclusive"]
        if not (self.oidc_issuer_url and self.oidc_client_id):
            return ["oidc-issuer-url and oidc-client-id must be specified together when any oidc-* flags are set"]
        return []

    def _issuer_errors(self) -> list[str]:
        errors = []
        seen: set[str] = set()
        for issuer in self.service_account_issuer:
            wrong = _url_error(issuer) if ":" in issuer else ""
            if wrong:
                shown = f"service-account-issuer {quote(issuer)}"
                errors.append(f"{shown} contained a ':' but was not a valid URL: {wrong}")
                continue
            if not issuer:
                errors.append("service-account-issuer should not be an empty string")
            elif issuer in seen:
                errors.append(f"service-account-issuer {quote(issuer)} is already specified")
            seen.add(issuer)
        return errors

    def _request_header_errors(self) -> list[str]:
        errors = [
            f'empty value in "{name}"'
            for name in (
                "requestheader-username-headers",
                "requestheader-group-headers",
                "requestheader-extra-headers-prefix",
                "requestheader-allowed-names",
                "requestheader-uid-headers",
            )
            if not all(value.strip() for value in getattr(self, name.replace("-", "_")))
        ]
        uid_headers = self.requestheader_uid_headers
        if uid_headers and "x-remote-uid" not in {header.lower() for header in uid_headers}:
            errors.append(
                "--requestheader-uid-headers is set without specifying the standard X-Remote-Uid header - "
                "API aggregation will not work"
            )
        if self.client_ca_file and self.requestheader_client_ca_file and not self.requestheader_allowed_names:
            ours, proxies = _certificates(self.client_ca_file), _certificates(self.requestheader_client_ca_file)
            if ours & proxies:
                errors.append(_OVERLAP)
        return errors


_PLAIN_URL: Final = re.compile(r"https?://[A-Za-z0-9.-]+(:[0-9]+)?(/[A-Za-z0-9._~/-]*)?")


def _url_error(text: str) -> str:
    if _PLAIN_URL.fullmatch(text):
        return ""  # the usual one, for which no more need be loaded
    from pilothouse.cel.library.urls import UrlError, parse_url

    try:
        parse_url(text)
    except UrlError as error:
        return str(error)
    return ""


def _certificates(path: str) -> set[str]:
    """The certificates of a PEM file as text without white space; empty when it cannot be read."""
    try:
        with open(path, encoding="ascii", errors="replace") as file:
            blocks = file.read().split("-----BEGIN CERTIFICATE-----")[1:]
    except OSError:
        return set()
    return {"".join(block.split("-----END CERTIFICATE-----")[0].split()) for block in blocks}


def _read_authority(content: bytes) -> str:
    """Certificates to trust an issuer by. Raises ``ValueError``."""
    from pilothouse.authn.certificate_chain import parse_authorities

    parse_authorities(content)
    return content.decode("ascii")
