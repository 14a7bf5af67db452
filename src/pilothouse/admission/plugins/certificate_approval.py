"""CertificateApproval: only who may approve for a signer approves requests to it."""

from __future__ import annotations

from pilothouse.admission.plugin import Plugin
from pilothouse.admission.refusals import forbidden
from pilothouse.admission.signers import may_act_for_signer
from pilothouse.endpoints.admission import UPDATE, Attributes
from pilothouse.machinery.go_quote import quote
from pilothouse.machinery.gvk import GroupResource


class CertificateApproval(Plugin):
    """See the module's docstring."""

    name = "CertificateApproval"
    operations = frozenset({UPDATE})
    resources = frozenset({GroupResource("certificates.k8s.io", "certificatesigningrequests")})
    subresources = frozenset({"approval"})

    async def validate(self, attributes: Attributes) -> None:
        """Ask about the signer of the stored request, which the update cannot change."""
        signer = ((attributes.old_object or {}).get("spec") or {}).get("signerName", "")
        if not await may_act_for_signer(self.environment, attributes.user, "approve", signer):
            raise forbidden(attributes, f"user not permitted to approve requests with signerName {quote(signer)}")
