"""Pod certificate requests: made by kubelets for pods, answered once by a signer through ``/status``.

Whether the writer of a status may sign for the request's signer is decided by authorization, not here.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import Any, ClassVar, Final

from pilothouse.apis.certificates.certificate_signing_request import convert_cluster_field
from pilothouse.apis.certificates.issued import validate_issued
from pilothouse.apis.certificates.possession import possession_errors
from pilothouse.apis.certificates.x509 import check_key, check_signature, read_request
from pilothouse.apis.columns import NAME
from pilothouse.apis.conditions import validate_conditions
from pilothouse.apis.core.internal_form import internal_form
from pilothouse.apis.core.pod_spec.signers import is_kubernetes_signer, validate_signer_name
from pilothouse.apis.metadata import ANNOTATIONS_LIMIT, IMMUTABLE
from pilothouse.apis.status import ResettingStatusStrategy, StatusKeeper
from pilothouse.apis.strategy import Column, Context, Doc, Strategy
from pilothouse.apis.strategy_rules import UpdateRules
from pilothouse.machinery import names
from pilothouse.machinery.field_errors import OMIT_VALUE, FieldError, Path, invalid, not_supported, required, too_long
from pilothouse.machinery.objects import Object

_SPEC: Final = Path("spec")
_STATUS: Final = Path("status")
_STUB: Final = _SPEC.child("stubPKCS10Request")
_KEY_FIELDS: Final = ("stubPKCS10Request", "pkixPublicKey", "proofOfPossession")
_UID_LIMIT: Final = 128
_STUB_LIMIT: Final = 10 * 1024
_SHORTEST: Final = 3600
_LONGEST: Final = 91 * 24 * 3600
_LONGEST_OF_KUBERNETES: Final = 24 * 3600
_OUTCOMES: Final = ("Issued", "Denied", "Failed")


def validate_pod_request(obj: Object) -> list[FieldError]:
    """Errors of a new request."""
    errs: list[FieldError] = []
    spec = obj["spec"]
    signer = spec.get("signerName", "")
    validate_signer_name(signer, _SPEC.child("signerName"), errs)
    annotations = spec.get("unverifiedUserAnnotations")
    if annotations is not None:
        _validate_annotations(annotations, _SPEC.child("unverifiedUserAnnotations"), errs)
    for who in ("pod", "serviceAccount", "node"):
        name, uid = spec.get(f"{who}Name", ""), spec.get(f"{who}UID", "")
        errs += (invalid(_SPEC.child(f"{who}Name"), name, m) for m in names.check_dns1123_subdomain(name))
        if not uid:
            errs.append(invalid(_SPEC.child(f"{who}UID"), uid, "must not be empty"))
        if len(uid.encode()) > _UID_LIMIT:
            errs.append(too_long(_SPEC.child(f"{who}UID"), uid, _UID_LIMIT))
    seconds = spec.get("maxExpirationSeconds")
    if seconds is None:
        return [*errs, required(_SPEC.child("maxExpirationSeconds"), "must be set")]
    longest = _LONGEST_OF_KUBERNETES if is_kubernetes_signer(signer) else _LONGEST
    if not _SHORTEST <= seconds <= longest:
        why = f"must be in the range [{_SHORTEST}, {longest}]"
        errs.append(invalid(_SPEC.child("maxExpirationSeconds"), seconds, why))
    stub, key, proof = (base64.b64decode(spec.get(field) or "") for field in _KEY_FIELDS)
    if stub and not key and not proof:
        return errs + _stub_errors(stub)
    if key and proof and not stub:
        return errs + possession_errors(key, proof, spec.get("podUID", ""))
    why = "exactly one of (stubPKCS10Request) or (pkixPublicKey, proofOfPossession) must be set"
    return [*errs, invalid(_SPEC, OMIT_VALUE, why)]


def _validate_annotations(annotations: dict[str, str], path: Path, errs: list[FieldError]) -> None:
    for key in annotations:
        errs += names.check_domain_prefixed_key(path, key.lower())
    if sum(len(key.encode()) + len(value.encode()) for key, value in annotations.items()) > ANNOTATIONS_LIMIT:
        errs.append(too_long(path, "", ANNOTATIONS_LIMIT))


def _stub_errors(stub: bytes) -> list[FieldError]:
    if len(stub) > _STUB_LIMIT:
        return [too_long(_STUB, "", _STUB_LIMIT)]
    request = read_request(stub)
    if request is None:
        return [invalid(_STUB, OMIT_VALUE, "must be a valid PKCS#10 CSR")]
    try:
        key: Any = request.public_key()
    except ValueError:
        key = None
    shown, why = check_key(key)
    if why:
        return [invalid(_STUB, OMIT_VALUE if shown is None else shown, why)]
    return [invalid(_STUB, OMIT_VALUE, "invalid signature")] if check_signature(request) else []


def validate_answer(obj: Object, old: Object, now: str) -> list[FieldError]:
    """Errors of a status: it changes once, to an outcome, and an issued certificate must be what was asked for."""
    errs: list[FieldError] = []
    status, before = obj.get("status") or {}, old.get("status") or {}
    _validate_outcomes(status.get("conditions") or (), errs)
    validate_conditions(status.get("conditions"), _STATUS.child("conditions"), errs)
    if errs:
        return errs
    if _outcome(before):
        why = "immutable after PodCertificateRequest is issued, denied, or failed"
        return [] if status == before else [invalid(_STATUS, OMIT_VALUE, why)]
    outcome = _outcome(status)
    if outcome in ("Denied", "Failed"):
        why = "non-condition status fields must be empty when denying or failing the PodCertificateRequest"
        return [invalid(_STATUS, OMIT_VALUE, why)] if set(status) - {"conditions"} else []
    if outcome == "Issued":
        return validate_issued(status, old["spec"], now)
    why = 'status is immutable unless transitioning to "Issued", "Denied", or "Failed"'
    return [] if status == before else [invalid(_STATUS, OMIT_VALUE, why)]


def _validate_outcomes(conditions: Any, errs: list[FieldError]) -> None:
    known = 0
    for position, condition in enumerate(conditions):
        path = _STATUS.child("conditions", f"[{position}]")
        named, value = condition.get("type", ""), condition.get("status", "")
        if named not in _OUTCOMES:
            errs.append(not_supported(path.child("type"), named, _OUTCOMES, plain=True))
            continue
        known += 1
        if known > 1:
            why = 'There may be at most one condition with type "Issued", "Denied", or "Failed"'
            errs.append(invalid(path.child("type"), named, why))
        if value != "True":
            errs.append(not_supported(path.child("status"), value, ("True",)))


def _outcome(status: Object) -> str:
    for condition in status.get("conditions") or ():
        if condition.get("type") in _OUTCOMES and condition.get("status") == "True":
            return str(condition["type"])
    return ""


class PodRequestStatusStrategy(ResettingStatusStrategy):
    """The signer's answer."""

    update_rules = UpdateRules(allow_unconditional=False)

    def validate_update(self, ctx: Context, obj: Object, old: Object) -> list[FieldError]:
        return validate_answer(obj, old, ctx.now)


