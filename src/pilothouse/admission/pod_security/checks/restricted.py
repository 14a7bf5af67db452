"""Checks of the restricted level: no way to more rights, no root, no capabilities, only harmless volumes."""

from __future__ import annotations

from typing import Any, Final

from pilothouse.admission.pod_security.checks.kernel import Check, check_seccomp
from pilothouse.admission.pod_security.checks.wording import (
    Metadata,
    Spec,
    Violation,
    contexts,
    counted,
    has_user_namespace,
    is_windows,
    named,
    pod_context,
    quoted,
    setters,
)

_VOLUMES: Final = (
    "configMap", "csi", "downwardAPI", "emptyDir", "ephemeral", "image", "persistentVolumeClaim", "projected", "secret",
)  # fmt: skip
_BAD_VOLUMES: Final = (
    "hostPath", "gcePersistentDisk", "awsElasticBlockStore", "gitRepo", "nfs", "iscsi", "glusterfs", "rbd",
    "flexVolume", "cinder", "cephfs", "flocker", "fc", "azureFile", "vsphereVolume", "quobyte", "azureDisk",
    "photonPersistentDisk", "portworxVolume", "scaleIO", "storageos",
)  # fmt: skip


def unless_windows(check: Check) -> Check:
    """The check for pods that do not run on Windows, where it makes no sense."""
    return lambda metadata, spec: None if is_windows(spec) else check(metadata, spec)


def unless_user_namespace(check: Check) -> Check:
    """The check for pods whose users are the host's."""
    return lambda metadata, spec: None if has_user_namespace(spec) else check(metadata, spec)


def check_privilege_escalation(metadata: Metadata, spec: Spec) -> Violation | None:
    bad = [name for name, context in contexts(spec) if context.get("allowPrivilegeEscalation") is not False]
    if not bad:
        return None
    what = "must set securityContext.allowPrivilegeEscalation=false"
    return "allowPrivilegeEscalation != false", f"{named('container', bad)} {what}"


def check_capabilities(metadata: Metadata, spec: Spec) -> Violation | None:
    keeping: list[str] = []
    adding: list[str] = []
    added: set[str] = set()
    for name, context in contexts(spec):
        capabilities = context.get("capabilities") or {}
        if "ALL" not in (capabilities.get("drop") or ()):
            keeping.append(name)
        beyond = set(capabilities.get("add") or ()) - {"NET_BIND_SERVICE"}
        if beyond:
            adding.append(name)
            added |= beyond
    details = []
    if keeping:
        details.append(f'{named("container", keeping)} must set securityContext.capabilities.drop=["ALL"]')
    if adding:
        what = f"must not include {quoted(sorted(added))} in securityContext.capabilities.add"
        details.append(f"{named('container', adding)} {what}")
    return ("unrestricted capabilities", "; ".join(details)) if details else None


def check_volumes(metadata: Metadata, spec: Spec) -> Violation | None:
    bad = [each for each in spec.get("volumes") or () if not any(each.get(kind) is not None for kind in _VOLUMES)]
    if not bad:
        return None
    types = {next((kind for kind in _BAD_VOLUMES if each.get(kind) is not None), "unknown") for each in bad}
    uses = "uses" if len(bad) == 1 else "use"
    who = named("volume", [each.get("name", "") for each in bad])
    what = f"{counted('restricted volume type', types)} {quoted(sorted(types))}"
    return "restricted volume types", f"{who} {uses} {what}"


def check_non_root(metadata: Metadata, spec: Spec) -> Violation | None:
    wish = pod_context(spec).get("runAsNonRoot")
    found = [(name, context.get("runAsNonRoot")) for name, context in contexts(spec)]
    explicit = [name for name, own in found if own is False]
    if wish is False or explicit:
        who = setters(wish is False, explicit)
        return "runAsNonRoot != true", f"{who} must not set securityContext.runAsNonRoot=false"
    implicit = [name for name, own in found if own is None and not wish]
    if not implicit:
        return None
    return "runAsNonRoot != true", f"pod or {named('container', implicit)} must set securityContext.runAsNonRoot=true"


def check_user(metadata: Metadata, spec: Spec) -> Violation | None:
    pod = _is_root(pod_context(spec))
    bad = [name for name, context in contexts(spec) if _is_root(context)]
    return ("runAsUser=0", f"{setters(pod, bad)} must not set runAsUser=0") if pod or bad else None


def _is_root(context: dict[str, Any]) -> bool:
    return context.get("runAsUser") == 0


def check_seccomp_set(metadata: Metadata, spec: Spec) -> Violation | None:
    error = check_seccomp(metadata, spec)
    if error is not None or pod_context(spec).get("seccompProfile") is not None:
        return error
    bad = [name for name, context in contexts(spec) if context.get("seccompProfile") is None]
    if not bad:
        return None
    what = 'must set securityContext.seccompProfile.type to "RuntimeDefault" or "Localhost"'
    return "seccompProfile", f"pod or {named('container', bad)} {what}"
