"""The secrets a pod refers to, and whether its account shares them.

Only accounts with the annotation ``kubernetes.io/enforce-mountable-secrets`` restrict them.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from pilothouse.admission.refusals import forbidden
from pilothouse.apis.core.pod_spec.traversal import containers_of
from pilothouse.endpoints.admission import Attributes
from pilothouse.machinery import errors

_REFERENCES: Final = (
    ("cephfs", "secretRef"),
    ("cinder", "secretRef"),
    ("flexVolume", "secretRef"),
    ("rbd", "secretRef"),
    ("scaleIO", "secretRef"),
    ("iscsi", "secretRef"),
    ("storageos", "secretRef"),
    ("csi", "nodePublishSecretRef"),
)


def references_secret(spec: dict[str, Any]) -> bool:
    """Whether the pod refers to any secret."""
    return any(_secret_names(spec))


def _secret_names(spec: dict[str, Any]) -> Iterator[str]:
    for reference in spec.get("imagePullSecrets") or ():
        yield reference.get("name", "")
    for container in containers_of(spec):
        for name, _ in _environment_secrets(container):
            yield name
    for volume in spec.get("volumes") or ():
        yield from _volume_secrets(volume)


def _volume_secrets(volume: dict[str, Any]) -> Iterator[str]:
    yield (volume.get("azureFile") or {}).get("secretName", "")
    yield (volume.get("secret") or {}).get("secretName", "")
    for source in (volume.get("projected") or {}).get("sources") or ():
        yield (source.get("secret") or {}).get("name", "")
    for kind, field in _REFERENCES:
        yield ((volume.get(kind) or {}).get(field) or {}).get("name", "")


def _environment_secrets(container: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Names of secrets, and in which words the refusal says where they stand."""
    for variable in container.get("env") or ():
        reference = (variable.get("valueFrom") or {}).get("secretKeyRef")
        if reference is not None:
            yield reference.get("name", ""), f"envVar {variable.get('name', '')}"
    for source in container.get("envFrom") or ():
        reference = source.get("secretRef")
        if reference is not None:
            yield reference.get("name", ""), "envFrom"


def check_references(attributes: Attributes, account: dict[str, Any], spec: dict[str, Any]) -> None:
    """Refuse a pod that refers to secrets its account does not list."""
    error = _error(account, spec)
    if error:
        raise forbidden(attributes, error)


def _error(account: dict[str, Any], spec: dict[str, Any]) -> str:
    shared = {each.get("name", "") for each in account.get("secrets") or ()}
    owner = account["metadata"]["name"]
    for volume in spec.get("volumes") or ():
        if volume.get("secret") is None:
            continue
        name = volume["secret"].get("secretName", "")
        if name not in shared:
            return (
                f'volume with secret.secretName="{name}" is not allowed because service account {owner} '
                "does not reference that secret"
            )
    for kind, words in (("initContainers", "init container"), ("containers", "container")):
        error = _containers_error(spec.get(kind) or (), words, shared, owner)
        if error:
            return error
    pullable = {each.get("name", "") for each in account.get("imagePullSecrets") or ()}
    for position, reference in enumerate(spec.get("imagePullSecrets") or ()):
        name = reference.get("name", "")
        if name not in pullable:
            return (
                f'imagePullSecrets[{position}].name="{name}" is not allowed because service account {owner} '
                "does not reference that imagePullSecret"
            )
    return ""


def _containers_error(containers: Any, words: str, shared: set[str], owner: str) -> str:
    for container in containers:
        for name, where in _environment_secrets(container):
            if name not in shared:
                return (
                    f'{words} {container.get("name", "")} with {where} referencing secret.secretName="{name}" '
                    f"is not allowed because service account {owner} does not reference that secret"
                )
    return ""


def check_ephemeral_references(account: dict[str, Any], spec: dict[str, Any]) -> None:
    """The same for ephemeral containers; kube-apiserver answers 500 here."""
    shared = {each.get("name", "") for each in account.get("secrets") or ()}
    containers = spec.get("ephemeralContainers") or ()
    error = _containers_error(containers, "ephemeral container", shared, account["metadata"]["name"])
    if error:
        raise errors.generic(error)
