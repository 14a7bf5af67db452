"""What pods and persistent volumes refer to: the objects that a node must be able to read to run them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
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
Reference = tuple[str, str]
"""A resource and a name."""


def references_of_pod(pod: Struct) -> set[Reference]:
    """Resource and name of everything in the pod's namespace that the pod refers to.

    A mirror pod is made by its node and refers to nothing: else a node could grant itself access. At a start this runs
    for every pod there is, so it looks only at what is there.
    """
    metadata, spec = pod["metadata"], pod.get("spec") or {}
    annotations = metadata.get("annotations")
    if annotations and MIRROR_ANNOTATION in annotations:
        return set()
    found = {(SERVICE_ACCOUNT, spec.get("serviceAccountName", ""))}
    for reference in spec.get("imagePullSecrets") or ():
        found.add((SECRET, _name(reference)))
    for container in containers_of(spec):
        _add_container(container, found)
    for volume in spec.get("volumes") or ():
        _add_volume(volume, metadata["name"], found)
    if "resourceClaims" in spec or "extendedResourceClaimStatus" in (pod.get("status") or ()):
        found.update((RESOURCE_CLAIM, name) for name in _resource_claims(pod))
    return {reference for reference in found if reference[1]}


def _add_container(container: Struct, found: set[Reference]) -> None:
    for source in container.get("envFrom") or ():
        found.add((SECRET, _name(source.get("secretRef"))))
        found.add((CONFIG_MAP, _name(source.get("configMapRef"))))
    for variable in container.get("env") or ():
        source = variable.get("valueFrom")
        if source:
            found.add((SECRET, _name(source.get("secretKeyRef"))))
            found.add((CONFIG_MAP, _name(source.get("configMapKeyRef"))))


def _add_volume(volume: Struct, pod_name: str, found: set[Reference]) -> None:
    for kind, source in volume.items():
        read = _VOLUME_SOURCES.get(kind)
        if read is not None and source:
            found.update(read(source))
    if volume.get("ephemeral") is not None and not volume.get("persistentVolumeClaim"):
        found.add((CLAIM, f"{pod_name}-{volume.get('name', '')}"))


def _of_projection(projected: Struct) -> Iterator[Reference]:
    for source in projected.get("sources") or ():
        if secret := source.get("secret"):
            yield SECRET, _name(secret)
        if config_map := source.get("configMap"):
            yield CONFIG_MAP, _name(config_map)


def _of_secret_ref(source: Struct) -> tuple[Reference, ...]:
    return ((SECRET, _name(source.get("secretRef"))),)


_VOLUME_SOURCES: Final[Mapping[str, Callable[[Struct], Iterable[Reference]]]] = {
    **dict.fromkeys(("cephfs", "cinder", "flexVolume", "rbd", "scaleIO", "iscsi", "storageos"), _of_secret_ref),
    "azureFile": lambda source: ((SECRET, source.get("secretName", "")),),
    "secret": lambda source: ((SECRET, source.get("secretName", "")),),
    "csi": lambda source: ((SECRET, _name(source.get("nodePublishSecretRef"))),),
    "configMap": lambda source: ((CONFIG_MAP, _name(source)),),
    "projected": _of_projection,
    "persistentVolumeClaim": lambda source: ((CLAIM, source.get("claimName", "")),),
}
"""What a volume's source refers to, by its kind."""


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
