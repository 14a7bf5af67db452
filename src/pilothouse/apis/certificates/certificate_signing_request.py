"""Certificate signing requests: who may change what.

create      stamps who asks; drops any status
update      changes metadata only
/approval   changes conditions: Approved, Denied and others
/status     sets the certificate, once, and conditions other than Approved and Denied
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Final

from pilothouse.apis.certificates.x509 import check_certificates, check_request
from pilothouse.apis.columns import AGE, NAME
from pilothouse.apis.core.pod_spec.signers import validate_signer_name
from pilothouse.apis.error_lists import ErrorList
from pilothouse.apis.status import clear_status
from pilothouse.apis.strategy import Column, Context, Strategy, keep
from pilothouse.apis.strategy_rules import MetadataRules
from pilothouse.apis.validation import repeats
from pilothouse.machinery import base64_text, times
from pilothouse.machinery.field_errors import FieldError, Path, duplicate, forbidden, invalid, not_supported, required
from pilothouse.machinery.objects import Object

_SPEC: Final = Path("spec")
_CONDITIONS: Final = Path("status", "conditions")
_CERTIFICATE: Final = Path("status", "certificate")
_FINAL: Final = ("Approved", "Denied", "Failed")
LEGACY_SIGNER: Final = "kubernetes.io/legacy-unknown"
_SHORTEST: Final = 600
USAGES: Final = (
    "any", "cert sign", "client auth", "code signing", "content commitment", "crl sign", "data encipherment",
    "decipher only", "digital signature", "email protection", "encipher only", "ipsec end system", "ipsec tunnel",
    "ipsec user", "key agreement", "key encipherment", "microsoft sgc", "netscape sgc", "ocsp signing", "s/mime",
    "server auth", "signing", "timestamping",
)  # fmt: skip


def name_is_anything(name: str, prefix: bool) -> list[str]:
    """Requests are named freely."""
    return []


def validate_request(
    obj: Object,
    old: Object | None = None,
    *,
    sets_approval: bool = False,
    sets_certificate: bool = False,
    lenient: bool = False,
) -> list[FieldError]:
    """Errors of a request; what was wrong before may stay, and where the rules are ``lenient`` much more."""
    errs = ErrorList()
    spec = obj["spec"]
    request = spec.get("request")
    why = check_request(_bytes(request or ""))
    if why:
        errs.errors.append(invalid(_SPEC.child("request"), request, why))
    _validate_usages(spec.get("usages") or [], old, errs.errors, lenient=lenient)
    signer = spec.get("signerName", "")
    if signer == LEGACY_SIGNER and not lenient and (old is None or old["spec"].get("signerName") != LEGACY_SIGNER):
        why = "the legacy signerName is not allowed via this API version"
        errs.errors.append(invalid(_SPEC.child("signerName"), signer, why))
    else:
        validate_signer_name(signer, _SPEC.child("signerName"), errs.errors)
    seconds = spec.get("expirationSeconds")
    if seconds is not None and seconds < _SHORTEST:
        why = "may not specify a duration less than 600 seconds (10 minutes)"
        errs.errors.append(invalid(_SPEC.child("expirationSeconds"), seconds, why))
    _validate_conditions(_conditions(obj), _conditions(old), errs, lenient=lenient)
    if not lenient:
        _validate_certificate(obj, old, errs.errors)
    if old is not None:
        _validate_change(obj, old, errs.errors, sets_approval, sets_certificate, lenient=lenient)
    return errs.listed()


def _bytes(text: str) -> bytes:
    return base64_text.decode(text)


def _conditions(obj: Object | None) -> list[Object]:
    return ((obj or {}).get("status") or {}).get("conditions") or []


def _certificate(obj: Object) -> str:
    return str((obj.get("status") or {}).get("certificate") or "")


def _validate_usages(usages: list[str], old: Object | None, errs: list[FieldError], *, lenient: bool) -> None:
    path = _SPEC.child("usages")
    before = (old["spec"].get("usages") or []) if old is not None else []
    if not usages:
        errs.append(required(path))
    if lenient:
        return
    if all(usage in USAGES for usage in before):
        errs += (not_supported(path.index(at), usage, USAGES) for at, usage in enumerate(usages) if usage not in USAGES)
    if len(set(before)) == len(before):
        errs += (duplicate(path.index(at), usages[at]) for at in sorted(repeats(usages)))


def _validate_conditions(conditions: list[Object], before: list[Object], errs: ErrorList, *, lenient: bool) -> None:
    had = [condition.get("type", "") for condition in before]
    types = [condition.get("type", "") for condition in conditions]
    twice = repeats(types) if len(set(had)) == len(had) and not lenient else ()
    for at, condition in enumerate(conditions):
        path, status = _CONDITIONS.index(at), condition.get("status", "")
        if not types[at] and "" not in had and not lenient:
            errs.errors.append(required(path.child("type")))
        allowed = ("True",) if types[at] in _FINAL else ("False", "True", "Unknown")
        if not status:
            errs.errors.append(required(path.child("status")))
        elif status not in allowed:
            errs.errors.append(not_supported(path.child("status"), status, allowed))
        if at in twice:
            errs.errors.append(duplicate(path.child("type"), types[at]))
    if {"Approved", "Denied"} <= set(types) and not {"Approved", "Denied"} <= set(had):
        members = [f'conditions[{{"type": "{name}"}}]' for name in ("Approved", "Denied")]
        why = f"must specify at most one of: {', '.join(f'`{member}`' for member in members)}"
        errs.declared.append(invalid(_CONDITIONS, f"{{{', '.join(members)}}}", why))


def _validate_certificate(obj: Object, old: Object | None, errs: list[FieldError]) -> None:
    certificate = _certificate(obj)
    if old is not None and (certificate == _certificate(old) or check_certificates(_bytes(_certificate(old)))):
        return
    why = check_certificates(_bytes(certificate))
    if why:
        errs.append(invalid(_CERTIFICATE, "<certificate data>", why))


def _validate_change(
    obj: Object, old: Object, errs: list[FieldError], approval: bool, certificate: bool, *, lenient: bool
) -> None:
    now = [condition.get("type") for condition in _conditions(obj)]
    had = [condition.get("type") for condition in _conditions(old)]
    removed = [name for name in _FINAL if now.count(name) < had.count(name)]
    errs += (forbidden(_CONDITIONS, f'updates may not remove a condition of type "{name}"') for name in removed)
    added = [name for name in ("Approved", "Denied") if now.count(name) > had.count(name) and not approval]
    errs += (forbidden(_CONDITIONS, f'updates may not add a condition of type "{name}"') for name in added)
    if _certificate(obj) != _certificate(old):
        if not certificate:
            errs.append(forbidden(_CERTIFICATE, "updates may not set certificate content"))
        elif _certificate(old) and not lenient:
            errs.append(forbidden(_CERTIFICATE, "updates may not modify existing certificate content"))


def _stamp_times(obj: Object, old: Object, now: str) -> None:
    """Conditions without times get them; a transition keeps its time while the status stays."""
    for condition in _conditions(obj):
        if not condition.get("lastUpdateTime"):
            condition["lastUpdateTime"] = now
        if not condition.get("lastTransitionTime"):
            condition["lastTransitionTime"] = next(
                (_transition(c) for c in _conditions(old) if _same(c, condition)), now
            )


def _transition(condition: Object) -> str:
    return str(condition["lastTransitionTime"])


def _same(old: Object, condition: Object) -> bool:
    unchanged = all(old.get(key) == condition.get(key) for key in ("type", "status"))
    return unchanged and bool(old.get("lastTransitionTime"))


class _Part(Strategy):
    validate_name = staticmethod(name_is_anything)
    metadata_rules = MetadataRules(free_names=True)
    lenient: ClassVar[bool] = False
    """Whether what the first version let pass is let pass."""


class ApprovalStrategy(_Part):
    """``/approval``."""

    reset_fields = ("spec", "status.certificate")

    def prepare_for_update(self, ctx: Context, obj: Object, old: Object) -> None:
        _stamp_times(obj, old, ctx.now)
        status = dict(old.get("status") or {})
        keep(status, obj.get("status") or {}, "conditions")
        keep(obj, old, "spec")
        obj["status"] = status

    def validate_update(self, ctx: Context, obj: Object, old: Object) -> list[FieldError]:
        return validate_request(obj, old, sets_approval=True, lenient=self.lenient)


class SigningStatusStrategy(_Part):
    """``/status``: decisions made through ``/approval`` come back as they were."""

    reset_fields = ("spec", "status.conditions")

    def prepare_for_update(self, ctx: Context, obj: Object, old: Object) -> None:
        keep(obj, old, "spec")
        conditions, before = _conditions(obj), _conditions(old)
        for name in ("Approved", "Denied"):
            places = [at for at, condition in enumerate(conditions) if condition.get("type") == name]
            kept = [condition for condition in before if condition.get("type") == name]
            if len(places) == len(kept):
                for at, condition in zip(places, kept, strict=True):
                    conditions[at] = condition
            elif self.lenient:
                obj["status"] = {**(obj.get("status") or {}), "conditions": before}
                break
        _stamp_times(obj, old, ctx.now)

    def validate_update(self, ctx: Context, obj: Object, old: Object) -> list[FieldError]:
        return validate_request(obj, old, sets_certificate=True, lenient=self.lenient)


def _state(obj: Object) -> str:
    types = {condition.get("type") for condition in _conditions(obj)}
    state = "Denied" if "Denied" in types else "Approved" if "Approved" in types else "Pending"
    return state + (",Failed" if "Failed" in types else "") + (",Issued" if _certificate(obj) else "")


def _duration(obj: Object) -> str:
    seconds = obj["spec"].get("expirationSeconds")
    return "<none>" if seconds is None else times.human_duration(seconds)


# Described in the words of the beta version, which the documentation package no longer has.
_SIGNER_WORDS: Final = (
    "Requested signer for the request. It is a qualified name in the form: `scope-hostname.io/name`. If "
    "empty, it will be defaulted:\n"
    " 1. If it's a kubelet client certificate, it is assigned\n"
    '    "kubernetes.io/kube-apiserver-client-kubelet".\n'
    " 2. If it's a kubelet serving certificate, it is assigned\n"
    '    "kubernetes.io/kubelet-serving".\n'
    ' 3. Otherwise, it is assigned "kubernetes.io/legacy-unknown".\n'
    "Distribution of trust for signers happens out of band. You can select on this field using "
    "`spec.signerName`."
)
_REQUEST_WORDS: Final = "Base64-encoded PKCS#10 CSR data"
_DURATION_WORDS: Final = (
    "expirationSeconds is the requested duration of validity of the issued certificate. The certificate "
    "signer may issue a certificate with a different validity duration so a client must check the delta "
    "between the notBefore and and notAfter fields in the issued certificate to determine the actual "
    "duration.\n"
    "\n"
    "The v1.22+ in-tree implementations of the well-known Kubernetes signers will honor this field as "
    "long as the requested duration is not greater than the maximum duration they will honor per the "
    "--cluster-signing-duration CLI flag to the Kubernetes controller manager.\n"
    "\n"
    "Certificate signers may not honor this field for various reasons:\n"
    "\n"
    "  1. Old signer that is unaware of the field (such as the in-tree\n"
    "     implementations prior to v1.22)\n"
    "  2. Signer whose configured maximum is shorter than the requested duration\n"
    "  3. Signer whose configured minimum is longer than the requested duration\n"
    "\n"
    "The minimum valid value for expirationSeconds is 600, i.e. 10 minutes."
)
_CONDITION_WORDS: Final = "Conditions applied to the request, such as approval or denial."


class SigningRequestStrategy(_Part):
    """Certificate signing requests."""

    subresources: ClassVar[Mapping[str, type[Strategy]]] = {
        "approval": ApprovalStrategy,
        "status": SigningStatusStrategy,
    }
    field_labels = frozenset({"spec.signerName"})
    reset_fields = ("spec", "status")
    columns = (
        NAME,
        AGE,
        Column(
            "SignerName",
            "string",
            lambda o: o["spec"].get("signerName") or "<none>",
            description=_SIGNER_WORDS,
        ),
        Column("Requestor", "string", lambda o: o["spec"].get("username", ""), description=_REQUEST_WORDS),
        Column("RequestedDuration", "string", _duration, description=_DURATION_WORDS),
        Column("Condition", "string", _state, description=_CONDITION_WORDS),
    )

    def fields(self, obj: Object) -> dict[str, str]:
        return {"spec.signerName": obj["spec"].get("signerName", "")}

    def convert_field(self, name: str, value: str) -> tuple[str, str]:
        return convert_cluster_field(self.field_labels, name, value)

    def prepare_for_create(self, ctx: Context, obj: Object) -> None:
        spec = obj["spec"]
        stamped: dict[str, Any] = {
            "username": ctx.user,
            "uid": ctx.user_uid,
            "groups": list(ctx.groups),
            "extra": {key: list(values) for key, values in ctx.user_extra.items()},
        }
        for key, value in stamped.items():
            spec.pop(key, None)
            if value:
                spec[key] = value
        clear_status(obj, "certificates.v1.CertificateSigningRequest")

    def prepare_for_update(self, ctx: Context, obj: Object, old: Object) -> None:
        keep(obj, old, "spec", "status")

    def validate(self, ctx: Context, obj: Object) -> list[FieldError]:
        return validate_request(obj, lenient=self.lenient)

    def validate_update(self, ctx: Context, obj: Object, old: Object) -> list[FieldError]:
        return validate_request(obj, old, lenient=self.lenient)


def convert_cluster_field(labels: frozenset[str], name: str, value: str) -> tuple[str, str]:
    """Fields of kinds that know their name and these labels only, not a namespace."""
    if name == "metadata.name" or name in labels:
        return name, value
    raise ValueError(f"field label not supported: {name}")
