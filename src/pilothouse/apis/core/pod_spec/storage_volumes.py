"""Volumes on nodes and on storage systems outside of the cluster. Most no longer work, but all are still validated.

Persistent volumes share the rules, with secrets in namespaces of their own.
"""

from __future__ import annotations

import re
from typing import Final

from pilothouse.apis.core.pod_spec.paths import validate_no_backsteps
from pilothouse.apis.validation import in_range, one_of, present, well_formed
from pilothouse.machinery.field_errors import FieldError, Path, invalid, not_supported, required, too_long
from pilothouse.machinery.names import check_dns1123_label, check_dns1123_subdomain, range_message
from pilothouse.machinery.objects import Object

_IQN: Final = r"iqn\.[0-9]{4}-[0-9]{2}\.([0-9A-Za-z.-]+)(:[^,;*&$|\t\n\f\r ]+)$"
"""For RE2: a name may begin at each of many places in a long text, and end nowhere."""
_is_eui = re.compile(r"eui.[0-9A-Za-z]{16}").fullmatch
_is_naa = re.compile(r"naa.[0-9A-Za-z]{32}").fullmatch
_HOST_PATH_TYPES: Final = (
    "", "BlockDevice", "CharDevice", "Directory", "DirectoryOrCreate", "File", "FileOrCreate", "Socket",
)  # fmt: skip
_MAX_DRIVER: Final = 63
_LONG_PORTAL: Final = (
    "Total length of <volume name>:<iscsi.targetPortal> must be under 64 characters if iscsi.initiatorName is"
    " specified."
)
_BAD_PARTITION: Final = range_message(1, 255)
_HOST_PORTS: Final = "must be a host:port pair or multiple pairs separated by commas"
_CACHING_MODES: Final = ("None", "ReadOnly", "ReadWrite")
_DISK_KINDS: Final = ("Dedicated", "Managed", "Shared")
_MANAGED_URI: Final = (
    "/subscriptions/{sub-id}/resourcegroups/{group-name}/providers/microsoft.compute/disks/{disk-id}",
)
_BLOB_URI: Final = ("https://{account-name}.blob.core.windows.net/{container-name}/{disk-name}.vhd",)


def validate_host_path(source: Object, path: Path, errs: list[FieldError]) -> None:
    if present(source.get("path"), path, "path", errs):
        validate_no_backsteps(source["path"], path, "path", errs)
        one_of(source.get("type") or "", _HOST_PATH_TYPES, path, "type", errs)


def validate_local(source: Object, path: Path, errs: list[FieldError]) -> None:
    if present(source.get("path"), path, "path", errs):
        validate_no_backsteps(source["path"], path, "path", errs)


def validate_csi_driver(source: Object, path: Path, errs: list[FieldError]) -> None:
    """The driver's name: a domain of at most 63 bytes, in any case."""
    if present(source.get("driver"), path, "driver", errs):
        name, where = source["driver"], path.child("driver")
        if len(name.encode()) > _MAX_DRIVER:
            errs.append(too_long(where, "", _MAX_DRIVER))
        errs += (invalid(where, name, message) for message in check_dns1123_subdomain(name.lower()))


def validate_gce_disk(source: Object, path: Path, errs: list[FieldError]) -> None:
    present(source.get("pdName"), path, "pdName", errs)
    _validate_partition(source, path, errs)


def validate_aws_disk(source: Object, path: Path, errs: list[FieldError]) -> None:
    present(source.get("volumeID"), path, "volumeID", errs)
    _validate_partition(source, path, errs)


def _validate_partition(source: Object, path: Path, errs: list[FieldError]) -> None:
    partition = source.get("partition", 0)
    if not 0 <= partition <= 255:
        errs.append(invalid(path.child("partition"), partition, _BAD_PARTITION))


def validate_nfs(source: Object, path: Path, errs: list[FieldError]) -> None:
    present(source.get("server"), path, "server", errs)
    present(source.get("path"), path, "path", errs)
    if not source.get("path", "").startswith("/"):
        errs.append(invalid(path.child("path"), source.get("path", ""), "must be an absolute path"))


