"""How a refused struct shows in a message: as kube-apiserver's internal types, which have no JSON names, print.

    {"key": "a", "effect": "NoSchedule"}  →  {"Key":"a","Value":"","Effect":"NoSchedule","TimeAdded":null}

Every field appears under its Go name, empty ones with their zero. Types of ``meta`` keep their JSON names; an object's
metadata is embedded, so that its fields show as the object's own.
"""

from __future__ import annotations

import json
from typing import Any, Final

from pilothouse.apis import types
from pilothouse.machinery.schema.emptied import as_given
from pilothouse.machinery.schema.types import Field, ListOf, MapOf, Scalar, Special, Struct, Type

_ACRONYMS: Final = {
    "ip": "IP", "ips": "IPs", "uid": "UID", "cidr": "CIDR", "cidrs": "CIDRs", "apiVersion": "APIVersion",
    "apiGroup": "APIGroup", "nfs": "NFS", "rbd": "RBD", "iscsi": "ISCSI", "fc": "FC", "csi": "CSI", "cephfs": "CephFS",
    "ipMode": "IPMode", "ipBlock": "IPBlock", "tls": "TLS", "http": "HTTP",
    "gcePersistentDisk": "GCEPersistentDisk", "awsElasticBlockStore": "AWSElasticBlockStore", "fsType": "FSType",
    "pdName": "PDName", "volumeID": "VolumeID", "scaleIO": "ScaleIO", "storageos": "StorageOS", "iqn": "IQN",
    "targetWWNs": "TargetWWNs", "wwids": "WWIDs", "lun": "Lun", "sslEnabled": "SSLEnabled", "dnsPolicy": "DNSPolicy",
    "dnsConfig": "DNSConfig", "os": "OS", "tty": "TTY", "seLinuxOptions": "SELinuxOptions", "fsGroup": "FSGroup",
    "fsGroupChangePolicy": "FSGroupChangePolicy", "seLinuxChangePolicy": "SELinuxChangePolicy",
    "diskURI": "DataDiskURI",
    "gmsaCredentialSpecName": "GMSACredentialSpecName", "gmsaCredentialSpec": "GMSACredentialSpec", "grpc": "GRPC",
    "httpGet": "HTTPGet", "tcpSocket": "TCPSocket", "httpHeaders": "HTTPHeaders", "iscsiInterface": "ISCSIInterface",
    "chapAuthDiscovery": "DiscoveryCHAPAuth", "chapAuthSession": "SessionCHAPAuth",
    "serviceAccount": "DeprecatedServiceAccount", "ttlSecondsAfterFinished": "TTLSecondsAfterFinished",
    "externalID": "DoNotUseExternalID", "apiGroups": "APIGroups", "cel": "CEL",
    "pkixPublicKey": "PKIXPublicKey",
}  # fmt: skip
_RENAMED: Final = {
    "core.v1.RBDPersistentVolumeSource": {
        "monitors": "CephMonitors", "image": "RBDImage", "pool": "RBDPool", "user": "RadosUser",
    },
    "core.v1.ISCSIPersistentVolumeSource": {
        "chapAuthDiscovery": "DiscoveryCHAPAuth", "chapAuthSession": "SessionCHAPAuth",
        "iscsiInterface": "ISCSIInterface",
    },
    "core.v1.RBDVolumeSource": {
        "monitors": "CephMonitors", "image": "RBDImage", "pool": "RBDPool", "user": "RadosUser", "fsType": "FSType",
    },
    "core.v1.GlusterfsVolumeSource": {"endpoints": "EndpointsName"},
    "core.v1.GlusterfsPersistentVolumeSource": {"endpoints": "EndpointsName"},
    "core.v1.AzureDiskVolumeSource": {"diskURI": "DataDiskURI"},
    "flowcontrol.v1.Subject": {"serviceAccount": "ServiceAccount"},
}  # fmt: skip
_ZEROS: Final[dict[str, Any]] = {"string": "", "bool": False, "bytes": None}
_HIDDEN: Final = frozenset({("core.v1.NodeSpec", "podCIDR")})


def internal_form(type_name: str, value: Any) -> Any:
    """A value of a catalogued type, or a list of them, as the internal type shows in JSON."""
    if isinstance(value, list):
        return [internal_form(type_name, item) for item in value]
    return None if value is None else _struct(types.struct(type_name), value)


def show_change(type_name: str, old: Any, new: Any) -> str:
    """The difference of two structs as a unified diff of their indented JSON."""
    from pilothouse.machinery.line_diff import unified_diff

    before, after = (_lines(internal_form(type_name, value)) for value in (old, new))
    return unified_diff(before, after)


def _lines(form: Any) -> list[str]:
    """The indented JSON of a value, by lines. Most of them occur often, and are kept once."""
    text = json.dumps(form, indent=1, ensure_ascii=False)
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    known: dict[str, str] = {}
    return [known.setdefault(line, line) for line in map("{}\n".format, text.split("\n"))]


def _struct(struct: Struct, value: dict[str, Any]) -> dict[str, Any]:
    if struct.name.startswith("meta."):
        return {name: _value(field.type, value[name]) for name, field in struct.fields.items() if name in value}
    renamed = _RENAMED.get(struct.name, _ACRONYMS)
    shown: dict[str, Any] = {}
    for name, field in struct.fields.items():
        if name == "metadata" and isinstance(field.type, Struct):
            shown.update(_struct(field.type, value.get(name) or {}))
        elif (struct.name, name) not in _HIDDEN and not (struct.is_object and name in ("kind", "apiVersion")):
            shown[renamed.get(name) or _go_name(name)] = _field(field, as_given(value, name))
    return shown


def _go_name(name: str) -> str:
    return _ACRONYMS.get(name) or name[0].upper() + name[1:]


def _field(field: Field, value: Any) -> Any:
    if value is None:
        return None if field.pointer else _zero(field.type)
    return _value(field.type, value)


def _zero(node: Type) -> Any:
    if isinstance(node, Struct):
        return _struct(node, {})
    if isinstance(node, Scalar):
        return _ZEROS.get(node.kind, 0)
    if isinstance(node, Special):
        return {"Quantity": "0", "IntOrString": 0}.get(node.kind)
    return None


def _value(node: Type, value: Any) -> Any:
    if isinstance(node, Struct):
        return _struct(node, value)
    if isinstance(node, ListOf):
        return [_value(node.item, item) for item in value]
    if isinstance(node, MapOf):
        return {key: _value(node.value, value[key]) for key in sorted(value)}
    return value
