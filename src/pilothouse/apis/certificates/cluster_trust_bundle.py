"""Cluster trust bundles: certificates of authorities, named after their signer if they have one."""

from __future__ import annotations

from typing import Final

from pilothouse.apis.certificates.certificate_signing_request import convert_cluster_field
from pilothouse.apis.certificates.x509 import check_trust_anchors
from pilothouse.apis.columns import NAME
from pilothouse.apis.core.pod_spec.signers import check_trust_bundle_name, validate_signer_name
from pilothouse.apis.metadata import IMMUTABLE, validate_names
from pilothouse.apis.object_names import NameValidator
from pilothouse.apis.strategy import Column, Context, Doc, Strategy
from pilothouse.apis.strategy_rules import UpdateRules
from pilothouse.machinery import names
from pilothouse.machinery.field_errors import FieldError, Path, invalid, too_long
from pilothouse.machinery.objects import Object

SIZE_LIMIT: Final = 1024 * 1024
_BUNDLE: Final = Path("spec", "trustBundle")
_SIGNER: Final = Path("spec", "signerName")


def validate_trust_bundle(obj: Object, old: Object | None = None) -> list[FieldError]:
    """Errors of a bundle."""
    errs: list[FieldError] = []
    spec = obj["spec"]
    signer, bundle = spec.get("signerName", ""), spec.get("trustBundle", "")
    if signer:
        validate_signer_name(signer, _SIGNER, errs)
    if old is None or bundle != old["spec"].get("trustBundle", ""):
        data = bundle.encode()
        if len(data) > SIZE_LIMIT:
            errs.append(too_long(_BUNDLE, "", SIZE_LIMIT))
        else:
            errs += (invalid(_BUNDLE, "<value omitted>", why) for why in check_trust_anchors(data))
    if old is not None and signer != old["spec"].get("signerName", ""):
        errs.append(invalid(_SIGNER, signer, IMMUTABLE))
    return errs


class TrustBundleStrategy(Strategy):
    """Cluster trust bundles."""

    update_rules = UpdateRules(allow_unconditional=False)
    field_labels = frozenset({"spec.signerName"})
    columns = (
        NAME,
        Column(
            "SignerName",
            "string",
            lambda o: o["spec"].get("signerName") or "<none>",
            description=Doc("certificates.v1.ClusterTrustBundleSpec", "signerName"),
        ),
    )

    def fields(self, obj: Object) -> dict[str, str]:
        return {"spec.signerName": obj["spec"].get("signerName", "")}

    def convert_field(self, name: str, value: str) -> tuple[str, str]:
        return convert_cluster_field(self.field_labels, name, value)

    def name_rule(self, obj: Object) -> NameValidator:
        """Names begin with that of the signer, if there is one."""
        signer = obj["spec"].get("signerName", "")

        def check(name: str, prefix: bool) -> list[str]:
            return check_trust_bundle_name(names.mask_trailing_dash(name) if prefix else name, signer)

        return check

    def validate(self, ctx: Context, obj: Object) -> list[FieldError]:
        return validate_trust_bundle(obj)

    def validate_update(self, ctx: Context, obj: Object, old: Object) -> list[FieldError]:
        # A changed signer asks for another name, too.
        return validate_names(obj["metadata"], self.name_rule(obj)) + validate_trust_bundle(obj, old)
