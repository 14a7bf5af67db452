"""Volumes of a pod: names, exactly one source each, and the sources that come from the cluster itself.

The table of sources is in kube-apiserver's order, which decides which one counts when there are several.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final, NamedTuple

from pilothouse.apis.core.pod_spec import storage_volumes as storage
from pilothouse.apis.core.pod_spec.claims import validate_claim_template
from pilothouse.apis.core.pod_spec.paths import validate_descending_path
from pilothouse.apis.core.pod_spec.projections import (
    validate_files_volume,
    validate_key_volume,
    validate_projected_volume,
)
from pilothouse.apis.validation import present
from pilothouse.machinery.field_errors import FieldError, Path, duplicate, forbidden, invalid, not_supported, required
from pilothouse.machinery.go_quote import quote
from pilothouse.machinery.names import check_dns1123_label, check_dns1123_subdomain
from pilothouse.machinery.objects import Object

if TYPE_CHECKING:
    from pilothouse.apis.core.pod_spec.options import PodValidationOptions

Validate = Callable[[Object, Path, list[FieldError], "PodValidationOptions"], None]

PULL_POLICIES: Final = ("Always", "IfNotPresent", "Never")
_ONE_TYPE: Final = "may not specify more than 1 volume type"


def validate_volumes(
    volumes: list[Object], metadata: Object | None, path: Path, errs: list[FieldError], options: PodValidationOptions
) -> dict[str, Object]:
    """Errors of a pod's volumes; gives the sound ones by name. ``path`` is the list's."""
    pod_name = (metadata or {}).get("name", "")
    created = {f"{pod_name}-{v.get('name', '')}" for v in volumes if "ephemeral" in v} if pod_name else set()
    sound: dict[str, Object] = {}
    for position, volume in enumerate(volumes):
        where = path.index(position)
        name = volume.get("name", "")
        found: list[FieldError] = []
        _validate_source(volume, name, pod_name, where, found, options)
        if not name:
            found.append(required(where.child("name"), ""))
        else:
            found += (invalid(where.child("name"), name, message) for message in check_dns1123_label(name))
        if name in sound:
            found.append(duplicate(where.child("name"), name))
        if found:
            errs += found
        else:
            sound[name] = volume
        claim = volume["persistentVolumeClaim"].get("claimName", "") if "persistentVolumeClaim" in volume else ""
        if claim in created:
            why = "must not reference a PVC that gets created for an ephemeral volume"
            errs.append(invalid(where.child("persistentVolumeClaim", "claimName"), claim, why))
    return sound


def _validate_source(
    volume: Object, name: str, pod_name: str, path: Path, errs: list[FieldError], options: PodValidationOptions
) -> None:
    given = [source for source in _SOURCES if source.key in volume] if len(volume) != 2 else _only(volume)
    if not given:
        errs.append(required(path, "must specify a volume type"))
        return
    for position, source in enumerate(given):
        if position:
            errs.append(forbidden(path.child(source.extra or source.key), _ONE_TYPE))
        else:
            source.validate(volume[source.key], path.child(source.shown or source.key), errs, options)
        if source.key == "iscsi":
            storage.validate_iscsi_name(volume["iscsi"], name, path, errs)
        elif source.key == "ephemeral" and not position and pod_name and name:
            claim = f"{pod_name}-{name}"
            messages = check_dns1123_subdomain(claim)
            errs += (invalid(path.child("name"), name, f"PVC name {quote(claim)}: {m}") for m in messages)


def _only(volume: Object) -> list[_Source]:
    """The source of a volume that has a name and one more field."""
    return [_BY_KEY[key] for key in volume if key in _BY_KEY]


def _validate_empty_dir(source: Object, path: Path, errs: list[FieldError], options: PodValidationOptions) -> None:
    if source.get("sizeLimit", "").startswith("-"):
        errs.append(forbidden(path.child("sizeLimit"), "SizeLimit field must be a valid resource quantity"))
    mode = source.get("mode")
    if mode is not None and not 0 <= mode <= 0o1777:
        why = "must be a number between 0 and 01777 (octal), both inclusive"
        errs.append(invalid(path.child("mode"), mode, why))


def _validate_git_repo(source: Object, path: Path, errs: list[FieldError], options: PodValidationOptions) -> None:
    present(source.get("repository"), path, "repository", errs)
    validate_descending_path(source.get("directory", ""), path, "directory", errs)


def _validate_claim(source: Object, path: Path, errs: list[FieldError], options: PodValidationOptions) -> None:
    present(source.get("claimName"), path, "claimName", errs)


def _validate_csi(source: Object, path: Path, errs: list[FieldError], options: PodValidationOptions) -> None:
    storage.validate_csi_driver(source, path, errs)
    reference = source.get("nodePublishSecretRef")
    if reference is not None:
        name = reference.get("name", "")
        if not name:
            errs.append(required(path.child("nodePublishSecretRef", "name"), ""))
        else:
            errs += (invalid(path.child("name"), name, message) for message in check_dns1123_subdomain(name))


def _validate_ephemeral(source: Object, path: Path, errs: list[FieldError], options: PodValidationOptions) -> None:
    template = source.get("volumeClaimTemplate")
    if template is None:
        errs.append(required(path.child("volumeClaimTemplate"), ""))
    else:
        validate_claim_template(template, path.child("volumeClaimTemplate"), errs)


def _validate_image(source: Object, path: Path, errs: list[FieldError], options: PodValidationOptions) -> None:
    if not options.allow_empty_image_volume_reference:
        present(source.get("reference"), path, "reference", errs)
    policy = source.get("pullPolicy", "")
    if not policy:
        errs.append(required(path.child("pullPolicy"), ""))
    elif policy not in PULL_POLICIES:
        errs.append(not_supported(path.child("pullPolicy"), policy, PULL_POLICIES))


def _plain(validate: Callable[[Object, Path, list[FieldError]], None]) -> Validate:
    """A validator that no option touches."""
    return lambda source, path, errs, options: validate(source, path, errs)


class _Source(NamedTuple):
    """A kind of volume. ``shown`` and ``extra`` are the names in paths where these differ from the field."""

    key: str
    validate: Validate
    shown: str = ""
    extra: str = ""


_SOURCES: Final = (
    _Source("emptyDir", _validate_empty_dir),
    _Source("hostPath", _plain(storage.validate_host_path)),
    _Source("gitRepo", _validate_git_repo),
    _Source("gcePersistentDisk", _plain(storage.validate_gce_disk), shown="persistentDisk"),
    _Source("awsElasticBlockStore", _plain(storage.validate_aws_disk)),
    _Source("secret", _plain(lambda source, path, errs: validate_key_volume(source, "secretName", path, errs))),
    _Source("nfs", _plain(storage.validate_nfs)),
    _Source("iscsi", _plain(storage.validate_iscsi)),
    _Source("glusterfs", _plain(storage.validate_glusterfs)),
    _Source("flocker", _plain(storage.validate_flocker)),
    _Source("persistentVolumeClaim", _validate_claim),
    _Source("rbd", _plain(storage.validate_rbd)),
    _Source("cinder", _plain(storage.validate_cinder)),
    _Source("cephfs", _plain(storage.validate_cephfs), extra="cephFS"),
    _Source("quobyte", _plain(storage.validate_quobyte)),
    _Source("downwardAPI", _plain(validate_files_volume), extra="downwarAPI"),
    _Source("fc", _plain(storage.validate_fibre_channel)),
    _Source("flexVolume", _plain(storage.validate_flex)),
    _Source("configMap", _plain(lambda source, path, errs: validate_key_volume(source, "name", path, errs))),
    _Source("azureFile", _plain(storage.validate_azure_file)),
    _Source("vsphereVolume", _plain(storage.validate_vsphere)),
    _Source("photonPersistentDisk", _plain(storage.validate_photon)),
    _Source("portworxVolume", _plain(storage.validate_portworx)),
    _Source("azureDisk", _plain(storage.validate_azure_disk)),
    _Source("storageos", _plain(storage.validate_storageos)),
    _Source("projected", validate_projected_volume),
    _Source("scaleIO", _plain(storage.validate_scale_io)),
    _Source("csi", _validate_csi),
    _Source("ephemeral", _validate_ephemeral),
    _Source("image", _validate_image),
)
_BY_KEY: Final = {source.key: source for source in _SOURCES}
