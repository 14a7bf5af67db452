"""Cluster trust bundles: certificates of authorities, named after their signer if they have one."""

from __future__ import annotations

from typing import Final

from pilothouse.apis.certificates.signing_request import convert_cluster_field, name_is_anything
from pilothouse.apis.certificates.x509 import check_trust_anchors
from pilothouse.apis.columns import NAME
from pilothouse.apis.core.pod_spec.signers import check_trust_bundle_name, validate_signer_name
from pilothouse.apis.metadata import IMMUTABLE
from pilothouse.apis.strategy import Column, Context, Doc, Object, Strategy
from pilothouse.machinery import names
from pilothouse.machinery.field_errors import FieldError, Path, invalid, too_long

SIZE_LIMIT: Final = 1024 * 1024
_BUNDLE: Final = Path("spec", "trustBundle")
_SIGNER: Final = Path("spec", "signerName")


def validate_trust_bundle(obj: Object, old: Object | None = None) -> list[FieldError]:
    """Faults of a bundle. Which names it may have depends on its signer."""
    errs: list[FieldError] = []
    metadata, spec = obj["metadata"], obj["spec"]
    signer, bundle = spec.get("signerName", ""), spec.get("trustBundle", "")
    for key in ("generateName", "name"):
        name = metadata.get(key)
        if name:
            checked = names.mask_trailing_dash(name) if key == "generateName" else name
            errs += (invalid(Path("metadata", key), name, m) for m in check_trust_bundle_name(checked, signer))
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

    validate_name = staticmethod(name_is_anything)
    allow_unconditional_update = False
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

    def validate(self, ctx: Context, obj: Object) -> list[FieldError]:
        return validate_trust_bundle(obj)

    def validate_update(self, ctx: Context, obj: Object, old: Object) -> list[FieldError]:
        return validate_trust_bundle(obj, old)
