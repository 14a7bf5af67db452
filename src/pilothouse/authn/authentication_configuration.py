"""``--authentication-config`` and the ``--oidc-*`` flags: which issuers of tokens are trusted, and how their claims
become users. Expressions are compiled with the file: one that does not compile refuses it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from pilothouse.apis.validation import repeats
from pilothouse.authn.certificate_chain import parse_authorities
from pilothouse.authn.claim_expressions import (
    BadExpression,
    ClaimExpressions,
    Rule,
    compile_claims,
    compile_user,
    uses_claim,
)
from pilothouse.authn.configuration_file import Undecodable, load_configuration, raise_errors
from pilothouse.machinery.field_errors import FieldError, Path, duplicate, invalid, required, too_many
from pilothouse.machinery.go_quote import quote
from pilothouse.machinery.names import check_domain_prefixed_path
from pilothouse.machinery.shapes import Struct, Text

if TYPE_CHECKING:
    from pilothouse.cel.environment import Program

_RULE: Final = {"claim": str, "requiredValue": str, "expression": str, "message": str}
_MAPPING: Final = Struct("PrefixedClaimOrExpression", {"claim": str, "prefix": str, "expression": str})
_ISSUER: Final = {
    "url": str,
    "discoveryURL": str,
    "certificateAuthority": str,
    "audiences": [str],
    "audienceMatchPolicy": Text("AudienceMatchPolicyType"),
    "egressSelectorType": Text("EgressSelectorType"),
}
_MAPPINGS: Final = {
    "username": _MAPPING,
    "groups": _MAPPING,
    "uid": Struct("ClaimOrExpression", {"claim": str, "expression": str}),
    "extra": [Struct("ExtraMapping", {"key": str, "valueExpression": str})],
}
_AUTHENTICATOR: Final = {
    "issuer": Struct("Issuer", _ISSUER),
    "claimValidationRules": [Struct("ClaimValidationRule", _RULE)],
    "claimMappings": Struct("ClaimMappings", _MAPPINGS),
    "userValidationRules": [Struct("UserValidationRule", {"expression": str, "message": str})],
}
_CONDITION: Final = Struct("AnonymousAuthCondition", {"path": str})
_SHAPE: Final = Struct(
    "AuthenticationConfiguration",
    {
        "jwt": [Struct("JWTAuthenticator", _AUTHENTICATOR)],
        "anonymous": Struct("AnonymousAuthConfig", {"enabled": bool, "conditions": [_CONDITION]}),
    },
)
_MAX_ISSUERS: Final = 64
_EMAIL_UNVERIFIED: Final = (
    "claims.email_verified must be used in claimMappings.username.expression or claimMappings.extra[*].valueExpression "
    "or claimValidationRules[*].expression when claims.email is used in claimMappings.username.expression"
)
_RESERVED: Final = ("k8s.io", "kubernetes.io")


@dataclass(frozen=True, slots=True)
class TrustedIssuer:
    """An issuer of tokens and how its claims become a user."""

    url: str
    audiences: tuple[str, ...]
    username_claim: str
    username_prefix: str = ""
    groups_claim: str = ""
    groups_prefix: str = ""
    uid_claim: str = ""
    required_claims: Mapping[str, str] = field(default_factory=dict)
    discovery_url: str = ""
    certificate_authority: str = ""
    expressions: ClaimExpressions | None = None


@dataclass(frozen=True, slots=True)
class AuthenticationConfiguration:
    """The content of the file. ``anonymous`` is None if the file does not say."""

    issuers: tuple[TrustedIssuer, ...] = ()
    anonymous: bool | None = None
    anonymous_paths: tuple[str, ...] = ()


def issuer_from_flags(
    url: str,
    client_id: str,
    username_claim: str = "sub",
    username_prefix: str = "",
    groups_claim: str = "",
    groups_prefix: str = "",
    required_claims: Mapping[str, str] | None = None,
    certificate_authority: str = "",
) -> TrustedIssuer:
    """The issuer of the ``--oidc-*`` flags; without a prefix user names other than e-mails get the issuer's URL."""
    if not username_prefix and username_claim != "email":
        username_prefix = f"{url}#"
    elif username_prefix == "-":
        username_prefix = ""
    return TrustedIssuer(
        url,
        (client_id,),
        username_claim,
        username_prefix,
        groups_claim,
        groups_prefix,
        required_claims=dict(required_claims or {}),
        certificate_authority=certificate_authority,
    )


