"""What volumes, claims and storage classes say about themselves, and which pods speak of a claim."""

from __future__ import annotations

from functools import lru_cache
from typing import Final

from pilothouse.controllers.runtime.indexer import Key
from pilothouse.machinery import quantity
from pilothouse.machinery.objects import Object

BIND_COMPLETED: Final = "pv.kubernetes.io/bind-completed"
BOUND_BY_CONTROLLER: Final = "pv.kubernetes.io/bound-by-controller"
PROVISIONED_BY: Final = "pv.kubernetes.io/provisioned-by"
MIGRATED_TO: Final = "pv.kubernetes.io/migrated-to"
SELECTED_NODE: Final = "volume.kubernetes.io/selected-node"
PROVISIONER: Final = "volume.kubernetes.io/storage-provisioner"
LEGACY_PROVISIONER: Final = "volume.beta.kubernetes.io/storage-provisioner"
NO_PROVISIONER: Final = "kubernetes.io/no-provisioner"
EXTERNAL_FINALIZER: Final = "external-provisioner.volume.kubernetes.io/finalizer"

_SHORT: Final = 32
PODS_BY_CLAIM: Final = "pods-by-claim"
_LEGACY_CLASS: Final = "volume.beta.kubernetes.io/storage-class"
_DEFAULT_CLASS: Final = (
    "storageclass.kubernetes.io/is-default-class",
    "storageclass.beta.kubernetes.io/is-default-class",
)
CSI_NAMES: Final = {
    "kubernetes.io/aws-ebs": "ebs.csi.aws.com",
    "kubernetes.io/azure-disk": "disk.csi.azure.com",
    "kubernetes.io/azure-file": "file.csi.azure.com",
    "kubernetes.io/cinder": "cinder.csi.openstack.org",
    "kubernetes.io/gce-pd": "pd.csi.storage.gke.io",
    "kubernetes.io/portworx-volume": "pxd.portworx.com",
    "kubernetes.io/vsphere-volume": "csi.vsphere.vmware.com",
}
"""What was part of Kubernetes once, and the driver that does its work now."""


def annotations_of(obj: Object) -> dict[str, str]:
    """The annotations, perhaps none."""
    return obj["metadata"].get("annotations") or {}


def phase_of(obj: Object) -> str:
    """The phase of a claim or a volume; empty before its first."""
    return (obj.get("status") or {}).get("phase") or ""


def class_of(obj: Object) -> str:
    """The storage class of a claim or a volume; the old annotation wins."""
    annotated = annotations_of(obj).get(_LEGACY_CLASS)
    return str(annotated if annotated is not None else obj["spec"].get("storageClassName") or "")


def names_class(claim: Object) -> bool:
    """Whether a claim says anything about its class: the empty name means that it wants none."""
    return _LEGACY_CLASS in annotations_of(claim) or claim["spec"].get("storageClassName") is not None


def capacity_of(volume: Object) -> quantity.Quantity:
    """How large a volume is."""
    return _amount((volume["spec"].get("capacity") or {}).get("storage", "0"))


def request_of(claim: Object) -> quantity.Quantity:
    """How large a volume a claim asks for."""
    requests = (claim["spec"].get("resources") or {}).get("requests") or {}
    return _amount(requests.get("storage", "0"))


def _amount(text: object) -> quantity.Quantity:
    """Volumes have few sizes, and each claim is held against all volumes."""
    amount = str(text)
    return _known_amount(amount) if len(amount) <= _SHORT else quantity.parse(amount)


_known_amount = lru_cache(maxsize=256)(quantity.parse)


def claim_key(volume: Object) -> Key | None:
    """The claim that a volume is reserved for."""
    reference = volume["spec"].get("claimRef")
    return None if reference is None else (reference.get("namespace") or "", reference.get("name") or "")


def is_reserved_for(volume: Object, claim: Object) -> bool:
    """Whether a volume names this claim; without a uid it means any claim of that name."""
    reference, metadata = volume["spec"].get("claimRef"), claim["metadata"]
    if reference is None or claim_key(volume) != (metadata["namespace"], metadata["name"]):
        return False
    return not reference.get("uid") or bool(reference["uid"] == metadata["uid"])


def is_default_class(storage_class: Object) -> bool:
    """Whether claims without a class get this one."""
    annotations = annotations_of(storage_class)
    return any(annotations.get(name) == "true" for name in _DEFAULT_CLASS)


def default_class(classes: list[Object]) -> Object | None:
    """Of several default classes the newest, and of those the first by name."""
    found = sorted((each for each in classes if is_default_class(each)), key=lambda each: str(each["metadata"]["name"]))
    found.sort(key=lambda each: str(each["metadata"].get("creationTimestamp") or ""), reverse=True)
    return found[0] if found else None


def claims_of_pod(pod: Object) -> list[str]:
    """The claims that a pod's volumes name or stand for, in the pod's namespace."""
    names = []
    for volume in pod["spec"].get("volumes") or ():
        if "persistentVolumeClaim" in volume:
            names.append(volume["persistentVolumeClaim"]["claimName"])
        elif "ephemeral" in volume:
            names.append(f"{pod['metadata']['name']}-{volume['name']}")
    return names


def pods_by_claim(pod: Object) -> list[str]:
    """The index ``PODS_BY_CLAIM``: pods under ``namespace/claim``."""
    return [f"{pod['metadata']['namespace']}/{name}" for name in claims_of_pod(pod)]