def _state(obj: Object) -> str:
    state = "Pending"
    for condition in (obj.get("status") or {}).get("conditions") or ():
        if condition.get("type") in _OUTCOMES:
            state = condition["type"]
    return state


def _annotations(obj: Object) -> str:
    annotations = obj["spec"].get("unverifiedUserAnnotations") or {}
    return ",".join(f"{key}={annotations[key]}" for key in sorted(annotations)) or "<none>"


def _column(title: str, field: str) -> Column:
    doc = Doc("certificates.v1.PodCertificateRequestSpec", field)
    return Column(title, "string", lambda o: o["spec"].get(field, ""), description=doc)


class PodRequestStrategy(StatusKeeper):
    """Pod certificate requests: the spec never changes."""

    type_name = "certificates.v1beta1.PodCertificateRequest"
    update_rules = UpdateRules(allow_unconditional=False)
    subresources: ClassVar[Mapping[str, type[Strategy]]] = {"status": PodRequestStatusStrategy}
    field_labels = frozenset({"spec.signerName", "spec.podName", "spec.nodeName"})
    columns = (
        NAME,
        _column("PodName", "podName"),
        _column("ServiceAccountName", "serviceAccountName"),
        _column("NodeName", "nodeName"),
        _column("SignerName", "signerName"),
        Column("State", "string", _state, description="Is the request Pending, Issued, Denied, or Failed?"),
        Column(
            "UnverifiedUserAnnotations",
            "string",
            _annotations,
            description=Doc("certificates.v1.PodCertificateRequestSpec", "unverifiedUserAnnotations"),
        ),
    )

    def fields(self, obj: Object) -> dict[str, str]:
        return {label: obj["spec"].get(label.removeprefix("spec."), "") for label in self.field_labels}

    def convert_field(self, name: str, value: str) -> tuple[str, str]:
        return convert_cluster_field(self.field_labels, name, value)

    def default(self, obj: Object) -> None:
        obj["spec"].setdefault("maxExpirationSeconds", 86400)

    def validate(self, ctx: Context, obj: Object) -> list[FieldError]:
        return validate_pod_request(obj)

    def validate_update(self, ctx: Context, obj: Object, old: Object) -> list[FieldError]:
        if obj["spec"] == old["spec"]:
            return []
        shown = internal_form("certificates.v1beta1.PodCertificateRequestSpec", obj["spec"])
        return [invalid(_SPEC, shown, IMMUTABLE)]
