"""A pod spec as the original's internal types print it, for messages that show what an update tried to change.

Internal types have no JSON names: every field appears under its Go name, empty ones too, in the order of the served
type. The names that are not just capitalized are listed here.
"""

from __future__ import annotations

import difflib
import json
from typing import Any, Final

from pilothouse.apis import types
from pilothouse.machinery.schema.types import Field, ListOf, MapOf, Scalar, Special, Struct, Type

_NAMES: Final = {
    "dnsPolicy": "DNSPolicy", "dnsConfig": "DNSConfig", "os": "OS", "tty": "TTY", "seLinuxOptions": "SELinuxOptions",
    "fsGroup": "FSGroup", "fsGroupChangePolicy": "FSGroupChangePolicy", "seLinuxChangePolicy": "SELinuxChangePolicy",
    "ip": "IP", "gcePersistentDisk": "GCEPersistentDisk", "awsElasticBlockStore": "AWSElasticBlockStore", "nfs": "NFS",
    "iscsi": "ISCSI", "rbd": "RBD", "cephfs": "CephFS", "fc": "FC", "storageos": "StorageOS", "csi": "CSI",
    "gmsaCredentialSpecName": "GMSACredentialSpecName", "gmsaCredentialSpec": "GMSACredentialSpec", "pdName": "PDName",
    "fsType": "FSType", "iqn": "IQN", "iscsiInterface": "ISCSIInterface", "chapAuthDiscovery": "DiscoveryCHAPAuth",
    "chapAuthSession": "SessionCHAPAuth", "wwids": "WWIDs", "diskURI": "DataDiskURI", "sslEnabled": "SSLEnabled",
    "httpGet": "HTTPGet", "tcpSocket": "TCPSocket", "grpc": "GRPC", "httpHeaders": "HTTPHeaders",
    "apiVersion": "APIVersion", "apiGroup": "APIGroup", "serviceAccount": "DeprecatedServiceAccount",
}  # fmt: skip
_NAMES_OF: Final = {
    "core.v1.GlusterfsVolumeSource": {"endpoints": "EndpointsName"},
    "core.v1.RBDVolumeSource": {
        "monitors": "CephMonitors", "image": "RBDImage", "pool": "RBDPool", "user": "RadosUser", "fsType": "FSType",
    },
}  # fmt: skip
_ZEROS: Final[dict[str, Any]] = {"string": "", "bool": False, "bytes": None}


def show_change(type_name: str, old: dict[str, Any], new: dict[str, Any]) -> str:
    """What differs between two values of a type, as a unified diff of their indented JSON."""
    before, after = (_lines(types.struct(type_name), value) for value in (old, new))
    return "".join(list(difflib.unified_diff(before, after))[2:])


def _lines(struct: Struct, value: dict[str, Any]) -> list[str]:
    text = json.dumps(_show_struct(struct, value), indent=1, ensure_ascii=False)
    for character in "<>&":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return [line + "\n" for line in text.split("\n")]


def _show_struct(struct: Struct, value: dict[str, Any]) -> dict[str, Any]:
    if struct.name.startswith("meta."):
        return value
    own = _NAMES_OF.get(struct.name, _NAMES)
    shown: dict[str, Any] = {}
    for name, field in struct.fields.items():
        if name == "metadata":  # embedded, so its fields show as the struct's own
            shown.update(value.get(name) or {})
        else:
            shown[own.get(name) or name[0].upper() + name[1:]] = _show_field(field, value.get(name))
    return shown


def _show_field(field: Field, value: Any) -> Any:
    if value is None:
        return None if field.pointer else _zero(field.type)
    return _show(field.type, value)


def _zero(node: Type) -> Any:
    if isinstance(node, Struct):
        return _show_struct(node, {})
    if isinstance(node, Scalar):
        return _ZEROS.get(node.kind, 0)
    if isinstance(node, Special):
        return {"Quantity": "0", "IntOrString": 0}.get(node.kind)
    return None


def _show(node: Type, value: Any) -> Any:
    if isinstance(node, Struct):
        return _show_struct(node, value)
    if isinstance(node, ListOf):
        return [_show(node.item, item) for item in value]
    if isinstance(node, MapOf):
        return {key: _show(node.value, value[key]) for key in sorted(value)}
    return value