def parse_file(path: str, data: bytes, service_account_issuers: Sequence[str] = ()) -> AuthenticationConfiguration:
    """The same for the content of a file, which errors name where it cannot be decoded."""
    try:
        return parse_configuration(data, service_account_issuers)
    except Undecodable as error:
        raise ValueError(f"failed to load authentication configuration from file {quote(path)}: {error}") from None
    except ValueError as error:
        raise ValueError(f"invalid authentication configuration: {error}") from None


def parse_configuration(data: bytes, service_account_issuers: Sequence[str] = ()) -> AuthenticationConfiguration:
    """Read and validate the file. Raises ``ValueError`` with every error."""
    document = load_configuration(data, "AuthenticationConfiguration", ("v1", "v1beta1", "v1alpha1"), _SHAPE)
    entries = document.get("jwt") or []
    raise_errors(_errors(entries, document.get("anonymous"), service_account_issuers))
    anonymous = document.get("anonymous")
    return AuthenticationConfiguration(
        tuple(_issuer(entry) for entry in entries),
        None if anonymous is None else bool(anonymous.get("enabled")),
        tuple(condition.get("path", "") for condition in (anonymous or {}).get("conditions") or ()),
    )


def _issuer(entry: Mapping[str, Any]) -> TrustedIssuer:
    issuer, mappings = entry["issuer"], entry["claimMappings"]
    if issuer.get("egressSelectorType"):
        # Connections through egress proxies are not supported, which is as if none were configured.
        egress = quote(issuer["egressSelectorType"])
        raise ValueError(f"oidc: egress lookup required with egress selector type {egress}")
    groups = mappings.get("groups") or {}
    rules = entry.get("claimValidationRules") or ()
    return TrustedIssuer(
        issuer["url"],
        tuple(issuer["audiences"]),
        mappings["username"].get("claim") or "",
        mappings["username"].get("prefix") or "",
        groups.get("claim") or "",
        groups.get("prefix") or "",
        (mappings.get("uid") or {}).get("claim") or "",
        {rule["claim"]: rule.get("requiredValue") or "" for rule in rules if rule.get("claim")},
        issuer.get("discoveryURL") or "",
        issuer.get("certificateAuthority") or "",
        _expressions(entry),
    )


def _expressions(entry: Mapping[str, Any]) -> ClaimExpressions | None:
    """The compiled expressions of an issuer; None without any."""
    mappings = entry["claimMappings"]

    def mapped(name: str) -> Program | None:
        text = (mappings.get(name) or {}).get("expression")
        return compile_claims(text) if text else None

    made = ClaimExpressions(
        mapped("username"),
        mapped("groups"),
        mapped("uid"),
        {each["key"]: compile_claims(each["valueExpression"]) for each in mappings.get("extra") or ()},
        tuple(
            Rule(compile_claims(rule["expression"], condition=True), rule.get("message") or "")
            for rule in entry.get("claimValidationRules") or ()
            if rule.get("expression")
        ),
        tuple(
            Rule(compile_user(rule["expression"]), rule.get("message") or "")
            for rule in entry.get("userValidationRules") or ()
        ),
    )
    return None if made == ClaimExpressions() else made


def _errors(
    entries: Sequence[Mapping[str, Any]], anonymous: Mapping[str, Any] | None, disallowed: Sequence[str]
) -> list[FieldError]:
    root = Path("jwt")
    if len(entries) > _MAX_ISSUERS:
        return [too_many(root, len(entries), _MAX_ISSUERS)]
    errs: list[FieldError] = []
    seen: set[tuple[str, str]] = set()
    for index, entry in enumerate(entries):
        path = root.index(index)
        errs += _entry_errors(entry, path, disallowed)
        for name in ("url", "discoveryURL"):
            value = (entry.get("issuer") or {}).get(name, "")
            if (value or name == "url") and (name, value) in seen:
                errs.append(duplicate(path.child("issuer").child(name), value))
            seen.add((name, value))
    if anonymous is not None and not anonymous.get("enabled") and anonymous.get("conditions"):
        detail = "enabled should be set to true when conditions are defined"
        errs.append(invalid(Path("anonymous", "conditions"), anonymous["conditions"], detail))
    return errs


def _entry_errors(entry: Mapping[str, Any], path: Path, disallowed: Sequence[str]) -> list[FieldError]:
    issuer = entry.get("issuer") or {}
    errs = _issuer_errors(issuer, path.child("issuer"), disallowed)
    errs += _rule_errors(entry.get("claimValidationRules") or (), path.child("claimValidationRules"))
    errs += _mapping_errors(entry.get("claimMappings") or {}, path.child("claimMappings"))
    errs += _email_errors(entry, path.child("claimMappings", "username", "expression"))
    errs += _user_rule_errors(entry.get("userValidationRules") or (), path.child("userValidationRules"))
    return errs


