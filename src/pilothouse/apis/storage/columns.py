"""Table columns of the storage kinds."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from pilothouse.apis.columns import AGE, NAME, name_cell
from pilothouse.apis.strategy import Column, Doc, Object


def _of_spec(name: str, otherwise: Any) -> Any:
    def cell(obj: Object) -> Any:
        return obj["spec"].get(name, otherwise)

    return cell


def _doc(kind: str, field: str) -> Doc:
    return Doc(f"storage.v1.{kind}", field)


STORAGE_CLASS = (
    NAME,
    Column(
        "Provisioner", "string", lambda o: o.get("provisioner", ""), description=_doc("StorageClass", "provisioner")
    ),
    Column(
        "ReclaimPolicy",
        "string",
        lambda o: o.get("reclaimPolicy", "Delete"),
        description=_doc("StorageClass", "reclaimPolicy"),
    ),
    Column(
        "VolumeBindingMode",
        "string",
        lambda o: o.get("volumeBindingMode", "Immediate"),
        description=_doc("StorageClass", "volumeBindingMode"),
    ),
    Column(
        "AllowVolumeExpansion",
        "string",
        lambda o: o.get("allowVolumeExpansion", False),
        description=_doc("StorageClass", "allowVolumeExpansion"),
    ),
    AGE,
)

_DEFAULT_MARKS = ("storageclass.kubernetes.io/is-default-class", "storageclass.beta.kubernetes.io/is-default-class")


def storage_class_list(objs: Iterable[Object]) -> tuple[Column, ...]:
    """Columns that mark which of these classes claims get by default: the newest, and the first by name of several."""
    default: Object = {}
    for metadata in (obj["metadata"] for obj in objs):
        annotations = metadata.get("annotations") or {}
        if not any(annotations.get(mark) == "true" for mark in _DEFAULT_MARKS):
            continue
        born, other = metadata.get("creationTimestamp", ""), default.get("creationTimestamp", "")
        if not default or born > other or (born == other and metadata["name"] < default["name"]):
            default = metadata
    if not default:
        return STORAGE_CLASS
    chosen = default["name"]

    def cell(obj: Object) -> str:
        name = name_cell(obj)
        return f"{name} (default)" if name == chosen else name

    return (replace(NAME, cell=cell), *STORAGE_CLASS[1:])


ATTRIBUTES_CLASS = (
    NAME,
    Column(
        "DriverName",
        "string",
        lambda o: o.get("driverName", ""),
        description=_doc("VolumeAttributesClass", "driverName"),
    ),
    AGE,
)

ATTACHMENT = (
    NAME,
    Column(
        "Attacher",
        "string",
        _of_spec("attacher", ""),
        format="name",
        description=_doc("VolumeAttachmentSpec", "attacher"),
    ),
    Column(
        "PV",
        "string",
        lambda o: (o["spec"].get("source") or {}).get("persistentVolumeName", ""),
        description=_doc("VolumeAttachmentSource", "persistentVolumeName"),
    ),
    Column("Node", "string", _of_spec("nodeName", ""), description=_doc("VolumeAttachmentSpec", "nodeName")),
    Column(
        "Attached",
        "boolean",
        lambda o: (o.get("status") or {}).get("attached", False),
        description=_doc("VolumeAttachmentStatus", "attached"),
    ),
    AGE,
)

CSI_NODE = (
    NAME,
    Column(
        "Drivers",
        "integer",
        lambda o: len(o["spec"].get("drivers") or ()),
        description="Drivers indicates the number of CSI drivers registered on the node",
    ),
    AGE,
)


def _audiences(obj: Object) -> str:
    requests = obj["spec"].get("tokenRequests")
    return "<unset>" if requests is None else ",".join(request.get("audience", "") for request in requests)


def _modes(obj: Object) -> str:
    return ",".join(obj["spec"].get("volumeLifecycleModes") or ()) or "<none>"


def _driver_flag(title: str, name: str, otherwise: bool) -> Column:
    return Column(title, "boolean", _of_spec(name, otherwise), description=_doc("CSIDriverSpec", name))


CSI_DRIVER = (
    NAME,
    _driver_flag("AttachRequired", "attachRequired", True),
    _driver_flag("PodInfoOnMount", "podInfoOnMount", False),
    _driver_flag("StorageCapacity", "storageCapacity", False),
    Column("TokenRequests", "string", _audiences, description=_doc("CSIDriverSpec", "tokenRequests")),
    _driver_flag("RequiresRepublish", "requiresRepublish", False),
    Column("Modes", "string", _modes, description=_doc("CSIDriverSpec", "volumeLifecycleModes")),
    AGE,
)
