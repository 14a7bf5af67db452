"""What pods and persistent volumes refer to: the objects that a node must be able to read to run them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from pilothouse.apis.core.pod_spec.traversal import CONTAINER_LISTS, containers_of

CONFIG_MAP: Final = "configmaps"
SECRET: Final = "secrets"
CLAIM: Final = "persistentvolumeclaims"
RESOURCE_CLAIM: Final = "resourceclaims"
SERVICE_ACCOUNT: Final = "serviceaccounts"
MIRROR_ANNOTATION: Final = "kubernetes.io/config.mirror"

POD_FIELDS: Final = (
    "metadata.annotations",
    "spec.nodeName",
    "spec.serviceAccountName",
    "spec.imagePullSecrets",
    "spec.volumes",
    "spec.resourceClaims",
    "status.resourceClaimStatuses",
    "status.extendedResourceClaimStatus",
    *(f"spec.{containers}.{source}" for containers in CONTAINER_LISTS for source in ("env", "envFrom")),
)
"""All that is looked at in a pod."""

Struct = Mapping[str, Any]
_VOLUME_SECRET_REFS: Final = ("cephfs", "cinder", "flexVolume", "rbd", "scaleIO", "iscsi", "storageos")


def references_of_pod(pod: Struct) -> set[tuple[str, str]]:
    """Resource and name of everything in the pod's namespace that the pod refers to.

    A mirror pod is made by its node and refers to nothing: else a node could grant itself access.
    """
    if MIRROR_ANNOTATION in (pod["metadata"].get("annotations") or {}):
        return set()
    spec = pod.get("spec") or {}
    found = {(SERVICE_ACCOUNT, spec.get("serviceAccountName", ""))}
    found.update((SECRET, _name(reference)) for reference in spec.get("imagePullSecrets") or ())
    for container in containers_of(spec):
        found.update(_of_container(container))
    for volume in spec.get("volumes") or ():
        found.update(_of_volume(volume, pod["metadata"]["name"]))
    found.update((RESOURCE_CLAIM, name) for name in _resource_claims(pod))
    return {reference for reference in found if reference[1]}


def _of_container(container: Struct) -> Iterator[tuple[str, str]]:
    for source in container.get("envFrom") or ():
        yield SECRET, _name(source.get("secretRef"))
        yield CONFIG_MAP, _name(source.get("configMapRef"))
    for variable in container.get("env") or ():
        source = variable.get("valueFrom") or {}
        yield SECRET, _name(source.get("secretKeyRef"))
        yield CONFIG_MAP, _name(source.get("configMapKeyRef"))


def _of_volume(volume: Struct, pod_name: str) -> Iterator[tuple[str, str]]:
    if volume.get("azureFile"):
        yield SECRET, volume["azureFile"].get("secretName", "")
    for kind in _VOLUME_SECRET_REFS:
        if volume.get(kind):
            yield SECRET, _name(volume[kind].get("secretRef"))
    if volume.get("secret"):
        yield SECRET, volume["secret"].get("secretName", "")
    if volume.get("csi"):
        yield SECRET, _name(volume["csi"].get("nodePublishSecretRef"))
    if volume.get("configMap"):
        yield CONFIG_MAP, _name(volume["configMap"])
    for source in (volume.get("projected") or {}).get("sources") or ():
        yield SECRET, _name(source.get("secret"))
        yield CONFIG_MAP, _name(source.get("configMap"))
    if volume.get("persistentVolumeClaim"):
        yield CLAIM, volume["persistentVolumeClaim"].get("claimName", "")
    elif volume.get("ephemeral") is not None:
        yield CLAIM, f"{pod_name}-{volume.get('name', '')}"


def _resource_claims(pod: Struct) -> Iterator[str]:
    status = pod.get("status") or {}
    made = {item.get("name"): item.get("resourceClaimName") or "" for item in status.get("resourceClaimStatuses") or ()}
    for claim in (pod.get("spec") or {}).get("resourceClaims") or ():
        yield claim.get("resourceClaimName") or made.get(claim.get("name"), "")
    yield (status.get("extendedResourceClaimStatus") or {}).get("resourceClaimName", "")


def secrets_of_volume(volume: Struct) -> set[tuple[str, str]]:
    """Namespace and name of the secrets that a kubelet needs to mount a persistent volume."""
    spec = volume.get("spec") or {}
    home = (spec.get("claimRef") or {}).get("namespace", "")
    azure = spec.get("azureFile")
    if azure:
        return _named([(azure.get("secretNamespace") or home, azure.get("secretName", ""))])
    for kind in ("cephfs", "flexVolume", "rbd", "scaleIO", "iscsi"):
        if spec.get(kind):
            reference = spec[kind].get("secretRef") or {}
            return _named([(reference.get("namespace") or home, _name(reference))])
    for kind in ("cinder", "storageos"):
        if spec.get(kind):
            reference = spec[kind].get("secretRef") or {}
            return _named([(reference.get("namespace", ""), _name(reference))])
    csi = spec.get("csi") or {}
    wanted = (csi.get(key) or {} for key in ("nodePublishSecretRef", "nodeStageSecretRef", "nodeExpandSecretRef"))
    return _named((reference.get("namespace", ""), _name(reference)) for reference in wanted)


def _named(pairs: Iterable[tuple[str, str]]) -> set[tuple[str, str]]:
    return {pair for pair in pairs if pair[1]}


def _name(reference: Struct | None) -> str:
    return str((reference or {}).get("name") or "")
