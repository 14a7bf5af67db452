"""The feature gates that plug-ins ask about, as they stand in 1.37."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

DEFAULTS: Final[Mapping[str, bool]] = {
    "CompositePodGroup": True,
    "ClusterTrustBundle": True,
    "CSIVolumeHealth": False,
    "DRANodeAllocatableResources": False,
    "GenericWorkload": True,
    "MutatingAdmissionPolicy": True,
    "PodCertificateRequest": True,
    "PodGroupPreemptionPolicy": False,
    "PodLevelResources": True,
    "PodTopologyLabelsAdmission": False,
    "ServiceAccountNodeAudienceRestriction": False,
    "TopologyAwareWorkloadScheduling": False,
    "AllowInsecureKubeletCertificateSigningRequests": True,
}
