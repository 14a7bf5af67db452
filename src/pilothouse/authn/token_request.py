"""The TokenRequest API: turns a request for a token into the claims of one.

The caller reads the service account (and answers 404 for a missing one) and calls ``complete``, runs admission, then
``issue`` with the objects that the request may be bound to. Both change the request in place, as the answer shows it.
"""

from __future__ import annotations

import datetime
import uuid
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple, Protocol

from pilothouse.authn.external_signer import SigningFailed
from pilothouse.authn.service_account import ObjectGetter
from pilothouse.machinery import errors
from pilothouse.machinery.addressing import check_looked_up
from pilothouse.machinery.field_errors import FieldError, Path, invalid, not_supported
from pilothouse.machinery.go_quote import quote
from pilothouse.machinery.gvk import GroupKind, GroupResource, GroupVersionKind, parse_group_version
from pilothouse.machinery.names import check_dns1123_subdomain
from pilothouse.machinery.times import format_duration
from pilothouse.machinery.user import service_account_name

KIND: Final = GroupKind("authentication.k8s.io", "TokenRequest")
MIN_SECONDS: Final = 10 * 60
MAX_SECONDS: Final = 1 << 32
# Kubelets ask for this odd lifetime for the tokens they mount; only those are extended.
WARN_ONLY_SECONDS: Final = 60 * 60 + 7
EXTENDED_SECONDS: Final = 365 * 24 * 60 * 60
_WEBHOOK_CONFIGURATIONS: Final = ("ValidatingWebhookConfiguration", "MutatingWebhookConfiguration")
_WEBHOOK_VERSION: Final = "admissionregistration.k8s.io/v1"
_ATTESTATION: Final = "admissionReviewAPIGroups"
_GATE: Final = "APIServerWebhookAuthenticationToken"


class Issued(NamedTuple):
    """The answer, what to warn the client about, and the annotation for audit."""

    request: dict[str, Any]
    warnings: tuple[str, ...]
    credential_id: str


class ClaimSigner(Protocol):
    """Makes tokens of claims, here or elsewhere."""

    async def sign_claims(self, claims: Mapping[str, Any]) -> str:
        """A token with these claims. Raises SigningFailed."""
        ...


