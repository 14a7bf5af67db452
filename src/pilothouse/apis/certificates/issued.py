"""What makes an issued pod certificate wrong: it is for the requested key, from now on, for a time within bounds."""

from __future__ import annotations

import base64
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Final

from pilothouse.apis.certificates.pem import blocks
from pilothouse.apis.certificates.possession import KEY, read_public_key
from pilothouse.apis.certificates.x509 import read_certificate, read_request
from pilothouse.machinery import times
from pilothouse.machinery.field_errors import OMIT_VALUE, FieldError, Path, invalid, required, too_long
from pilothouse.machinery.objects import Object
from pilothouse.net.odd_certificates import unreadable

if TYPE_CHECKING:
    from cryptography.x509 import Certificate

CHAIN_LIMIT: Final = 100 * 1024
_STATUS: Final = Path("status")
_CHAIN: Final = _STATUS.child("certificateChain")
_STUB: Final = Path("spec", "stubPKCS10Request")
_SKEW: Final = timedelta(minutes=5)
_MARGIN: Final = timedelta(minutes=10)


def validate_issued(status: Object, spec: Object, now: str) -> list[FieldError]:
    """Errors of an issued status; the first error of each step ends it."""
    chain: str = status.get("certificateChain", "")
    if len(chain.encode()) > CHAIN_LIMIT:
        return [too_long(_CHAIN, "", CHAIN_LIMIT)]
    found = list(blocks(chain.encode()))
    if not found:
        return [invalid(_CHAIN, chain, "issued certificate chain must contain at least one certificate")]
    if found[0].label != "CERTIFICATE":
        return [invalid(_CHAIN, chain, "issued certificate chain must consist entirely of CERTIFICATE PEM blocks")]
    leaf = read_certificate(found[0].content)
    if leaf is None:
        return [invalid(_CHAIN, chain, "leaf certificate does not parse as valid X.509")]
    errs = _name_errors(leaf)
    errs += _key_errors(leaf, spec, chain) or _time_errors(status, leaf, spec, now, bool(errs))
    if errs:
        return errs
    for block in found[1:]:
        if block.label != "CERTIFICATE":
            return [invalid(_CHAIN, chain, "issued certificate chain must consist entirely of CERTFICATE PEM blocks")]
        if read_certificate(block.content) is None:
            return [invalid(_CHAIN, chain, "intermediate certificate does not parse as valid X.509")]
    return []


def _name_errors(leaf: Certificate) -> list[FieldError]:
    from cryptography.x509 import DNSName, ExtensionNotFound, RFC822Name, SubjectAlternativeName

    try:
        names = leaf.extensions.get_extension_for_class(SubjectAlternativeName).value
    except unreadable(ExtensionNotFound):
        return []
    errs = []
    for name in names.get_values_for_type(DNSName):
        if not name:
            errs.append(invalid(_CHAIN, name, "leaf certificate should not contain empty DNSName"))
        if ".." in name:
            errs.append(invalid(_CHAIN, name, "leaf certificate's DNSName should not contain '..'"))
        if name.startswith(".") or name.endswith("."):
            errs.append(invalid(_CHAIN, name, "leaf certificate's DNSName should not start or end with '.'"))
    for address in names.get_values_for_type(RFC822Name):
        local, at, domain = address.rpartition("@")
        if not (local and at and domain) or " " in address:
            errs.append(invalid(_CHAIN, address, "leaf certificate should not contain invalid EmailAddress"))
    return errs


def _key_errors(leaf: Certificate, spec: Object, chain: str) -> list[FieldError]:
    stub = base64.b64decode(spec.get("stubPKCS10Request") or "")
    request = read_request(stub)
    if stub and request is None:
        return [invalid(_STUB, OMIT_VALUE, "must be a valid PKCS#10 CSR")]
    wanted = request.public_key() if request else read_public_key(base64.b64decode(spec.get("pkixPublicKey") or ""))
    if wanted is None:
        return [invalid(KEY, OMIT_VALUE, "must be a valid PKIX-serialized public key")]
    if wanted != leaf.public_key():
        return [invalid(_CHAIN, chain, "leaf certificate was not issued to the requested public key")]
    return []


def _time_errors(status: Object, leaf: Certificate, spec: Object, now: str, invalid_before: bool) -> list[FieldError]:
    errs = [
        required(_STATUS.child(name), "must be present and consistent with the issued certificate")
        for name in ("notBefore", "notAfter")
        if not status.get(name)
    ]
    if not status.get("beginRefreshAt"):
        why = "must be present and in the range [notbefore+10min, notafter-10min]"
        errs.append(required(_STATUS.child("beginRefreshAt"), why))
    if errs or invalid_before:
        return errs
    start, end, refresh = (_time(status[name]) for name in ("notBefore", "notAfter", "beginRefreshAt"))
    lifetime = leaf.not_valid_after_utc - leaf.not_valid_before_utc
    most = spec.get("maxExpirationSeconds", 0)
    rules = (
        (
            start == leaf.not_valid_before_utc,
            "notBefore",
            "must be set to the NotBefore time encoded in the leaf certificate",
        ),
        (
            abs(start - _time(now)) < _SKEW,
            "notBefore",
            "must be set to within 5 minutes of kube-apiserver's current time",
        ),
        (
            end == leaf.not_valid_after_utc,
            "notAfter",
            "must be set to the NotAfter time encoded in the leaf certificate",
        ),
        (lifetime >= timedelta(hours=1), "", "leaf certificate lifetime must be >= 1 hour"),
        (
            lifetime <= timedelta(seconds=most),
            "",
            f"leaf certificate lifetime must be <= spec.maxExpirationSeconds ({most})",
        ),
        (refresh >= start + _MARGIN, "beginRefreshAt", "must be at least 10 minutes after status.notBefore"),
        (refresh <= end - _MARGIN, "beginRefreshAt", "must be at least 10 minutes before status.notAfter"),
    )
    for holds, name, why in rules:
        if not holds:
            # Durations show as nanoseconds: kube-apiserver prints their JSON.
            value = status[name] if name else int(lifetime.total_seconds()) * 10**9
            return [invalid(_STATUS.child(name) if name else _CHAIN, value, why)]
    return []


def _time(text: str) -> datetime:
    instant = times.parse_time(text)
    return datetime.fromtimestamp(instant.seconds, UTC)
