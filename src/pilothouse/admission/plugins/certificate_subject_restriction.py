"""CertificateSubjectRestriction: the signer of client certificates signs nobody into ``system:masters``."""

from __future__ import annotations

from typing import Final

from pilothouse.admission.plugin import Plugin
from pilothouse.admission.refusals import forbidden
from pilothouse.apis.certificates.pem import blocks
from pilothouse.apis.certificates.x509 import check_request, read_request
from pilothouse.endpoints.admission import CREATE, Attributes
from pilothouse.machinery import base64_text
from pilothouse.machinery.gvk import GroupResource
from pilothouse.machinery.user import SYSTEM_MASTERS
from pilothouse.machinery.workers import weighed

_SIGNER: Final = "kubernetes.io/kube-apiserver-client"


class CertificateSubjectRestriction(Plugin):
    """See the module's docstring."""

    name = "CertificateSubjectRestriction"
    operations = frozenset({CREATE})
    resources = frozenset({GroupResource("certificates.k8s.io", "certificatesigningrequests")})

    async def validate(self, attributes: Attributes) -> None:
        """Look at the subject's organizations."""
        spec = (attributes.object or {}).get("spec") or {}
        if spec.get("signerName") != _SIGNER:
            return
        try:
            request = spec.get("request", "")
            organizations = await weighed(len(request), subject_values, request, "O")
        except ValueError as error:
            raise forbidden(attributes, f"failed to parse CSR: {error}") from None
        if SYSTEM_MASTERS in organizations:
            raise forbidden(attributes, f"use of {_SIGNER} signer with {SYSTEM_MASTERS} group is not allowed")


def subject_values(encoded: str, attribute: str) -> list[str]:
    """The values of a subject's attribute (CN, O) in a base64-encoded PEM request; ValueError if it cannot be read."""
    from cryptography.x509.oid import NameOID

    try:
        pem = base64_text.decode(encoded)
    except ValueError:
        pem = b""
    first = next(blocks(pem), None)
    request = read_request(first.content) if first is not None and first.label == "CERTIFICATE REQUEST" else None
    if request is None:
        raise ValueError(check_request(pem))
    oid = NameOID.ORGANIZATION_NAME if attribute == "O" else NameOID.COMMON_NAME
    return [str(each.value) for each in request.subject.get_attributes_for_oid(oid)]