def _user_rule_errors(rules: Sequence[Mapping[str, Any]], path: Path) -> list[FieldError]:
    errs: list[FieldError] = []
    seen: set[str] = set()
    for index, rule in enumerate(rules):
        where, text = path.index(index).child("expression"), rule.get("expression") or ""
        if not text:
            errs.append(required(where, ""))
        elif text in seen:
            errs.append(duplicate(where, text))
        else:
            errs += _compiling_errors(lambda text=text: compile_user(text), where, text)  # type: ignore[misc]
        seen.add(text)
    return errs


def _compiling_errors(compile: Callable[[], object], path: Path, text: str) -> list[FieldError]:
    try:
        compile()
    except BadExpression as error:
        return [invalid(path, text, str(error))]
    return []


def _email_errors(entry: Mapping[str, Any], path: Path) -> list[FieldError]:
    """An e-mail address is nobody's name before somebody looked whether it was verified."""
    mappings = entry.get("claimMappings") or {}
    username = mappings.get("username") or {}
    if username.get("claim") or username.get("prefix") is not None or not _uses(username.get("expression"), "email"):
        return []
    looked = [username["expression"], *(each.get("valueExpression") for each in mappings.get("extra") or ())]
    looked += [rule.get("expression") for rule in entry.get("claimValidationRules") or ()]
    if any(_uses(text, "email_verified") for text in looked):
        return []
    return [invalid(path, username["expression"], _EMAIL_UNVERIFIED)]


def _uses(text: str | None, claim: str) -> bool:
    """Whether an expression selects a claim; one that does not compile uses none."""
    try:
        return bool(text) and uses_claim(compile_claims(text or ""), claim)
    except BadExpression:
        return False


def _issuer_errors(issuer: Mapping[str, Any], path: Path, disallowed: Sequence[str]) -> list[FieldError]:
    url, discovery = issuer.get("url", ""), issuer.get("discoveryURL", "")
    errs = _url_errors(url, path.child("url"), disallowed) if url else [required(path.child("url"), "")]
    if discovery:
        if url and url.rstrip("/") == discovery.rstrip("/"):
            detail = "discoveryURL must be different from URL"
            errs.append(invalid(path.child("discoveryURL"), discovery, detail))
        errs += _url_errors(discovery, path.child("discoveryURL"), ())
    errs += _audience_errors(issuer, path)
    if issuer.get("certificateAuthority"):
        try:
            parse_authorities(issuer["certificateAuthority"].encode())
        except ValueError as error:
            errs.append(invalid(path.child("certificateAuthority"), "<omitted>", str(error)))
    egress = issuer.get("egressSelectorType")
    if egress and egress not in ("controlplane", "cluster"):
        detail = "egress selector must be either controlplane or cluster"
        errs.append(invalid(path.child("egressSelectorType"), egress, detail))
    return errs


def _url_errors(url: str, path: Path, disallowed: Sequence[str]) -> list[FieldError]:
    from pilothouse.cel.library.urls import UrlError, parse_url

    errs: list[FieldError] = []
    if url in disallowed:
        listed = " ".join(sorted(set(disallowed)))
        errs.append(invalid(path, url, f"URL must not overlap with disallowed issuers: [{listed}]"))
    try:
        parts = parse_url(url)
    except UrlError as error:
        return [*errs, invalid(path, url, str(error))]
    if parts.scheme != "https":
        errs.append(invalid(path, url, "URL scheme must be https"))
    if "@" in url.partition("://")[2].partition("/")[0]:
        errs.append(invalid(path, url, "URL must not contain a username or password"))
    if parts.query:
        errs.append(invalid(path, url, "URL must not contain a query"))
    if parts.fragment:
        errs.append(invalid(path, url, "URL must not contain a fragment"))
    return errs


def _audience_errors(issuer: Mapping[str, Any], path: Path) -> list[FieldError]:
    audiences, policy = issuer.get("audiences") or [], issuer.get("audienceMatchPolicy", "")
    where = path.child("audiences")
    if not audiences:
        return [required(where, f"at least one {where} is required")]
    errs: list[FieldError] = []
    twice = repeats(audiences)
    for index, audience in enumerate(audiences):
        if not audience:
            errs.append(required(where.index(index), ""))
        if index in twice:
            errs.append(duplicate(where.index(index), audience))
    if len(audiences) > 1 and policy != "MatchAny":
        detail = "audienceMatchPolicy must be MatchAny for multiple audiences"
        errs.append(invalid(path.child("audienceMatchPolicy"), policy, detail))
    if len(audiences) == 1 and policy not in ("", "MatchAny"):
        detail = "audienceMatchPolicy must be empty or MatchAny for single audience"
        errs.append(invalid(path.child("audienceMatchPolicy"), policy, detail))
    return errs


