"""Security contexts of pods and containers: users, profiles, privileges."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pilothouse.apis.core.checks import SPACE
from pilothouse.apis.core.pod_spec.paths import validate_descending_path
from pilothouse.apis.core.pod_spec.sysctls import validate_sysctls
from pilothouse.apis.core.pod_spec.windows import validate_windows_options
from pilothouse.apis.validation import in_range, one_of
from pilothouse.machinery.field_errors import (
    FieldError,
    Named,
    Path,
    forbidden,
    invalid,
    not_supported,
    required,
    too_long,
)
from pilothouse.machinery.objects import Object

if TYPE_CHECKING:
    from pilothouse.apis.core.pod_spec.options import PodValidationOptions


_MAX_ID: Final = 2**31 - 1
_PROFILE_TYPES: Final = ("Localhost", "RuntimeDefault", "Unconfined")
_PROC_MOUNTS: Final = ("Default", "Unmasked")
_MAX_PROFILE: Final = 4095


def _validate_ids(context: Object, names: tuple[str, ...], path: Path, errs: list[FieldError]) -> None:
    for name in names:
        value = context.get(name)
        if value is not None:
            in_range(value, 0, _MAX_ID, path, name, errs)


def validate_pod_security(
    context: Object, spec: Object, path: Path, errs: list[FieldError], options: PodValidationOptions
) -> None:
    """Errors of a pod's security context."""
    _validate_ids(context, ("fsGroup", "runAsUser", "runAsGroup"), path, errs)
    for position, group in enumerate(context.get("supplementalGroups") or ()):
        if not 0 <= group <= _MAX_ID:
            where = path.child("supplementalGroups").index(position)
            errs.append(invalid(where, group, f"must be between 0 and {_MAX_ID}, inclusive"))
    sysctls = context.get("sysctls")
    if sysctls:
        validate_sysctls(sysctls, spec, path.child("sysctls"), errs, allow_host=options.allow_host_sysctls)
    policy = context.get("fsGroupChangePolicy")
    if policy is not None:
        one_of(policy, ("Always", "OnRootMismatch"), path, "fsGroupChangePolicy", errs)
    _validate_profiles(context, path, errs)
    policy = context.get("supplementalGroupsPolicy")
    if policy is not None:
        one_of(policy, ("Merge", "Strict"), path, "supplementalGroupsPolicy", errs)
    policy = context.get("seLinuxChangePolicy")
    if policy is not None:
        policies = ("Recursive",) if options.only_recursive_relabelling else ("MountOption", "Recursive")
        one_of(policy, policies, path, "seLinuxChangePolicy", errs)


def _validate_profiles(context: Object, path: Path, errs: list[FieldError]) -> None:
    if "seccompProfile" in context:
        _validate_seccomp(context["seccompProfile"], path.child("seccompProfile"), errs)
    if "windowsOptions" in context:
        validate_windows_options(context["windowsOptions"], path.child("windowsOptions"), errs)
    if "appArmorProfile" in context:
        validate_app_armor(context["appArmorProfile"], path.child("appArmorProfile"), errs)


def validate_container_security(
    context: Object, host_users: bool, path: Path, errs: list[FieldError], options: PodValidationOptions
) -> None:
    """Errors of a container's security context."""
    if context.get("privileged") and not options.allow_privileged:
        errs.append(forbidden(path.child("privileged"), "disallowed by cluster policy"))
    _validate_ids(context, ("runAsUser", "runAsGroup"), path, errs)
    proc_mount = context.get("procMount")
    if proc_mount is not None:
        one_of(proc_mount, _PROC_MOUNTS, path, "procMount", errs)
        if host_users and proc_mount == "Unmasked":
            why = "`hostUsers` must be false to use `Unmasked`"
            errs.append(invalid(path.child("procMount"), proc_mount, why))
    if "seccompProfile" in context:
        _validate_seccomp(context["seccompProfile"], path.child("seccompProfile"), errs)
    if context.get("allowPrivilegeEscalation") is False:
        _validate_no_escalation(context, path, errs, options)
    if "windowsOptions" in context:
        validate_windows_options(context["windowsOptions"], path.child("windowsOptions"), errs)
    if "appArmorProfile" in context:
        validate_app_armor(context["appArmorProfile"], path.child("appArmorProfile"), errs)


