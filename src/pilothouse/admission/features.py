"""The feature gates that plug-ins ask about, as they stand in 1.37."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

DEFAULTS: Final[Mapping[str, bool]] = {
    "CompositePodGroup": False,
    "ClusterTrustBundle": True,
    "CSIVolumeHealth": False,
    "DRANodeAllocatableResources": False,
    "GenericWorkload": False,
    "ManifestBasedAdmissionControlConfig": True,
    "MutatingAdmissionPolicy": True,
    "PodCertificateRequest": True,
    "PodGroupPreemptionPolicy": False,
    "PodLevelResources": True,
    "PodTopologyLabelsAdmission": True,
    "ServiceAccountNodeAudienceRestriction": True,
    "TopologyAwareWorkloadScheduling": False,
    "AllowInsecureKubeletCertificateSigningRequests": False,
}