def _rule_errors(rules: Sequence[Mapping[str, Any]], path: Path) -> list[FieldError]:
    errs: list[FieldError] = []
    seen: set[str] = set()
    for index, rule in enumerate(rules):
        where, claim = path.index(index), rule.get("claim", "")
        if claim and rule.get("expression"):
            errs.append(invalid(where, claim, "claim and expression can't both be set"))
        elif rule.get("expression"):
            errs += _rule_expression_errors(rule, rules[:index], where)
        elif not claim:
            errs.append(required(where, "claim or expression is required"))
        else:
            if rule.get("message"):
                detail = "may not be specified when claim is set"
                errs.append(invalid(where.child("message"), rule["message"], detail))
            if claim in seen:
                errs.append(duplicate(where.child("claim"), claim))
            seen.add(claim)
    return errs


def _rule_expression_errors(
    rule: Mapping[str, Any], earlier: Sequence[Mapping[str, Any]], path: Path
) -> list[FieldError]:
    text, errs = rule["expression"], []
    if rule.get("requiredValue"):
        detail = "may not be specified when expression is set"
        errs.append(invalid(path.child("requiredValue"), rule["requiredValue"], detail))
    if any(other.get("expression") == text for other in earlier):
        return [*errs, duplicate(path.child("expression"), text)]
    return errs + _compiling_errors(lambda: compile_claims(text, condition=True), path.child("expression"), text)


def _mapping_errors(mappings: Mapping[str, Any], path: Path) -> list[FieldError]:
    errs = _prefixed_errors(mappings.get("username") or {}, path.child("username"), needed=True)
    errs += _prefixed_errors(mappings.get("groups") or {}, path.child("groups"), needed=False)
    uid = mappings.get("uid") or {}
    if uid.get("claim") and uid.get("expression"):
        errs.append(invalid(path.child("uid"), "", "claim and expression can't both be set"))
    elif uid.get("expression"):
        text = uid["expression"]
        errs += _compiling_errors(lambda: compile_claims(text), path.child("uid", "expression"), text)
    return errs + _extra_errors(mappings.get("extra") or (), path.child("extra"))


def _extra_errors(mappings: Sequence[Mapping[str, Any]], path: Path) -> list[FieldError]:
    errs: list[FieldError] = []
    seen: set[str] = set()
    for index, mapping in enumerate(mappings):
        where, key = path.index(index), mapping.get("key") or ""
        errs += check_domain_prefixed_path(where.child("key"), key)
        if key != key.lower():
            errs.append(invalid(where.child("key"), key, "must be lowercase"))
        domain = key.partition("/")[0] if "/" in key else ""
        if any(domain == name or domain.endswith(f".{name}") for name in _RESERVED):
            detail = "k8s.io, kubernetes.io and their subdomains are reserved for Kubernetes use"
            errs.append(invalid(where.child("key"), key, detail))
        if key in seen:
            errs.append(duplicate(where.child("key"), key))
            continue
        seen.add(key)
        text, place = mapping.get("valueExpression") or "", where.child("valueExpression")
        if not text:
            errs.append(required(place, ""))
        else:
            errs += _compiling_errors(lambda text=text: compile_claims(text), place, text)  # type: ignore[misc]
    return errs


def _prefixed_errors(mapping: Mapping[str, Any], path: Path, *, needed: bool) -> list[FieldError]:
    claim, expression = mapping.get("claim"), mapping.get("expression")
    if claim and expression:
        return [invalid(path, "", "claim and expression can't both be set")]
    if expression:
        errs = _compiling_errors(lambda: compile_claims(expression), path.child("expression"), expression)
        if mapping.get("prefix") is not None:
            detail = "may not be specified when expression is set"
            return [invalid(path.child("prefix"), mapping["prefix"], detail), *errs]
        return errs
    if not claim:
        return [required(path, "claim or expression is required")] if needed else []
    if mapping.get("prefix") is None:
        detail = "prefix is required when claim is set. It can be set to an empty string to disable prefixing"
        return [required(path.child("prefix"), detail)]
    return []