class TokenRequests:
    """Issues tokens in the name of one issuer."""

    def __init__(
        self,
        issuer: str,
        signer: ClaimSigner,
        api_audiences: Sequence[str],
        objects: ObjectGetter,
        clock: Callable[[], float],
        *,
        max_seconds: int = 0,
        extend: bool = True,
        new_id: Callable[[], str] = lambda: str(uuid.uuid4()),
    ) -> None:
        self._issuer = issuer
        self._signer = signer
        self._api_audiences = tuple(api_audiences)
        self._objects = objects
        self._clock = clock
        self._max_seconds = max_seconds
        self._extended_seconds = EXTENDED_SECONDS
        self._extend = extend
        self._new_id = new_id

    def narrow(self, longest: int) -> None:
        """Let no token live longer than the signer allows. Raises ValueError if that is less than was promised."""
        if longest < MIN_SECONDS:
            raise ValueError(
                f"max token life supported by external-jwt-signer ({longest}s) is less than acceptable "
                f"(min {MIN_SECONDS}s)"
            )
        if self._max_seconds > longest:
            raise ValueError(
                "service-account-max-token-expiration cannot be set longer than the token expiration supported by "
                f"service-account-signing-endpoint: {format_duration(self._max_seconds * 10**9)} > "
                f"{format_duration(longest * 10**9)}"
            )
        self._max_seconds = self._max_seconds or longest
        self._extended_seconds = min(longest, self._extended_seconds)

    def complete(self, request: dict[str, Any], account: Mapping[str, Any], name: str) -> None:
        """Fill in what the request leaves out and validate it. Raises StatusError."""
        metadata = request.setdefault("metadata", {})
        actual = account["metadata"]
        uid = metadata.get("uid", "")
        if uid and uid != actual["uid"]:
            raise errors.conflict(
                GroupResource(KIND.group, KIND.kind),
                name,
                f"the UID in the token request ({uid}) does not match the UID of the service account ({actual['uid']})",
            )
        spec = request.setdefault("spec", {})
        if not spec.get("audiences"):
            spec["audiences"] = list(self._api_audiences)
        metadata["name"], metadata["namespace"] = actual["name"], actual["namespace"]
        metadata["uid"] = actual["uid"]
        metadata["creationTimestamp"] = _rfc3339(self._clock())
        if spec.get("expirationSeconds") is None:
            spec["expirationSeconds"] = 3600
        request["status"] = {"token": "", "expirationTimestamp": None}
        errs = validate(request)
        if errs:
            raise errors.invalid(KIND, "", errs)

    async def issue(self, request: dict[str, Any], account: Mapping[str, Any]) -> Issued:
        """Sign the token. Raises StatusError."""
        spec, name = request["spec"], account["metadata"]["name"]
        bound, bound_to_pod = await self._bind(spec.get("boundObjectRef"), name, account["metadata"]["namespace"])
        warnings: list[str] = []
        seconds = spec["expirationSeconds"]
        if 0 < self._max_seconds < seconds:
            warnings.append(f"requested expiration of {seconds} seconds shortened to {self._max_seconds} seconds")
            seconds = spec["expirationSeconds"] = self._max_seconds
        now = self._clock()
        lifetime, warn_after = seconds, 0
        if self._extend and bound_to_pod and seconds == WARN_ONLY_SECONDS and self._for_the_api(spec["audiences"]):
            lifetime, warn_after = self._extended_seconds, seconds
        claims = self._claims(account, bound, spec["audiences"], int(now), lifetime, warn_after)
        try:
            token = await self._signer.sign_claims(claims)
        except SigningFailed as failure:
            raise errors.internal_error(f"failed to generate token: {failure}") from None
        request["status"] = {"token": token, "expirationTimestamp": _rfc3339(now + seconds)}
        return Issued(request, tuple(warnings), f"JTI={claims['jti']}")

    def _for_the_api(self, audiences: Sequence[str]) -> bool:
        return set(audiences) <= set(self._api_audiences)

    def _claims(
        self,
        account: Mapping[str, Any],
        bound: Mapping[str, Any],
        audiences: Sequence[str],
        now: int,
        lifetime: int,
        warn_after: int,
    ) -> dict[str, Any]:
        metadata = account["metadata"]
        private: dict[str, Any] = {
            "namespace": metadata["namespace"],
            "serviceaccount": {"name": metadata["name"], "uid": metadata["uid"]},
            **bound,
        }
        if warn_after:
            private["warnafter"] = now + warn_after
        return {
            "aud": list(audiences),
            "exp": now + lifetime,
            "iat": now,
            "iss": self._issuer,
            "jti": self._new_id(),
            "kubernetes.io": private,
            "nbf": now,
            "sub": service_account_name(metadata["namespace"], metadata["name"]),
        }

    async def _bind(
        self, reference: Mapping[str, Any] | None, account: str, namespace: str
    ) -> tuple[dict[str, Any], bool]:
        if reference is None:
            return {}, False
        kind = _kind_of(reference)
        if kind.group == "" and kind.kind == "Pod":
            pod = await self._get("pods", namespace, reference, kind)
            if pod.get("spec", {}).get("serviceAccountName", "") != account:
                raise errors.bad_request(
                    f"cannot bind token for serviceaccount {quote(account)} to pod running with different "
                    "serviceaccount name."
                )
            _check_uid(pod, reference, kind)
            return {"pod": _reference_to(pod), **await self._node_of(pod)}, True
        if kind.group == "" and kind.kind in ("Node", "Secret"):
            word = kind.kind.lower()
            found = await self._get(f"{word}s", "" if word == "node" else namespace, reference, kind)
            _check_uid(found, reference, kind)
            return {word: _reference_to(found)}, False
        if str(kind.group_version) == _WEBHOOK_VERSION and kind.kind in _WEBHOOK_CONFIGURATIONS:
            raise errors.bad_request(f"cannot bind token to object of type {kind} (feature gate {_GATE} is disabled)")
        raise errors.bad_request(f"cannot bind token to object of type {kind}")

    async def _node_of(self, pod: Mapping[str, Any]) -> dict[str, Any]:
        name = pod.get("spec", {}).get("nodeName", "")
        if not name:
            return {}
        node = await self._objects.get("nodes", "", name)
        # A node that is gone still tells which one it was.
        return {"node": {"name": name} if node is None else _reference_to(node)}

    async def _get(
        self, resource: str, namespace: str, reference: Mapping[str, Any], kind: GroupVersionKind
    ) -> Mapping[str, Any]:
        name = reference.get("name", "")
        check_looked_up(name)
        found = await self._objects.get(resource, namespace, name)
        if found is None:
            raise errors.not_found(GroupResource(kind.group, resource), name)
        return found


