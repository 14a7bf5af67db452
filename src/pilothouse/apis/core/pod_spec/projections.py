"""Files made from objects: secret, config map and downward API volumes, and projections of several sources into one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pilothouse.apis.core.internal_form import internal_form
from pilothouse.apis.core.pod_spec.environment import VOLUME_FIELDS, validate_field_selector, validate_resource_selector
from pilothouse.apis.core.pod_spec.paths import validate_local_path
from pilothouse.apis.core.pod_spec.signers import (
    check_trust_bundle_name,
    is_kubernetes_signer,
    signer_of_trust_bundle,
    validate_signer_name,
)
from pilothouse.apis.metadata import ANNOTATIONS_LIMIT
from pilothouse.apis.selectors import validate_label_selector
from pilothouse.apis.validation import in_range, present
from pilothouse.machinery.field_errors import FieldError, Path, forbidden, invalid, not_supported, required, too_long
from pilothouse.machinery.names import check_domain_prefixed_key
from pilothouse.machinery.objects import Object

if TYPE_CHECKING:
    from pilothouse.apis.core.pod_spec.options import PodValidationOptions


_BAD_MODE: Final = "must be a number between 0 and 0777 (octal), both inclusive"
_TWICE: Final = "conflicting duplicate paths"
_KEY_TYPES: Final = ("RSA3072", "RSA4096", "ECDSAP256", "ECDSAP384", "ECDSAP521", "ED25519")
_LONGEST: Final = 7862400
_LONGEST_OF_KUBERNETES: Final = 86400


def _validate_owner(holder: Object, mode: str, user: str, path: Path, errs: list[FieldError]) -> None:
    bits = holder.get(mode)
    if bits is not None and not 0 <= bits <= 0o777:
        errs.append(invalid(path.child(mode), bits, _BAD_MODE))
    if holder.get(user) is not None:
        in_range(holder[user], 0, 2**31 - 1, path, user, errs)


def validate_key_volume(source: Object, name: str, path: Path, errs: list[FieldError]) -> None:
    """A volume of a secret or config map, whose name is in the field ``name``."""
    present(source.get(name), path, name, errs)
    _validate_owner(source, "defaultMode", "defaultUser", path, errs)
    for position, item in enumerate(source.get("items") or ()):
        _validate_key(item, path.child("items").index(position), errs)


def _validate_key(item: Object, path: Path, errs: list[FieldError]) -> None:
    present(item.get("key"), path, "key", errs)
    present(item.get("path"), path, "path", errs)
    validate_local_path(item.get("path", ""), path, "path", errs)
    _validate_owner(item, "mode", "user", path, errs)


def validate_files_volume(source: Object, path: Path, errs: list[FieldError]) -> None:
    """A volume of fields of the pod; kube-apiserver gives the volume's path for errors of its files."""
    _validate_owner(source, "defaultMode", "defaultUser", path, errs)
    for file in source.get("items") or ():
        _validate_file(file, path, errs)


def _validate_file(file: Object, path: Path, errs: list[FieldError]) -> None:
    present(file.get("path"), path, "path", errs)
    validate_local_path(file.get("path", ""), path, "path", errs)
    if "fieldRef" in file:
        validate_field_selector(file["fieldRef"], VOLUME_FIELDS, path.child("fieldRef"), errs)
        if "resourceFieldRef" in file:
            why = "fieldRef and resourceFieldRef can not be specified simultaneously"
            errs.append(invalid(path, "resource", why))
    elif "resourceFieldRef" in file:
        validate_resource_selector(file["resourceFieldRef"], path.child("resourceFieldRef"), errs, in_volume=True)
    else:
        errs.append(required(path, "one of fieldRef and resourceFieldRef is required"))
    _validate_owner(file, "mode", "user", path, errs)


def validate_projected_volume(
    source: Object, path: Path, errs: list[FieldError], options: PodValidationOptions
) -> None:
    """A volume of several sources that may not write the same files."""
    _validate_owner(source, "defaultMode", "defaultUser", path, errs)
    written = _Written(path, errs)
    for position, projection in enumerate(source.get("sources") or ()):
        where = path.child("sources").index(position)
        for kind in ("secret", "configMap"):
            if kind in projection:
                _validate_keys(projection[kind], where.child(kind), errs, written)
        if "downwardAPI" in projection:
            for file in projection["downwardAPI"].get("items") or ():
                _validate_file(file, where.child("downwardAPI"), errs)
                written.add(file.get("path", ""))
        if "serviceAccountToken" in projection:
            token = projection["serviceAccountToken"]
            _validate_token(token, where.child("serviceAccountToken"), path, errs, options)
        if "clusterTrustBundle" in projection:
            _validate_trust_bundle(projection["clusterTrustBundle"], where.child("clusterTrustBundle"), errs)
            written.add(projection["clusterTrustBundle"].get("path", ""), even_empty=True)
        if "podCertificate" in projection:
            _validate_certificate(projection["podCertificate"], where.child("podCertificate"), errs, written)
        if len(projection) > 1:
            errs.append(forbidden(where, "may not specify more than 1 volume type per source"))


