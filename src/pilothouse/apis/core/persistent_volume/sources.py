"""Where a persistent volume's data is: one source out of many, each with a few fields that must be there.

Pods name most of the same sources and share their rules; here references to secrets reach across namespaces.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Final

from pilothouse.apis.core.pod_spec import storage_volumes as storage
from pilothouse.apis.validation import present, well_formed
from pilothouse.machinery.field_errors import FieldError, Path, forbidden, invalid, required
from pilothouse.machinery.names import check_dns1123_label, check_dns1123_subdomain

Source = dict[str, Any]
Validate = Callable[[Source, Path, list[FieldError]], None]

_CSI_SECRETS: Final = (
    "controllerPublishSecretRef", "controllerExpandSecretRef", "nodePublishSecretRef", "nodeExpandSecretRef",
)  # fmt: skip


def _validate_glusterfs(source: Source, path: Path, errs: list[FieldError]) -> None:
    storage.validate_glusterfs(source, path, errs)
    namespace = source.get("endpointsNamespace")
    if namespace == "":
        why = "if the endpointnamespace is set, it must be a valid namespace name"
        errs.append(invalid(path.child("endpointsNamespace"), "", why))
    elif namespace is not None:
        well_formed(namespace, check_dns1123_label, path, "endpointsNamespace", errs)


def _validate_azure_file(source: Source, path: Path, errs: list[FieldError]) -> None:
    storage.validate_azure_file(source, path, errs)
    if source.get("secretNamespace") == "":
        errs.append(required(path.child("secretNamespace"), ""))


def _validate_csi(source: Source, path: Path, errs: list[FieldError]) -> None:
    storage.validate_csi_driver(source, path, errs)
    present(source.get("volumeHandle"), path, "volumeHandle", errs)
    for key in _CSI_SECRETS:
        secret = source.get(key)
        if secret is not None:
            where = path.child(key)
            if present(secret.get("name"), where, "name", errs):
                well_formed(secret["name"], check_dns1123_subdomain, where, "name", errs)
            if present(secret.get("namespace"), where, "namespace", errs):
                well_formed(secret["namespace"], check_dns1123_label, where, "namespace", errs)


_SOURCES: Final[dict[str, Validate]] = {
    "hostPath": storage.validate_host_path,
    "gcePersistentDisk": storage.validate_gce_disk,
    "awsElasticBlockStore": storage.validate_aws_disk,
    "glusterfs": _validate_glusterfs,
    "flocker": storage.validate_flocker,
    "nfs": storage.validate_nfs,
    "rbd": storage.validate_rbd,
    "quobyte": storage.validate_quobyte,
    "cephfs": storage.validate_cephfs,
    "iscsi": storage.validate_iscsi,
    "cinder": partial(storage.validate_cinder, persistent=True),
    "fc": storage.validate_fibre_channel,
    "flexVolume": storage.validate_flex,
    "azureFile": _validate_azure_file,
    "vsphereVolume": storage.validate_vsphere,
    "photonPersistentDisk": storage.validate_photon,
    "portworxVolume": storage.validate_portworx,
    "azureDisk": storage.validate_azure_disk,
    "scaleIO": storage.validate_scale_io,
    "local": storage.validate_local,
    "storageos": partial(storage.validate_storageos, persistent=True),
    "csi": _validate_csi,
}
SOURCE_FIELDS: Final = tuple(_SOURCES)
_SHOWN_AS: Final = {"gcePersistentDisk": "persistentDisk"}
_REFUSED_AS: Final = {"cephfs": "cephFS"}


def validate_source(path: Path, spec: Source, volume: str) -> list[FieldError]:
    """Exactly one source, and a complete one."""
    errs: list[FieldError] = []
    count = 0
    for field, validate in _SOURCES.items():
        source = spec.get(field)
        if source is None:
            continue
        # kube-apiserver forgets to look for a second source here.
        if count and field != "flexVolume":
            where = path.child(_REFUSED_AS.get(field, field))
            errs.append(forbidden(where, "may not specify more than 1 volume type"))
            continue
        count += 1
        where = path.child(_SHOWN_AS.get(field, field))
        if field == "iscsi":
            storage.validate_iscsi(source, where, errs, persistent=True, volume=volume)
        else:
            validate(source, where, errs)
        if field == "local" and spec.get("nodeAffinity") is None:
            errs.append(required(path.child("nodeAffinity"), "Local volume requires node affinity"))
    if not count:
        errs.append(required(path, "must specify a volume type"))
    return errs
