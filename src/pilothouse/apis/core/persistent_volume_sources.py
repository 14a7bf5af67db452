"""Where a persistent volume's data is: one source out of many, each with a few fields that must be there.

Most sources are no longer served by any driver of Kubernetes itself, but objects that name them are still checked.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Final

from pilothouse.apis.core.checks import check_dns_label, check_dns_subdomain, refusals
from pilothouse.machinery import names
from pilothouse.machinery.field_errors import FieldError, Path, forbidden, invalid, not_supported, required, too_long

Source = dict[str, Any]
Check = Callable[[Path, Source, str], list[FieldError]]
"""(path, source, the volume's name) → faults."""

_HOST_PATH_TYPES: Final = (
    "", "BlockDevice", "CharDevice", "Directory", "DirectoryOrCreate", "File", "FileOrCreate", "Socket",
)  # fmt: skip
_INITIATORS: Final = {
    "iqn": re.compile(r"iqn\.\d{4}-\d{2}\.([A-Za-z0-9.-]+)(:[^,;*&$|\s]+)$", re.ASCII),
    "eui": re.compile(r"^eui.[A-Za-z0-9]{16}$"),
    "naa": re.compile(r"^naa.[A-Za-z0-9]{32}$"),
}
_PAIRS: Final = "must be a host:port pair or multiple pairs separated by commas"
_HOST_PORT: Final = re.compile(r"(\[[^\[\]]*\]|[^:\[\]]*):[^:\[\]]*")
_MANAGED_URI: Final = "/subscriptions/{sub-id}/resourcegroups/{group-name}/providers/microsoft.compute/disks/{disk-id}"
_BLOB_URI: Final = "https://{account-name}.blob.core.windows.net/{container-name}/{disk-name}.vhd"


def _require(path: Path, source: Source, *keys: str) -> list[FieldError]:
    return [required(path.child(key), "") for key in keys if not source.get(key)]


def _needing(*keys: str) -> Check:
    """A source that is complete with these fields."""
    return lambda path, source, name: _require(path, source, *keys)


def _no_backsteps(path: Path, text: str) -> list[FieldError]:
    return [invalid(path, text, "must not contain '..'")] if ".." in text.split("/") else []


def _host_path(path: Path, source: Source, name: str) -> list[FieldError]:
    errs = _local(path, source, name)
    type_ = source.get("type")
    if source.get("path") and type_ is not None and type_ not in _HOST_PATH_TYPES:
        errs.append(not_supported(path.child("type"), type_, _HOST_PATH_TYPES))
    return errs


def _local(path: Path, source: Source, name: str) -> list[FieldError]:
    if not source.get("path"):
        return [required(path.child("path"), "")]
    return _no_backsteps(path.child("path"), source["path"])


def _disk(key: str) -> Check:
    def check(path: Path, source: Source, name: str) -> list[FieldError]:
        errs = _require(path, source, key)
        partition = source.get("partition", 0)
        if not 0 <= partition <= 255:
            errs.append(invalid(path.child("partition"), partition, names.range_message(1, 255)))
        return errs

    return check


def _glusterfs(path: Path, source: Source, name: str) -> list[FieldError]:
    errs = _require(path, source, "endpoints", "path")
    namespace = source.get("endpointsNamespace")
    where = path.child("endpointsNamespace")
    if namespace == "":
        errs.append(invalid(where, "", "if the endpointnamespace is set, it must be a valid namespace name"))
    elif namespace is not None:
        errs += check_dns_label(where, namespace)
    return errs


def _flocker(path: Path, source: Source, name: str) -> list[FieldError]:
    dataset, uuid = source.get("datasetName", ""), source.get("datasetUUID", "")
    errs: list[FieldError] = []
    if not dataset and not uuid:
        errs.append(required(path, "one of datasetName and datasetUUID is required"))
    if dataset and uuid:
        errs.append(invalid(path, "resource", "datasetName and datasetUUID can not be specified simultaneously"))
    if "/" in dataset:
        errs.append(invalid(path.child("datasetName"), dataset, "must not contain '/'"))
    return errs


def _nfs(path: Path, source: Source, name: str) -> list[FieldError]:
    errs = _require(path, source, "server", "path")
    directory = source.get("path", "")
    if not directory.startswith("/"):
        errs.append(invalid(path.child("path"), directory, "must be an absolute path"))
    return errs


def _quobyte(path: Path, source: Source, name: str) -> list[FieldError]:
    errs: list[FieldError] = []
    registry = source.get("registry", "")
    if not registry:
        errs.append(required(path.child("registry"), _PAIRS))
    elif len(source.get("tenant", "").encode()) >= 65:
        errs.append(required(path.child("tenant"), "must be a UUID and may not exceed a length of 64 characters"))
    else:
        wrong = sum(not _HOST_PORT.fullmatch(pair) for pair in registry.split(","))
        errs += [invalid(path.child("registry"), registry, _PAIRS)] * wrong
    return errs + _require(path, source, "volume")


def _iscsi(path: Path, source: Source, name: str) -> list[FieldError]:
    errs = _require(path, source, "targetPortal")
    initiator = source.get("initiatorName")
    if initiator is not None and len(f"{name}:{source.get('targetPortal', '')}".encode()) > 64:
        why = (
            "Total length of <volume name>:<iscsi.targetPortal> must be under 64 characters "
            "if iscsi.initiatorName is specified."
        )
        errs.append(invalid(path.child("targetportal"), source.get("targetPortal", ""), why))
    qualified = source.get("iqn", "")
    if not qualified:
        errs.append(required(path.child("iqn"), ""))
    elif not _is_initiator(qualified):
        errs.append(invalid(path.child("iqn"), qualified, "must be valid format"))
    lun = source.get("lun", 0)
    if not 0 <= lun <= 255:
        errs.append(invalid(path.child("lun"), lun, names.range_message(0, 255)))
    secret = source.get("secretRef")
    if secret is None and (source.get("chapAuthDiscovery") or source.get("chapAuthSession")):
        errs.append(required(path.child("secretRef"), ""))
    if secret is not None:
        errs += _require(path.child("secretRef"), secret, "name")
    if initiator is not None and not _is_initiator(initiator):
        errs.append(invalid(path.child("initiatorname"), initiator, "must be valid format"))
    return errs


def _is_initiator(text: str) -> bool:
    pattern = _INITIATORS.get(text[:3])
    return pattern is not None and pattern.search(text) is not None


def _cinder(path: Path, source: Source, name: str) -> list[FieldError]:
    errs = _require(path, source, "volumeID")
    if source.get("secretRef") is not None:
        errs += _require(path.child("secretRef"), source["secretRef"], "name", "namespace")
    return errs


def _fc(path: Path, source: Source, name: str) -> list[FieldError]:
    targets, ids, lun = source.get("targetWWNs") or [], source.get("wwids") or [], source.get("lun")
    errs: list[FieldError] = []
    if not targets and not ids:
        errs.append(required(path.child("targetWWNs"), "must specify either targetWWNs or wwids, but not both"))
    if targets and ids:
        why = "targetWWNs and wwids can not be specified simultaneously"
        errs.append(invalid(path.child("targetWWNs"), targets, why))
    if targets and lun is None:
        errs.append(required(path.child("lun"), "lun is required if targetWWNs is specified"))
    elif targets and lun is not None and not 0 <= lun <= 255:
        errs.append(invalid(path.child("lun"), lun, names.range_message(0, 255)))
    return errs


def _flex(path: Path, source: Source, name: str) -> list[FieldError]:
    errs = _require(path, source, "driver")
    for key in source.get("options") or ():
        domain = "." + key.partition("/")[0].lower()
        if domain.endswith((".kubernetes.io", ".k8s.io")):
            why = "kubernetes.io and k8s.io namespaces are reserved"
            errs.append(invalid(path.child("options").key(key), key, why))
    return errs


def _azure_file(path: Path, source: Source, name: str) -> list[FieldError]:
    errs = _require(path, source, "secretName", "shareName")
    if source.get("secretNamespace") == "":
        errs.append(required(path.child("secretNamespace"), ""))
    return errs


def _azure_disk(path: Path, source: Source, name: str) -> list[FieldError]:
    errs = _require(path, source, "diskName", "diskURI")
    uri, caching, kind = source.get("diskURI", ""), source.get("cachingMode"), source.get("kind")
    modes, kinds = ("None", "ReadOnly", "ReadWrite"), ("Dedicated", "Managed", "Shared")
    if caching is not None and caching not in modes:
        errs.append(not_supported(path.child("cachingMode"), caching, modes))
    if kind is not None and kind not in kinds:
        errs.append(not_supported(path.child("kind"), kind, kinds))
    if kind == "Managed" and not uri.startswith("/subscriptions/"):
        errs.append(not_supported(path.child("diskURI"), uri, (_MANAGED_URI,)))
    if kind not in (None, "Managed") and not uri.startswith("https://"):
        errs.append(not_supported(path.child("diskURI"), uri, (_BLOB_URI,)))
    return errs


def _storageos(path: Path, source: Source, name: str) -> list[FieldError]:
    errs = _require(path, source, "volumeName")
    if not errs:
        errs += check_dns_label(path.child("volumeName"), source["volumeName"])
    if source.get("volumeNamespace"):
        errs += check_dns_label(path.child("volumeNamespace"), source["volumeNamespace"])
    if source.get("secretRef") is not None:
        errs += _require(path.child("secretRef"), source["secretRef"], "name", "namespace")
    return errs


def check_csi_driver_name(path: Path, name: str) -> list[FieldError]:
    """A driver's name: a domain of at most 63 bytes, in any case."""
    if not name:
        return [required(path, "")]
    errs = [too_long(path, "", 63)] if len(name.encode()) > 63 else []
    return errs + refusals(path, name, names.check_dns1123_subdomain(name.lower()))


def _csi(path: Path, source: Source, name: str) -> list[FieldError]:
    errs = check_csi_driver_name(path.child("driver"), source.get("driver", ""))
    errs += _require(path, source, "volumeHandle")
    keys = ("controllerPublishSecretRef", "controllerExpandSecretRef", "nodePublishSecretRef", "nodeExpandSecretRef")
    for key in keys:
        if source.get(key) is not None:
            errs += _check_secret(path.child(key), source[key])
    return errs


def _check_secret(path: Path, secret: Source) -> list[FieldError]:
    name, namespace = secret.get("name"), secret.get("namespace")
    errs = check_dns_subdomain(path.child("name"), name) if name else [required(path.child("name"), "")]
    where = path.child("namespace")
    return errs + (check_dns_label(where, namespace) if namespace else [required(where, "")])


_SOURCES: Final[dict[str, Check]] = {
    "hostPath": _host_path,
    "gcePersistentDisk": _disk("pdName"),
    "awsElasticBlockStore": _disk("volumeID"),
    "glusterfs": _glusterfs,
    "flocker": _flocker,
    "nfs": _nfs,
    "rbd": _needing("monitors", "image"),
    "quobyte": _quobyte,
    "cephfs": _needing("monitors"),
    "iscsi": _iscsi,
    "cinder": _cinder,
    "fc": _fc,
    "flexVolume": _flex,
    "azureFile": _azure_file,
    "vsphereVolume": _needing("volumePath"),
    "photonPersistentDisk": _needing("pdID"),
    "portworxVolume": _needing("volumeID"),
    "azureDisk": _azure_disk,
    "scaleIO": _needing("gateway", "system", "volumeName"),
    "local": _local,
    "storageos": _storageos,
    "csi": _csi,
}
SOURCE_FIELDS: Final = tuple(_SOURCES)
_SHOWN_AS: Final = {"gcePersistentDisk": "persistentDisk"}
_REFUSED_AS: Final = {"cephfs": "cephFS"}


def validate_source(path: Path, spec: Source, volume: str) -> list[FieldError]:
    """Exactly one source, and a complete one."""
    errs: list[FieldError] = []
    count = 0
    for field, check in _SOURCES.items():
        source = spec.get(field)
        if source is None:
            continue
        # The original forgets to look for a second source here.
        if count and field != "flexVolume":
            where = path.child(_REFUSED_AS.get(field, field))
            errs.append(forbidden(where, "may not specify more than 1 volume type"))
            continue
        count += 1
        errs += check(path.child(_SHOWN_AS.get(field, field)), source, volume)
        if field == "local" and spec.get("nodeAffinity") is None:
            errs.append(required(path.child("nodeAffinity"), "Local volume requires node affinity"))
    if not count:
        errs.append(required(path, "must specify a volume type"))
    return errs
