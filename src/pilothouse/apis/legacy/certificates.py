"""Signing requests through certificates.k8s.io/v1beta1: the signer is found out where it is not named, and little
is refused.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Final

from pilothouse.apis.certificates.certificate_signing_request import (
    LEGACY_SIGNER,
    ApprovalStrategy,
    SigningRequestStrategy,
    SigningStatusStrategy,
)
from pilothouse.apis.certificates.pem import blocks
from pilothouse.apis.certificates.x509 import read_request
from pilothouse.apis.legacy.older import Older
from pilothouse.apis.strategy import Strategy
from pilothouse.machinery import base64_text
from pilothouse.machinery.objects import Object
from pilothouse.machinery.user import NODES_GROUP
from pilothouse.net.odd_certificates import unreadable

_USAGES: Final = ("digital signature", "key encipherment")
_OPTIONAL: Final = "key encipherment"
_CLIENT: Final = frozenset({"digital signature", "client auth"})
_SERVING: Final = frozenset({"digital signature", "server auth"})


class LenientApproval(ApprovalStrategy):
    """``/approval``."""

    lenient: ClassVar[bool] = True


class LenientStatus(SigningStatusStrategy):
    """``/status``, which gives decisions back that were left out."""

    lenient: ClassVar[bool] = True


class LenientSigningRequests(SigningRequestStrategy):
    """Signing requests."""

    lenient: ClassVar[bool] = True
    subresources: ClassVar[Mapping[str, type[Strategy]]] = {"approval": LenientApproval, "status": LenientStatus}


def default_request(obj: Object) -> None:
    """Usages of a TLS key, a signer by what is asked for, and conditions that hold."""
    spec = obj["spec"]
    if spec.get("usages") is None:
        spec["usages"] = list(_USAGES)
    if spec.get("signerName") is None:
        spec["signerName"] = signer_of(base64_text.decode(spec.get("request") or ""), spec["usages"])
    for condition in (obj.get("status") or {}).get("conditions") or ():
        if not condition.get("status"):
            condition["status"] = "True"


def signer_of(pem: bytes, usages: list[str]) -> str:
    """The signer of a request that names none: kubelets have their own."""
    from cryptography import x509
    from cryptography.x509.oid import NameOID

    first = next(blocks(pem), None)
    request = None if first is None or first.label != "CERTIFICATE REQUEST" else read_request(first.content)
    if request is None:
        return LEGACY_SIGNER
    organizations = [name.value for name in request.subject.get_attributes_for_oid(NameOID.ORGANIZATION_NAME)]
    names = request.subject.get_attributes_for_oid(NameOID.COMMON_NAME)
    common = str(names[-1].value) if names else ""
    if organizations != [NODES_GROUP] or not common.startswith("system:node:"):
        return LEGACY_SIGNER
    try:
        extension = request.extensions.get_extension_for_class(x509.SubjectAlternativeName)
        subjects = list(extension.value)
    except unreadable(x509.ExtensionNotFound):
        subjects = []
    wanted = frozenset(usages) - {_OPTIONAL}
    if not subjects and wanted == _CLIENT:
        return "kubernetes.io/kube-apiserver-client-kubelet"
    serves = bool(subjects) and all(isinstance(subject, (x509.DNSName, x509.IPAddress)) for subject in subjects)
    return "kubernetes.io/kubelet-serving" if serves and wanted == _SERVING else LEGACY_SIGNER


OLDER: dict[tuple[str, str], Older] = {
    ("v1beta1", "certificatesigningrequests"): Older(default=default_request, strategy=LenientSigningRequests)
}