def check_names(metadata: Mapping[str, Any], name: str, namespace: str) -> None:
    """A name or namespace in the body must be that of the path. Raises StatusError."""
    for field, given, wanted, word in (
        ("name", metadata.get("name", ""), name, "name"),
        ("namespace", metadata.get("namespace", ""), namespace, "namespace"),
    ):
        if given and given != wanted:
            error = invalid(Path("metadata").child(field), given, f"must match the service account {word} if specified")
            raise errors.invalid(KIND, name, [error])


def validate(request: Mapping[str, Any]) -> list[FieldError]:
    """The errors of a completed request."""
    spec, path = request["spec"], Path("spec")
    seconds = spec["expirationSeconds"]
    errs: list[FieldError] = []
    if seconds < MIN_SECONDS:
        errs.append(
            invalid(path.child("expirationSeconds"), seconds, "may not specify a duration less than 10 minutes")
        )
    if seconds > MAX_SECONDS:
        errs.append(
            invalid(path.child("expirationSeconds"), seconds, "may not specify a duration larger than 2^32 seconds")
        )
    reference, attestations = spec.get("boundObjectRef") or {}, dict(sorted((spec.get("attestations") or {}).items()))
    if reference.get("kind") in _WEBHOOK_CONFIGURATIONS and reference.get("apiVersion") == _WEBHOOK_VERSION:
        if len(spec["audiences"]) != 1:
            detail = "must be length 1 when bound to a webhook config"
            errs.append(invalid(path.child("audiences"), spec["audiences"], detail))
        return errs + _validate_attestations(attestations, path.child("attestations"))
    if attestations:
        detail = "attestations may only be specified with a webhook bound object reference"
        return [invalid(path.child("attestations"), attestations, detail)]
    return errs


def _validate_attestations(attestations: Mapping[str, Any], path: Path) -> list[FieldError]:
    if len(attestations) != 1:
        detail = "webhook bound requests require exactly one admissionReviewAPIGroups attestation"
        return [invalid(path, attestations, detail)]
    ((key, values),) = attestations.items()
    if key != _ATTESTATION:
        return [not_supported(path.key(key), key, [_ATTESTATION], plain=True)]
    if len(values) != 1:
        return [invalid(path.key(key), values, "must specify a single value")]
    where, group = path.key(key).index(0), values[0]
    if not group:
        return [invalid(where, "", "may not be an empty string")]
    errs = [] if group == "*" else check_dns1123_subdomain(group)
    return [invalid(where, group, f"must specify a valid API Group: {error}") for error in errs]


def _kind_of(reference: Mapping[str, Any]) -> GroupVersionKind:
    try:
        version = parse_group_version(reference.get("apiVersion", ""))
    except ValueError:
        return GroupVersionKind("", "", reference.get("kind", ""))
    return GroupVersionKind(version.group, version.version, reference.get("kind", ""))


def _check_uid(found: Mapping[str, Any], reference: Mapping[str, Any], kind: GroupVersionKind) -> None:
    uid = reference.get("uid", "")
    if uid and uid != found["metadata"]["uid"]:
        raise errors.conflict(
            GroupResource(kind.group, kind.kind),
            reference.get("name", ""),
            f"the UID in the bound object reference ({uid}) does not match the UID in record. The object might have "
            "been deleted and then recreated",
        )


def _reference_to(obj: Mapping[str, Any]) -> dict[str, str]:
    return {"name": obj["metadata"]["name"], "uid": obj["metadata"]["uid"]}


def _rfc3339(moment: float) -> str:
    return datetime.datetime.fromtimestamp(int(moment), datetime.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
