"""Storage classes, CSI drivers and nodes, capacities, attachments."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from pilothouse.apis.deprecated_labels import selector_warnings, topology_warnings
from pilothouse.apis.status import ResettingStatusStrategy, StatusKeeper
from pilothouse.apis.storage import columns, csi_validation, validation
from pilothouse.apis.strategy import Context, Object, Strategy
from pilothouse.machinery.field_errors import FieldError

_TOKENS_IN_SECRETS = (
    "spec.serviceAccountTokenInSecrets is unset; if supported by this CSI driver, set to true to prevent "
    "possible logging of tokens in volume attributes"
)


class StorageClassStrategy(Strategy):
    """Storage classes."""

    judges_prefix_on_update = True
    returns_deleted = True
    list_columns = staticmethod(columns.storage_class_list)
    columns = columns.STORAGE_CLASS

    def default(self, obj: Object) -> None:
        obj.setdefault("reclaimPolicy", "Delete")
        obj.setdefault("volumeBindingMode", "Immediate")

    def validate(self, ctx: Context, obj: Object) -> list[FieldError]:
        return validation.validate_storage_class(obj)

    def validate_update(self, ctx: Context, obj: Object, old: Object) -> list[FieldError]:
        return validation.validate_storage_class(obj, old)

    def warnings_on_create(self, ctx: Context, obj: Object) -> list[str]:
        return topology_warnings(obj.get("allowedTopologies"))

    def warnings_on_update(self, ctx: Context, obj: Object, old: Object) -> list[str]:
        return topology_warnings(obj.get("allowedTopologies"))


class VolumeAttributesClassStrategy(Strategy):
    """Volume attributes classes."""

    judges_prefix_on_update = True
    returns_deleted = True
    columns = columns.ATTRIBUTES_CLASS

    def validate(self, ctx: Context, obj: Object) -> list[FieldError]:
        return validation.validate_attributes_class(obj)

    def validate_update(self, ctx: Context, obj: Object, old: Object) -> list[FieldError]:
        return validation.validate_attributes_class(obj, old)


class CSIDriverStrategy(Strategy):
    """CSI drivers. The generation counts changes of the spec but starts unset."""

    returns_deleted = True
    allow_unconditional_update = False
    columns = columns.CSI_DRIVER

    def default(self, obj: Object) -> None:
        spec = obj["spec"]
        for name, value in _DRIVER_DEFAULTS:
            if spec.get(name) is None:
                spec[name] = value
        if spec.get("preventPodSchedulingIfMissing") is None and _LIMITS_SCALE in self.gates:
            spec["preventPodSchedulingIfMissing"] = False
        if not spec.get("volumeLifecycleModes"):
            spec["volumeLifecycleModes"] = ["Persistent"]

    def prepare_for_update(self, ctx: Context, obj: Object, old: Object) -> None:
        if obj["spec"] != old["spec"]:
            obj["metadata"]["generation"] = old["metadata"].get("generation", 0) + 1

    def validate(self, ctx: Context, obj: Object) -> list[FieldError]:
        return csi_validation.validate_driver(obj, limits_scale=_LIMITS_SCALE in self.gates)

    def validate_update(self, ctx: Context, obj: Object, old: Object) -> list[FieldError]:
        return csi_validation.validate_driver(obj, old, limits_scale=_LIMITS_SCALE in self.gates)

    def warnings_on_create(self, ctx: Context, obj: Object) -> list[str]:
        spec = obj["spec"]
        unsafe = spec.get("tokenRequests") and spec.get("serviceAccountTokenInSecrets") is None
        return [_TOKENS_IN_SECRETS] if unsafe else []

    def warnings_on_update(self, ctx: Context, obj: Object, old: Object) -> list[str]:
        changed = obj["spec"].get("tokenRequests") != old["spec"].get("tokenRequests")
        return self.warnings_on_create(ctx, obj) if changed else []


_DRIVER_DEFAULTS = (
    ("attachRequired", True),
    ("podInfoOnMount", False),
    ("storageCapacity", False),
    ("fsGroupPolicy", "ReadWriteOnceWithFSType"),
    ("requiresRepublish", False),
    ("seLinuxMount", False),
)
_LIMITS_SCALE = "VolumeLimitScaling"


class CSINodeStatusStrategy(ResettingStatusStrategy):
    """The health that a CSI node reports."""

    allow_unconditional_update = False

    def validate_update(self, ctx: Context, obj: Object, old: Object) -> list[FieldError]:
        return csi_validation.validate_node_status(obj)


class CSINodeStrategy(StatusKeeper):
    """CSI nodes."""

    judges_prefix_on_update = True
    type_name = "storage.v1.CSINode"
    allow_unconditional_update = False
    returns_deleted = True
    subresources: ClassVar[Mapping[str, type[Strategy]]] = {"status": CSINodeStatusStrategy}
    columns = columns.CSI_NODE

    def canonicalize(self, obj: Object) -> None:
        # An empty list is stored as none at all.
        if not obj["spec"].get("drivers"):
            obj["spec"]["drivers"] = None

    def validate(self, ctx: Context, obj: Object) -> list[FieldError]:
        return csi_validation.validate_node(obj)

    def validate_update(self, ctx: Context, obj: Object, old: Object) -> list[FieldError]:
        return csi_validation.validate_node(obj, old)


class CSIStorageCapacityStrategy(Strategy):
    """Storage capacities."""

    judges_prefix_on_update = True
    allow_unconditional_update = False

    def validate(self, ctx: Context, obj: Object) -> list[FieldError]:
        return validation.validate_capacity(obj)

    def validate_update(self, ctx: Context, obj: Object, old: Object) -> list[FieldError]:
        return validation.validate_capacity(obj, old)

    def warnings_on_create(self, ctx: Context, obj: Object) -> list[str]:
        return selector_warnings(obj.get("nodeTopology"), "nodeTopology")

    def warnings_on_update(self, ctx: Context, obj: Object, old: Object) -> list[str]:
        return selector_warnings(obj.get("nodeTopology"), "nodeTopology")


class VolumeAttachmentStatusStrategy(ResettingStatusStrategy):
    """What the attacher reports."""

    judges_prefix_on_update = True
    allow_unconditional_update = False

    def validate_update(self, ctx: Context, obj: Object, old: Object) -> list[FieldError]:
        return validation.validate_attachment(obj, old)


class VolumeAttachmentStrategy(StatusKeeper):
    """Volume attachments."""

    judges_prefix_on_update = True
    returns_deleted = True
    type_name = "storage.v1.VolumeAttachment"
    allow_unconditional_update = False
    subresources: ClassVar[Mapping[str, type[Strategy]]] = {"status": VolumeAttachmentStatusStrategy}
    columns = columns.ATTACHMENT

    def validate(self, ctx: Context, obj: Object) -> list[FieldError]:
        return validation.validate_attachment(obj)

    def validate_update(self, ctx: Context, obj: Object, old: Object) -> list[FieldError]:
        return validation.validate_attachment(obj, old)


STRATEGIES: dict[str, type[Strategy]] = {
    "storageclasses": StorageClassStrategy,
    "volumeattributesclasses": VolumeAttributesClassStrategy,
    "csidrivers": CSIDriverStrategy,
    "csinodes": CSINodeStrategy,
    "csistoragecapacities": CSIStorageCapacityStrategy,
    "volumeattachments": VolumeAttachmentStrategy,
}