def _validate_no_escalation(context: Object, path: Path, errs: list[FieldError], options: PodValidationOptions) -> None:
    if context.get("privileged"):
        why = "cannot set `allowPrivilegeEscalation` to false and `privileged` to true"
        errs.append(invalid(path, _shown(context), why))
    added = (context.get("capabilities") or {}).get("add") or ()
    if "CAP_SYS_ADMIN" in added and not options.allow_sys_admin_without_escalation:
        why = "cannot set `allowPrivilegeEscalation` to false and `capabilities.Add` CAP_SYS_ADMIN"
        errs.append(invalid(path, _shown(context), why))


def _validate_seccomp(profile: Object, path: Path, errs: list[FieldError]) -> None:
    kind, local = profile.get("type", ""), profile.get("localhostProfile")
    if not kind:
        errs.append(required(path.child("type"), "type is required when seccompProfile is set"))
    elif kind not in _PROFILE_TYPES:
        errs.append(not_supported(path.child("type"), kind, _PROFILE_TYPES))
    if kind == "Localhost":
        if local is None:
            errs.append(required(path.child("localhostProfile"), "must be set when seccomp type is Localhost"))
        else:
            validate_descending_path(local, path, "localhostProfile", errs)
    elif local is not None:
        why = "can only be set when seccomp type is Localhost"
        errs.append(invalid(path.child("localhostProfile"), _shown_profile(profile), why))


def validate_app_armor(profile: Object, path: Path, errs: list[FieldError]) -> None:
    """Errors of an AppArmor profile."""
    kind, local = profile.get("type", ""), profile.get("localhostProfile")
    if not kind:
        errs.append(required(path.child("type"), "type is required when appArmorProfile is set"))
    elif kind not in _PROFILE_TYPES:
        errs.append(not_supported(path.child("type"), kind, _PROFILE_TYPES))
    elif kind != "Localhost":
        if local is not None:
            why = "can only be set when AppArmor type is Localhost"
            errs.append(invalid(path.child("localhostProfile"), Named(local), why))
    elif local is None:
        errs.append(required(path.child("localhostProfile"), "must be set when AppArmor type is Localhost"))
    else:
        if local != local.strip(SPACE):
            errs.append(invalid(path.child("localhostProfile"), local, "must not be padded with whitespace"))
        elif not local:
            errs.append(required(path.child("localhostProfile"), "must be set when AppArmor type is Localhost"))
        if len(local.encode()) > _MAX_PROFILE:
            errs.append(too_long(path.child("localhostProfile"), "", _MAX_PROFILE))


def _shown_profile(profile: Object | None) -> Object | None:
    if profile is None:
        return None
    return {"Type": profile.get("type", ""), "LocalhostProfile": profile.get("localhostProfile")}


def _shown(context: Object) -> Object:
    """The context as kube-apiserver prints it in a message: by its internal names, everything that is empty too."""
    capabilities, selinux, windows = (
        context.get(name) for name in ("capabilities", "seLinuxOptions", "windowsOptions")
    )
    return {
        "Capabilities": None
        if capabilities is None
        else {"Add": capabilities.get("add"), "Drop": capabilities.get("drop")},
        "Privileged": context.get("privileged"),
        "SELinuxOptions": None
        if selinux is None
        else {name.capitalize(): selinux.get(name, "") for name in ("user", "role", "type", "level")},
        "WindowsOptions": None
        if windows is None
        else {
            "GMSACredentialSpecName": windows.get("gmsaCredentialSpecName"),
            "GMSACredentialSpec": windows.get("gmsaCredentialSpec"),
            "RunAsUserName": windows.get("runAsUserName"),
            "HostProcess": windows.get("hostProcess"),
        },
        "RunAsUser": context.get("runAsUser"),
        "RunAsGroup": context.get("runAsGroup"),
        "RunAsNonRoot": context.get("runAsNonRoot"),
        "ReadOnlyRootFilesystem": context.get("readOnlyRootFilesystem"),
        "AllowPrivilegeEscalation": context.get("allowPrivilegeEscalation"),
        "ProcMount": context.get("procMount"),
        "SeccompProfile": _shown_profile(context.get("seccompProfile")),
        "AppArmorProfile": _shown_profile(context.get("appArmorProfile")),
    }