class _Written:
    """The files that a projected volume has so far."""

    def __init__(self, path: Path, errs: list[FieldError]) -> None:
        self.path = path
        self.errs = errs
        self.files: set[str] = set()

    def add(self, file: str, *, shown: str | None = None, even_empty: bool = False) -> None:
        if not file and not even_empty:
            return
        if file in self.files:
            self.errs.append(invalid(self.path, file if shown is None else shown, _TWICE))
        self.files.add(file)


def _validate_keys(source: Object, path: Path, errs: list[FieldError], written: _Written) -> None:
    name = source.get("name", "")
    present(name, path, "name", errs)
    for position, item in enumerate(source.get("items") or ()):
        _validate_key(item, path.child("items").index(position), errs)
        if item.get("path"):
            written.add(item["path"], shown=name)


def _validate_token(
    token: Object, path: Path, volume: Path, errs: list[FieldError], options: PodValidationOptions
) -> None:
    expiry = token.get("expirationSeconds")
    if expiry is None:
        errs.append(required(path.child("expirationSeconds"), ""))
    elif expiry < 600:
        errs.append(invalid(path.child("expirationSeconds"), expiry, "may not specify a duration less than 10 minutes"))
    elif expiry > 1 << 32:
        why = "may not specify a duration larger than 2^32 seconds"
        errs.append(invalid(path.child("expirationSeconds"), expiry, why))
    if not token.get("path"):
        errs.append(required(volume.child("path"), ""))
    elif not options.allow_non_local_token_path:
        validate_local_path(token["path"], volume, "path", errs)
    if token.get("user") is not None:
        in_range(token["user"], 0, 2**31 - 1, path, "user", errs)


def _validate_trust_bundle(bundle: Object, path: Path, errs: list[FieldError]) -> None:
    name, signer, selector = bundle.get("name"), bundle.get("signerName"), bundle.get("labelSelector")
    if name is not None and signer is not None:
        value = internal_form("core.v1.ClusterTrustBundleProjection", bundle)
        errs.append(invalid(path, value, "only one of name and signerName may be used"))
    elif name is not None:
        present(name, path, "name", errs, "must be a valid object name")
        messages = check_trust_bundle_name(name, signer_of_trust_bundle(name))
        shown = path.child("name")
        errs += (invalid(shown, name, f"not a valid clustertrustbundlename: {message}") for message in messages)
        if selector is not None:
            why = "labelSelector must be unset if name is specified"
            errs.append(invalid(path.child("labelSelector"), internal_form("meta.v1.LabelSelector", selector), why))
    elif signer is not None:
        present(signer, path, "signerName", errs, "must be a valid signer name")
        validate_signer_name(signer, path.child("signerName"), errs)
        validate_label_selector(selector, path.child("labelSelector"), errs)
    else:
        errs.append(required(path, "either name or signerName must be specified"))
    present(bundle.get("path"), path, "path", errs)
    if bundle.get("user") is not None:
        in_range(bundle["user"], 0, 2**31 - 1, path, "user", errs)
    validate_local_path(bundle.get("path", ""), path, "path", errs)


def _validate_certificate(source: Object, path: Path, errs: list[FieldError], written: _Written) -> None:
    signer = source.get("signerName", "")
    validate_signer_name(signer, path.child("signerName"), errs)
    annotations = source.get("userAnnotations")
    if annotations:
        _validate_user_annotations(annotations, path.child("userAnnotations"), errs)
    if source.get("user") is not None:
        in_range(source["user"], 0, 2**31 - 1, path, "user", errs)
    key_type = source.get("keyType", "")
    if key_type not in _KEY_TYPES:
        errs.append(not_supported(path.child("keyType"), key_type, _KEY_TYPES, plain=True))
    expiry = source.get("maxExpirationSeconds")
    if expiry is not None:
        longest = _LONGEST_OF_KUBERNETES if is_kubernetes_signer(signer) else _LONGEST
        where = path.child("maxExpirationSeconds")
        if expiry < 3600:
            errs.append(invalid(where, expiry, "if provided, maxExpirationSeconds must be >= 3600"))
        if expiry > longest:
            errs.append(invalid(where, expiry, f"if provided, maxExpirationSeconds must be <= {longest}"))
    named = [name for name in ("credentialBundlePath", "keyPath", "certificateChainPath") if source.get(name)]
    for name in named:
        validate_local_path(source[name], path, name, errs)
        written.add(source[name])
    if not named:
        why = "specify at least one of credentialBundlePath, keyPath, and certificateChainPath"
        errs.append(required(path, why))


def _validate_user_annotations(annotations: dict[str, str], path: Path, errs: list[FieldError]) -> None:
    for key in annotations:
        errs += check_domain_prefixed_key(path, key.lower())
    if sum(len(key.encode()) + len(value.encode()) for key, value in annotations.items()) > ANNOTATIONS_LIMIT:
        errs.append(too_long(path, "", ANNOTATIONS_LIMIT))
