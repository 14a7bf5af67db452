"""Pod security policies (policy/v1beta1, extensions/v1beta1), which no later release has: their rules and columns."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Final

from pilothouse.apis.columns import name_cell
from pilothouse.apis.core.pod_spec.annotations import validate_app_armor_profile, validate_seccomp_profile
from pilothouse.apis.storage.formats import validate_driver_name
from pilothouse.apis.strategy import Column, Context, Doc, Strategy
from pilothouse.apis.strategy_rules import DeletionRules
from pilothouse.machinery.field_errors import (
    FieldError,
    Path,
    duplicate,
    forbidden,
    invalid,
    not_supported,
    required,
)
from pilothouse.machinery.names import check_dns1123_subdomain
from pilothouse.machinery.objects import Object

ALL: Final = "*"
APP_ARMOR_DEFAULT: Final = "apparmor.security.beta.kubernetes.io/defaultProfileName"
APP_ARMOR_ALLOWED: Final = "apparmor.security.beta.kubernetes.io/allowedProfileNames"
SECCOMP_DEFAULT: Final = "seccomp.security.alpha.kubernetes.io/defaultProfileName"
SECCOMP_ALLOWED: Final = "seccomp.security.alpha.kubernetes.io/allowedProfileNames"
VOLUMES: Final = (
    "awsElasticBlockStore", "azureDisk", "azureFile", "cephFS", "cinder", "configMap", "csi", "downwardAPI",
    "emptyDir", "ephemeral", "fc", "flexVolume", "flocker", "gcePersistentDisk", "gitRepo", "glusterfs", "hostPath",
    "iscsi", "nfs", "persistentVolumeClaim", "photonPersistentDisk", "portworxVolume", "projected", "quobyte", "rbd",
    "scaleIO", "secret", "storageos", "vsphereVolume",
)  # fmt: skip
_SPEC: Final = Path("spec")
_GROUP_RULES: Final = ("MayRunAs", "MustRunAs", "RunAsAny")
_SYSCTL: Final = r"([a-z0-9]([-_a-z0-9]*[a-z0-9])?\.)*([a-z0-9][-_a-z0-9]*)?[a-z0-9*]"
_SYSCTL_PATTERN: Final = re.compile(_SYSCTL)
_SYSCTL_LIMIT: Final = 253


def validate_policy(obj: Object) -> list[FieldError]:
    """Errors of a policy."""
    spec = obj["spec"]
    errs: list[FieldError] = []
    _validate_annotations(obj["metadata"].get("annotations") or {}, errs)
    user = spec.get("runAsUser") or {}
    _one_of(user.get("rule", ""), ("MustRunAs", "MustRunAsNonRoot", "RunAsAny"), "runAsUser", errs)
    _validate_ranges(user, "runAsUser", errs)
    if spec.get("runAsGroup") is not None:
        _validate_group(spec["runAsGroup"], errs)
    _one_of((spec.get("seLinux") or {}).get("rule", ""), ("MustRunAs", "RunAsAny"), "seLinux", errs)
    for name in ("supplementalGroups", "fsGroup"):
        _one_of((spec.get(name) or {}).get("rule", ""), _GROUP_RULES, name, errs)
        _validate_ranges(spec.get(name) or {}, name, errs)
    known = (ALL, *VOLUMES)
    errs += (not_supported(_SPEC.child("volumes"), v, known) for v in spec.get("volumes") or () if v not in known)
    _validate_capabilities(spec, errs)
    if spec.get("defaultAllowPrivilegeEscalation") and not spec.get("allowPrivilegeEscalation"):
        why = "Cannot set DefaultAllowPrivilegeEscalation to true without also setting AllowPrivilegeEscalation to true"
        errs.append(invalid(_SPEC.child("defaultAllowPrivilegeEscalation"), True, why))
    _validate_places(spec, errs)
    _validate_sysctls(spec, errs)
    if spec.get("runtimeClass") is not None:
        _validate_runtime_class(spec["runtimeClass"], _SPEC.child("runtimeClass"), errs)
    return errs


def _one_of(rule: str, known: tuple[str, ...], name: str, errs: list[FieldError]) -> None:
    if rule not in known:
        errs.append(not_supported(_SPEC.child(name, "rule"), rule, known))


def _validate_ranges(half: Object, name: str, errs: list[FieldError]) -> None:
    for at, each in enumerate(half.get("ranges") or ()):
        path, low, high = _SPEC.child(name, "ranges").index(at), each.get("min", 0), each.get("max", 0)
        if low < 0:
            errs.append(invalid(path.child("min"), low, "min cannot be negative"))
        if high < 0:
            errs.append(invalid(path.child("max"), high, "max cannot be negative"))
        if low > high:
            errs.append(invalid(path.child("min"), low, "min cannot be greater than max"))


def _validate_group(group: Object, errs: list[FieldError]) -> None:
    rule, ranges, path = group.get("rule", ""), group.get("ranges") or [], _SPEC.child("runAsGroup", "ranges")
    if rule not in _GROUP_RULES:
        _one_of(rule, _GROUP_RULES, "runAsGroup", errs)
    elif rule == "RunAsAny" and ranges:
        errs.append(invalid(path, ranges, "Ranges must be empty"))
    elif rule != "RunAsAny" and not ranges:
        errs.append(invalid(path, ranges, "must provide at least one range"))
    elif rule != "RunAsAny":
        _validate_ranges(group, "runAsGroup", errs)


def _validate_capabilities(spec: Object, errs: list[FieldError]) -> None:
    """The fields are named without the spec around them, as they always were."""
    dropped = spec.get("requiredDropCapabilities") or []
    if dropped and ALL in (spec.get("allowedCapabilities") or ()):
        why = "must be empty when all capabilities are allowed by a wildcard"
        errs.append(invalid(Path("requiredDropCapabilities"), dropped, why))
    for name in ("defaultAddCapabilities", "allowedCapabilities"):
        why = f"capability is listed in {name} and requiredDropCapabilities"
        errs += (invalid(Path(name), each, why) for each in spec.get(name) or () if each in dropped)


def _validate_places(spec: Object, errs: list[FieldError]) -> None:
    for at, place in enumerate(spec.get("allowedHostPaths") or ()):
        prefix, where = place.get("pathPrefix", ""), _SPEC.child("allowedHostPaths").index(at)
        if not prefix:
            errs.append(required(where, "is required"))
            break
        if ".." in prefix.split("/"):
            errs.append(invalid(where, prefix, "must not contain '..'"))
    flex = _SPEC.child("allowedFlexVolumes", "allowedFlexVolumes")
    for at, volume in enumerate(spec.get("allowedFlexVolumes") or ()):
        if not volume.get("driver"):
            errs.append(required(flex.index(at).child("driver"), "must specify a driver"))
    for at, driver in enumerate(spec.get("allowedCSIDrivers") or ()):
        where = _SPEC.child("allowedCSIDrivers", "allowedCSIDriver").index(at).child("name")
        validate_driver_name(driver.get("name", ""), where, errs)


def _validate_sysctls(spec: Object, errs: list[FieldError]) -> None:
    allowed, refused = spec.get("allowedUnsafeSysctls") or [], spec.get("forbiddenSysctls") or []
    for name, given in (("allowedUnsafeSysctls", allowed), ("forbiddenSysctls", refused)):
        path = _SPEC.child(name)
        for at, sysctl in enumerate(given):
            if not sysctl:
                errs.append(invalid(path.index(at), sysctl, "empty sysctl not allowed"))
            elif len(sysctl) > _SYSCTL_LIMIT or _SYSCTL_PATTERN.fullmatch(sysctl) is None:
                why = f"must have at most {_SYSCTL_LIMIT} characters and match regex {_SYSCTL}"
                errs.append(invalid(path.index(at), sysctl, why))
        if len(given) > 1 and any(sysctl.startswith(ALL) for sysctl in given):
            errs.append(forbidden(path.child("items"), "if '*' is present, must not specify other sysctls"))
    for i, one in enumerate(allowed):
        for j, other in enumerate(refused):
            if covers(other, one):
                why = f"sysctl overlaps with {other}"
                errs.append(invalid(_SPEC.child("allowedUnsafeSysctls").index(i), one, why))
            elif covers(one, other):
                why = f"sysctl overlaps with {one}"
                errs.append(invalid(_SPEC.child("forbiddenSysctls").index(j), other, why))


def covers(pattern: str, sysctl: str) -> bool:
    """Whether a pattern, which may end in ``*``, means a sysctl or everything that another pattern means."""
    if pattern.endswith(ALL):
        return sysctl.removesuffix(ALL).startswith(pattern.removesuffix(ALL))
    return pattern == sysctl


def _validate_runtime_class(options: Object, path: Path, errs: list[FieldError]) -> None:
    allowed, where = options.get("allowedRuntimeClassNames") or [], path.child("allowedRuntimeClassNames")
    for at, name in enumerate(allowed):
        if name != ALL:
            errs += (invalid(where.index(at), name, message) for message in check_dns1123_subdomain(name))
        if name in allowed[:at]:
            errs.append(duplicate(where.index(at), name))
    default = options.get("defaultRuntimeClassName")
    if default is not None:
        there = path.child("defaultRuntimeClassName")
        errs += (invalid(there, default, message) for message in check_dns1123_subdomain(default))
        if default not in allowed and ALL not in allowed:
            errs.append(required(where, f'default "{default}" must be allowed'))
    if ALL in allowed and len(allowed) > 1:
        errs.append(invalid(where, allowed, "if '*' is present, must not specify other RuntimeClass names"))


def _validate_annotations(annotations: dict[str, str], errs: list[FieldError]) -> None:
    path = Path("metadata", "annotations")
    checks: tuple[tuple[str, str, Callable[[str, Path, list[FieldError]], None]], ...] = (
        (APP_ARMOR_DEFAULT, APP_ARMOR_ALLOWED, validate_app_armor_profile),
        (SECCOMP_DEFAULT, SECCOMP_ALLOWED, validate_seccomp_profile),
    )
    for default, allowed, check in checks:
        if annotations.get(default):
            check(annotations[default], path.key(default), errs)
        for profile in annotations[allowed].split(",") if annotations.get(allowed) else ():
            if profile != ALL or check is not validate_seccomp_profile:
                check(profile, path.key(allowed), errs)


def _rule(name: str) -> Callable[[Object], Any]:
    return lambda obj: (obj["spec"].get(name) or {}).get("rule", "")


def _joined(name: str) -> Callable[[Object], Any]:
    return lambda obj: ",".join(obj["spec"].get(name) or ())


class PodSecurityPolicyStrategy(Strategy):
    """Pod security policies. Types of proc mounts belonged to a feature that was off as long as there were policies."""

    deletion_rules = DeletionRules(returns_deleted=True)
    columns = (
        Column("Name", "string", name_cell, format="name", description=Doc("meta.v1.ObjectMeta", "name")),
        Column("Priv", "string", lambda obj: "true" if obj["spec"].get("privileged") else "false"),
        Column("Caps", "string", _joined("allowedCapabilities")),
        Column("SELinux", "string", _rule("seLinux")),
        Column("RunAsUser", "string", _rule("runAsUser")),
        Column("FsGroup", "string", _rule("fsGroup")),
        Column("SupGroup", "string", _rule("supplementalGroups")),
        Column("ReadOnlyRootFs", "string", lambda obj: bool(obj["spec"].get("readOnlyRootFilesystem"))),
        Column("Volumes", "string", _joined("volumes")),
    )

    def default(self, obj: Object) -> None:
        if obj["spec"].get("allowPrivilegeEscalation") is None:
            obj["spec"]["allowPrivilegeEscalation"] = True

    def prepare_for_create(self, ctx: Context, obj: Object) -> None:
        obj["spec"].pop("allowedProcMountTypes", None)

    def prepare_for_update(self, ctx: Context, obj: Object, old: Object) -> None:
        obj["spec"].pop("allowedProcMountTypes", None)

    def validate(self, ctx: Context, obj: Object) -> list[FieldError]:
        return validate_policy(obj)

    def validate_update(self, ctx: Context, obj: Object, old: Object) -> list[FieldError]:
        return validate_policy(obj)
