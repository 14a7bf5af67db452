"""The strategies of storage kinds, by resource."""

from __future__ import annotations

from pilothouse.apis.strategy_index import StrategyIndex

STRATEGIES = StrategyIndex(
    __package__,
    {
        "storageclasses": "storage_class.StorageClassStrategy",
        "volumeattributesclasses": "volume_attributes_class.VolumeAttributesClassStrategy",
        "csidrivers": "csi_driver.CSIDriverStrategy",
        "csinodes": "csi_node.CSINodeStrategy",
        "csistoragecapacities": "csi_storage_capacity.CSIStorageCapacityStrategy",
        "volumeattachments": "volume_attachment.VolumeAttachmentStrategy",
    },
)
