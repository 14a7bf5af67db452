"""Mounting an account's token: one projected volume, mounted where clients in containers look for it."""

from __future__ import annotations

from random import Random
from typing import Any, Final

from pilothouse.machinery.names import TOKEN_VOLUME_PREFIX, generate_name

_PATH: Final = "/var/run/secrets/kubernetes.io/serviceaccount"
_EXPIRATION_SECONDS: Final = 3607
_DEFAULT_MODE: Final = 0o644


def mount_token(spec: dict[str, Any], rng: Random) -> None:
    """Mount the token in every container that has nothing else in its place."""
    containers = [*(spec.get("initContainers") or ()), *(spec.get("containers") or ())]
    needing = [container for container in containers if _lacks_mount(container.get("volumeMounts"))]
    if not needing:
        return
    volumes = spec.get("volumes") or ()
    known = (
        next((each["name"] for each in volumes if each.get("name", "").startswith(TOKEN_VOLUME_PREFIX)), "")
        if volumes
        else ""
    )
    name = known or generate_name(TOKEN_VOLUME_PREFIX, rng)
    for container in needing:
        mount = {"name": name, "readOnly": True, "mountPath": _PATH}
        container["volumeMounts"] = [*(container.get("volumeMounts") or ()), mount]
    if not known:
        spec["volumes"] = [*volumes, _token_volume(name)]


def _lacks_mount(mounts: list[dict[str, Any]] | None) -> bool:
    return not mounts or all(mount.get("mountPath") != _PATH for mount in mounts)


def _token_volume(name: str) -> dict[str, Any]:
    token = {"expirationSeconds": _EXPIRATION_SECONDS, "path": "token"}
    authorities = {"name": "kube-root-ca.crt", "items": [{"key": "ca.crt", "path": "ca.crt"}]}
    namespace = {"path": "namespace", "fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.namespace"}}
    sources = [{"serviceAccountToken": token}, {"configMap": authorities}, {"downwardAPI": {"items": [namespace]}}]
    return {"name": name, "projected": {"sources": sources, "defaultMode": _DEFAULT_MODE}}
