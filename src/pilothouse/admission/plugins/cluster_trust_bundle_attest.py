"""ClusterTrustBundleAttest: only who may attest for a signer publishes what to trust in its name."""

from __future__ import annotations

from typing import Any, Final

from pilothouse.admission.plugin import Plugin
from pilothouse.admission.refusals import forbidden
from pilothouse.admission.signers import may_act_for_signer
from pilothouse.endpoints.admission import CREATE, UPDATE, Attributes
from pilothouse.machinery.go_quote import quote
from pilothouse.machinery.gvk import GroupResource

_COLLECTED: Final = ("ownerReferences", "finalizers", "selfLink", "managedFields")


class ClusterTrustBundleAttest(Plugin):
    """See the module's docstring."""

    name = "ClusterTrustBundleAttest"
    operations = frozenset({CREATE, UPDATE})
    resources = frozenset({GroupResource("certificates.k8s.io", "clustertrustbundles")})
    subresources = None

    def concerns(self, operation: str, resource: GroupResource, subresource: str) -> bool:
        """Only where bundles are switched on."""
        return self.environment.enabled("ClusterTrustBundle") and super().concerns(operation, resource, subresource)

    async def validate(self, attributes: Attributes) -> None:
        """Ask, unless garbage collection alone changes the bundle."""
        bundle = attributes.object or {}
        signer = (bundle.get("spec") or {}).get("signerName", "")
        if not signer or (attributes.operation == UPDATE and _is_only_collected(bundle, attributes.old_object or {})):
            return
        if not await may_act_for_signer(self.environment, attributes.user, "attest", signer):
            raise forbidden(attributes, f"user not permitted to attest for signerName {quote(signer)}")


def _is_only_collected(obj: dict[str, Any], old: dict[str, Any]) -> bool:
    return _without_collected(obj) == _without_collected(old)


def _without_collected(obj: dict[str, Any]) -> dict[str, Any]:
    metadata = {key: value for key, value in (obj.get("metadata") or {}).items() if key not in _COLLECTED}
    return {**obj, "metadata": metadata}