def _check_initiator(name: str) -> bool:
    if name.startswith("iqn"):
        from pilothouse.machinery.re2_patterns import compile_re2

        return bool(compile_re2(_IQN).search(name))
    return bool(_is_eui(name) if name.startswith("eui") else _is_naa(name))


def validate_iscsi(
    source: Object, path: Path, errs: list[FieldError], *, persistent: bool = False, volume: str = ""
) -> None:
    """A ``persistent`` volume of this name gets a shorter message for unknown prefixes, and its secret needs a name."""
    unknown = "must be valid format" if persistent else "must be valid format starting with iqn, eui, or naa"
    present(source.get("targetPortal"), path, "targetPortal", errs)
    if persistent and _is_long(source, volume):
        errs.append(invalid(path.child("targetportal"), source.get("targetPortal", ""), _LONG_PORTAL))
    if present(source.get("iqn"), path, "iqn", errs):
        _validate_initiator(source["iqn"], path.child("iqn"), unknown, errs)
    in_range(source.get("lun", 0), 0, 255, path, "lun", errs)
    secret = source.get("secretRef")
    if (source.get("chapAuthDiscovery") or source.get("chapAuthSession")) and secret is None:
        errs.append(required(path.child("secretRef"), ""))
    if persistent and secret is not None:
        present(secret.get("name"), path.child("secretRef"), "name", errs)
    initiator = source.get("initiatorName")
    if initiator is not None:
        _validate_initiator(initiator, path.child("initiatorname"), unknown, errs)


def _validate_initiator(name: str, path: Path, unknown: str, errs: list[FieldError]) -> None:
    if not name.startswith(("iqn", "eui", "naa")):
        errs.append(invalid(path, name, unknown))
    elif not _check_initiator(name):
        errs.append(invalid(path, name, "must be valid format"))


def validate_iscsi_name(source: Object, volume: str, path: Path, errs: list[FieldError]) -> None:
    """With an initiator, the volume's name and the portal make a name on the node that must be short."""
    if _is_long(source, volume):
        errs.append(invalid(path.child("name"), volume, _LONG_PORTAL))


def _is_long(source: Object, volume: str) -> bool:
    return "initiatorName" in source and len(f"{volume}:{source.get('targetPortal', '')}".encode()) > 64


def validate_glusterfs(source: Object, path: Path, errs: list[FieldError]) -> None:
    present(source.get("endpoints"), path, "endpoints", errs)
    present(source.get("path"), path, "path", errs)


def validate_flocker(source: Object, path: Path, errs: list[FieldError]) -> None:
    name, uuid = source.get("datasetName", ""), source.get("datasetUUID", "")
    if not name and not uuid:
        errs.append(required(path, "one of datasetName and datasetUUID is required"))
    if name and uuid:
        errs.append(invalid(path, "resource", "datasetName and datasetUUID can not be specified simultaneously"))
    if "/" in name:
        errs.append(invalid(path.child("datasetName"), name, "must not contain '/'"))


def validate_rbd(source: Object, path: Path, errs: list[FieldError]) -> None:
    present(source.get("monitors"), path, "monitors", errs)
    present(source.get("image"), path, "image", errs)


def validate_cinder(source: Object, path: Path, errs: list[FieldError], *, persistent: bool = False) -> None:
    present(source.get("volumeID"), path, "volumeID", errs)
    _validate_secret(source, path, errs, persistent)


def _validate_secret(source: Object, path: Path, errs: list[FieldError], persistent: bool) -> None:
    secret = source.get("secretRef")
    if secret is not None:
        where = path.child("secretRef")
        present(secret.get("name"), where, "name", errs)
        if persistent:
            present(secret.get("namespace"), where, "namespace", errs)


def validate_cephfs(source: Object, path: Path, errs: list[FieldError]) -> None:
    present(source.get("monitors"), path, "monitors", errs)


