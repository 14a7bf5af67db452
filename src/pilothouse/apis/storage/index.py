"""The strategies of storage kinds, by resource."""

from __future__ import annotations

from pilothouse.apis.storage.csi_driver import CSIDriverStrategy
from pilothouse.apis.storage.csi_node import CSINodeStrategy
from pilothouse.apis.storage.csi_storage_capacity import CSIStorageCapacityStrategy
from pilothouse.apis.storage.storage_class import StorageClassStrategy
from pilothouse.apis.storage.volume_attachment import VolumeAttachmentStrategy
from pilothouse.apis.storage.volume_attributes_class import VolumeAttributesClassStrategy
from pilothouse.apis.strategy import Strategy

STRATEGIES: dict[str, type[Strategy]] = {
    "storageclasses": StorageClassStrategy,
    "volumeattributesclasses": VolumeAttributesClassStrategy,
    "csidrivers": CSIDriverStrategy,
    "csinodes": CSINodeStrategy,
    "csistoragecapacities": CSIStorageCapacityStrategy,
    "volumeattachments": VolumeAttachmentStrategy,
}
