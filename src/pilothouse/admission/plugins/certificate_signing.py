"""CertificateSigning: only who may sign for a signer puts certificates or conditions into requests to it."""

from __future__ import annotations

from pilothouse.admission.plugin import Plugin
from pilothouse.admission.refusals import forbidden
from pilothouse.admission.signers import may_act_for_signer
from pilothouse.endpoints.admission import UPDATE, Attributes
from pilothouse.machinery.go_quote import quote
from pilothouse.machinery.gvk import GroupResource


class CertificateSigning(Plugin):
    """See the module's docstring."""

    name = "CertificateSigning"
    operations = frozenset({UPDATE})
    resources = frozenset({GroupResource("certificates.k8s.io", "certificatesigningrequests")})
    subresources = frozenset({"status"})

    async def validate(self, attributes: Attributes) -> None:
        """Ask when the certificate or the conditions change."""
        old, new = attributes.old_object or {}, attributes.object or {}
        before, after = old.get("status") or {}, new.get("status") or {}
        if all((before.get(field) or None) == (after.get(field) or None) for field in ("certificate", "conditions")):
            return
        signer = (old.get("spec") or {}).get("signerName", "")
        if not await may_act_for_signer(self.environment, attributes.user, "sign", signer):
            raise forbidden(attributes, f"user not permitted to sign requests with signerName {quote(signer)}")