def validate_quobyte(source: Object, path: Path, errs: list[FieldError]) -> None:
    registry = source.get("registry", "")
    if not registry:
        errs.append(required(path.child("registry"), _HOST_PORTS))
    elif len(source.get("tenant", "").encode()) >= 65:
        why = "must be a UUID and may not exceed a length of 64 characters"
        errs.append(required(path.child("tenant"), why))
    else:
        bad = [pair for pair in registry.split(",") if not _is_host_port(pair)]
        errs += (invalid(path.child("registry"), registry, _HOST_PORTS) for _ in bad)
    present(source.get("volume"), path, "volume", errs)


def _is_host_port(text: str) -> bool:
    """Whether Go would split it: one colon, or brackets around a host with several."""
    if text.startswith("["):
        host, closed, port = text[1:].partition("]")
        return bool(closed) and port.startswith(":") and not {"[", "]", ":"} & set(port[1:]) and "[" not in host
    return text.count(":") == 1 and not {"[", "]"} & set(text)


def validate_fibre_channel(source: Object, path: Path, errs: list[FieldError]) -> None:
    targets, ids = source.get("targetWWNs") or (), source.get("wwids") or ()
    if not targets and not ids:
        errs.append(required(path.child("targetWWNs"), "must specify either targetWWNs or wwids, but not both"))
    if targets and ids:
        why = "targetWWNs and wwids can not be specified simultaneously"
        errs.append(invalid(path.child("targetWWNs"), targets, why))
    if targets:
        if source.get("lun") is None:
            errs.append(required(path.child("lun"), "lun is required if targetWWNs is specified"))
        else:
            in_range(source["lun"], 0, 255, path, "lun", errs)


def validate_flex(source: Object, path: Path, errs: list[FieldError]) -> None:
    present(source.get("driver"), path, "driver", errs)
    for key in source.get("options") or ():
        namespace = "." + key.partition("/")[0].lower()
        if namespace.endswith((".kubernetes.io", ".k8s.io")):
            why = "kubernetes.io and k8s.io namespaces are reserved"
            errs.append(invalid(path.child("options").key(key), key, why))


def validate_azure_file(source: Object, path: Path, errs: list[FieldError]) -> None:
    present(source.get("secretName"), path, "secretName", errs)
    present(source.get("shareName"), path, "shareName", errs)


def validate_azure_disk(source: Object, path: Path, errs: list[FieldError]) -> None:
    present(source.get("diskName"), path, "diskName", errs)
    present(source.get("diskURI"), path, "diskURI", errs)
    if source.get("cachingMode") is not None:
        one_of(source["cachingMode"], _CACHING_MODES, path, "cachingMode", errs)
    kind, uri = source.get("kind"), source.get("diskURI", "")
    if kind is None:
        return
    one_of(kind, _DISK_KINDS, path, "kind", errs)
    if kind == "Managed" and not uri.startswith("/subscriptions/"):
        errs.append(not_supported(path.child("diskURI"), uri, _MANAGED_URI, plain=True))
    if kind != "Managed" and not uri.startswith("https://"):
        errs.append(not_supported(path.child("diskURI"), uri, _BLOB_URI, plain=True))


def validate_vsphere(source: Object, path: Path, errs: list[FieldError]) -> None:
    present(source.get("volumePath"), path, "volumePath", errs)


def validate_photon(source: Object, path: Path, errs: list[FieldError]) -> None:
    present(source.get("pdID"), path, "pdID", errs)


def validate_portworx(source: Object, path: Path, errs: list[FieldError]) -> None:
    present(source.get("volumeID"), path, "volumeID", errs)


def validate_scale_io(source: Object, path: Path, errs: list[FieldError]) -> None:
    for name in ("gateway", "system", "volumeName"):
        present(source.get(name), path, name, errs)


def validate_storageos(source: Object, path: Path, errs: list[FieldError], *, persistent: bool = False) -> None:
    if present(source.get("volumeName"), path, "volumeName", errs):
        well_formed(source["volumeName"], check_dns1123_label, path, "volumeName", errs)
    if source.get("volumeNamespace"):
        well_formed(source["volumeNamespace"], check_dns1123_label, path, "volumeNamespace", errs)
    _validate_secret(source, path, errs, persistent)
