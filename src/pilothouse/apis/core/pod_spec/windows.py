"""What differs by operating system: Windows options, host processes, and fields that mean nothing on the other one."""

from __future__ import annotations

import re
from typing import Final

from pilothouse.apis.core.pod_spec.traversal import containers_at
from pilothouse.machinery.field_errors import FieldError, Named, Path, forbidden, invalid, not_supported, required
from pilothouse.machinery.names import check_dns1123_subdomain
from pilothouse.machinery.objects import Object
from pilothouse.machinery.schema.emptied import as_given

SYSTEMS: Final = ("linux", "windows")
_MAX_SPEC: Final = 64
_MAX_DOMAIN: Final = 256
_MAX_USER: Final = 104
_LABEL: Final = "[a-zA-Z0-9](?:[a-zA-Z0-9-]{0,61}[a-zA-Z0-9])?"
_has_control = re.compile(r"[\x00-\x1f\x7f]").search
_is_netbios = re.compile(r'[^\\/:*?"<>|.][^\\/:*?"<>|]{0,14}').fullmatch
_is_domain = re.compile(rf"{_LABEL}(?:\.{_LABEL})*+").fullmatch
_is_blank = re.compile(r"[. ]+").fullmatch
_has_bad_character = re.compile(r'["/\\:;|=,+*?<>@\[\]]').search
_NOT_ON_WINDOWS: Final = "cannot be set for a windows pod"
_LINUX_POD_CONTEXT: Final = (
    "appArmorProfile", "seLinuxOptions", "seccompProfile", "fsGroup", "fsGroupChangePolicy", "sysctls", "runAsUser",
    "runAsGroup", "supplementalGroups", "supplementalGroupsPolicy", "seLinuxChangePolicy",
)  # fmt: skip
_LINUX_CONTEXT: Final = (
    "appArmorProfile", "seLinuxOptions", "seccompProfile", "capabilities", "readOnlyRootFilesystem", "privileged",
    "allowPrivilegeEscalation", "procMount", "runAsUser", "runAsGroup",
)  # fmt: skip


def validate_windows_options(options: Object, path: Path, errs: list[FieldError]) -> None:
    """Errors of the Windows part of a security context."""
    name = options.get("gmsaCredentialSpecName")
    if name is not None:
        errs += (invalid(path.child("gmsaCredentialSpecName"), Named(name), m) for m in check_dns1123_subdomain(name))
    spec = options.get("gmsaCredentialSpec")
    if spec is not None:
        where = path.child("gmsaCredentialSpec")
        if not spec:
            errs.append(invalid(where, Named(spec), "gmsaCredentialSpec cannot be an empty string"))
        elif len(spec.encode()) > _MAX_SPEC * 1024:
            errs.append(invalid(where, Named(spec), f"gmsaCredentialSpec size must be under {_MAX_SPEC} KiB"))
    user = options.get("runAsUserName")
    if user is not None:
        errs += (invalid(path.child("runAsUserName"), Named(user), message) for message in _check_user_name(user))


def _check_user_name(text: str) -> list[str]:
    """``[DOMAIN\\]USER``."""
    if not text:
        return ["runAsUserName cannot be an empty string"]
    if _has_control(text):
        return ["runAsUserName cannot contain control characters"]
    if text.count("\\") > 1:
        return ["runAsUserName cannot contain more than one backslash"]
    domain, backslash, user = text.rpartition("\\")
    messages = []
    if len(domain.encode()) >= _MAX_DOMAIN:
        messages.append(f"runAsUserName's Domain length must be under {_MAX_DOMAIN} characters")
    if backslash and not _is_netbios(domain) and not _is_domain(domain):
        messages.append("runAsUserName's Domain doesn't match the NetBios nor the DNS format")
    if not user:
        messages.append("runAsUserName's User cannot be empty")
    elif len(user.encode()) > _MAX_USER:
        messages.append(f"runAsUserName's User length must not be longer than {_MAX_USER} characters")
    if _is_blank(user):
        messages.append("runAsUserName's User cannot contain only periods or spaces")
    if _has_bad_character(user):
        messages.append("runAsUserName's User cannot contain the following characters: \"/\\:;|=,+*?<>@[]")
    return messages


def _host_process(holder: Object) -> bool | None:
    options = (holder.get("securityContext") or {}).get("windowsOptions") or {}
    value: bool | None = options.get("hostProcess")
    return value


def validate_host_process(spec: Object, path: Path, errs: list[FieldError], *, privileged_allowed: bool) -> None:
    """Host processes: all containers of the pod or none, and with the host's network. ``path`` is the spec's."""
    of_pod = _host_process(spec)
    count = with_host = 0
    for container, where in containers_at(spec, path):
        count += 1
        own = _host_process(container)
        if of_pod is not None and own is not None and of_pod != own:
            shown = "true" if of_pod else "false"
            why = f"pod hostProcess value must be identical if both are specified, was {shown}"
            errs.append(invalid(where.child("securityContext", "windowsOptions", "hostProcess"), own, why))
        with_host += bool(own or (own is None and of_pod))
    if not with_host:
        return
    if with_host != count:
        why = "If pod contains any hostProcess containers then all containers must be HostProcess containers"
        errs.append(invalid(path, "", why))
    if not spec.get("hostNetwork"):
        why = "hostNetwork must be true if pod contains any hostProcess containers"
        errs.append(invalid(path.child("hostNetwork"), False, why))
    if not privileged_allowed:
        errs.append(forbidden(path, "hostProcess containers are disallowed by cluster policy"))


def validate_system(spec: Object, path: Path, errs: list[FieldError]) -> None:
    """The operating system, and what it rules out. ``path`` is the spec's."""
    name = spec["os"].get("name", "")
    if not name:
        errs.append(required(path.child("os", "name"), ""))
    elif name not in SYSTEMS:
        errs.append(not_supported(path.child("os"), name, SYSTEMS))
    elif name == "linux":
        why = "windows options cannot be set for a linux pod"
        holders = [(spec, path), *containers_at(spec, path)]
        for holder, where in holders:
            if "windowsOptions" in (holder.get("securityContext") or {}):
                errs.append(forbidden(where.child("securityContext", "windowsOptions"), why))
    else:
        _validate_no_linux(spec, path, errs)


def _validate_no_linux(spec: Object, path: Path, errs: list[FieldError]) -> None:
    context = spec.get("securityContext", {})
    where = path.child("securityContext")
    groups = "supplementalGroups" if as_given(context, "supplementalGroups") is not None else ""
    given = (name for name in _LINUX_POD_CONTEXT if name in context or name == groups)
    errs += (forbidden(where.child(name), _NOT_ON_WINDOWS) for name in given)
    for name in ("hostUsers", "hostPID", "hostIPC", "shareProcessNamespace"):
        if name in spec:
            errs.append(forbidden(path.child(name), _NOT_ON_WINDOWS))
    for container, at in containers_at(spec, path):
        context = container.get("securityContext") or {}
        where = at.child("securityContext")
        errs += (forbidden(where.child(name), _NOT_ON_WINDOWS) for name in _LINUX_CONTEXT if name in context)
