"""Checks of the baseline level about the kernel's fences: AppArmor, SELinux, seccomp, /proc, sysctls, capabilities."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from pilothouse.admission.pod_security.checks.wording import (
    Metadata,
    Spec,
    Violation,
    containers,
    contexts,
    counted,
    has_user_namespace,
    named,
    pod_context,
    quoted,
    setters,
)
from pilothouse.machinery.go_quote import quote

_APPARMOR_ANNOTATIONS: Final = "container.apparmor.security.beta.kubernetes.io/"
_SECCOMP_POD: Final = "seccomp.security.alpha.kubernetes.io/pod"
_SECCOMP_CONTAINER: Final = "container.seccomp.security.alpha.kubernetes.io/"
_PROFILES: Final = ("RuntimeDefault", "Localhost")
_CAPABILITIES: Final = frozenset(
    {
        "AUDIT_WRITE", "CHOWN", "DAC_OVERRIDE", "FOWNER", "FSETID", "KILL", "MKNOD", "NET_BIND_SERVICE", "SETFCAP",
        "SETGID", "SETPCAP", "SETUID", "SYS_CHROOT",
    }
)  # fmt: skip
_SELINUX_TYPES: Final = frozenset({"", "container_t", "container_init_t", "container_kvm_t"})
_SYSCTLS: Final = (
    (0, ("kernel.shm_rmid_forced", "net.ipv4.ip_local_port_range", "net.ipv4.tcp_syncookies",
         "net.ipv4.ping_group_range", "net.ipv4.ip_unprivileged_port_start")),
    (27, ("net.ipv4.ip_local_reserved_ports",)),
    (29, ("net.ipv4.tcp_keepalive_time", "net.ipv4.tcp_fin_timeout", "net.ipv4.tcp_keepalive_intvl",
          "net.ipv4.tcp_keepalive_probes")),
    (32, ("net.ipv4.tcp_rmem", "net.ipv4.tcp_wmem")),
    (37, ("net.ipv4.tcp_slow_start_after_idle", "net.ipv4.tcp_notsent_lowat")),
)  # fmt: skip

Check = Callable[[Metadata, Spec], Violation | None]


def check_apparmor(metadata: Metadata, spec: Spec) -> Violation | None:
    values: set[str] = set()
    pod = _refuses_profile(pod_context(spec).get("appArmorProfile"), values)
    bad = [name for name, context in contexts(spec) if _refuses_profile(context.get("appArmorProfile"), values)]
    annotations = sorted(
        f"{key}={quote(value)}"
        for key, value in (metadata.get("annotations") or {}).items()
        if key.startswith(_APPARMOR_ANNOTATIONS)
        and not (value in ("", "runtime/default") or value.startswith("localhost/"))
    )
    who = [setters(pod, bad)] if pod or bad else []
    if annotations:
        who.append(counted("annotation", annotations))
    if not who:
        return None
    shown = [*sorted(values), *annotations]
    detail = f"{' and '.join(who)} must not set AppArmor profile type to {quoted(shown)}"
    return counted("forbidden AppArmor profile", shown), detail


def _refuses_profile(profile: dict[str, Any] | None, values: set[str]) -> bool:
    if profile is None or profile.get("type", "") in _PROFILES:
        return False
    values.add(profile.get("type", ""))
    return True


def check_added_capabilities(metadata: Metadata, spec: Spec) -> Violation | None:
    bad: list[str] = []
    added: set[str] = set()
    for name, context in contexts(spec):
        beyond = set((context.get("capabilities") or {}).get("add") or ()) - _CAPABILITIES
        if beyond:
            bad.append(name)
            added |= beyond
    if not bad:
        return None
    what = f"must not include {quoted(sorted(added))} in securityContext.capabilities.add"
    return "non-default capabilities", f"{named('container', bad)} {what}"


def check_proc_mount(metadata: Metadata, spec: Spec) -> Violation | None:
    bad = {n: c["procMount"] for n, c in contexts(spec) if c.get("procMount") not in (None, "Default")}
    if not bad:
        return None
    what = f"must not set securityContext.procMount to {quoted(sorted(set(bad.values())))}"
    return "procMount", f"{named('container', list(bad))} {what}"


def check_proc_mount_of_host_users(metadata: Metadata, spec: Spec) -> Violation | None:
    return None if has_user_namespace(spec) else check_proc_mount(metadata, spec)


def check_selinux(*more_types: str) -> Check:
    """The check for the known types and some that came later."""
    allowed = _SELINUX_TYPES | set(more_types)

    def check(metadata: Metadata, spec: Spec) -> Violation | None:
        errs = _SELinuxErrors(allowed)
        pod = errs.found_in(pod_context(spec).get("seLinuxOptions"))
        bad = [name for name, context in contexts(spec) if errs.found_in(context.get("seLinuxOptions"))]
        if not pod and not bad:
            return None
        what = f"set forbidden securityContext.seLinuxOptions: {errs}"
        return "seLinuxOptions", f"{setters(pod, bad)} {what}"

    return check


class _SELinuxErrors:
    """Collects what is wrong over all options of a pod."""

    def __init__(self, allowed: frozenset[str]) -> None:
        self._allowed = allowed
        self._types: set[str] = set()
        self._set: set[str] = set()

    def found_in(self, options: dict[str, Any] | None) -> bool:
        if options is None:
            return False
        kind = options.get("type", "")
        also = {field for field in ("user", "role") if options.get(field)}
        self._set |= also
        if kind not in self._allowed:
            self._types.add(kind)
            return True
        return bool(also)

    def __str__(self) -> str:
        parts = [named("type", sorted(self._types))] if self._types else []
        parts += [f"{field} may not be set" for field in ("user", "role") if field in self._set]
        return "; ".join(parts)


def check_seccomp_annotations(metadata: Metadata, spec: Spec) -> Violation | None:
    annotations = metadata.get("annotations") or {}
    keys = [_SECCOMP_POD, *(_SECCOMP_CONTAINER + name for name, _ in containers(spec))]
    bad = {
        f"{key}={quote(value)}"
        for key in keys
        if (value := annotations.get(key)) is not None
        and not (value in ("runtime/default", "docker/default") or value.startswith("localhost/"))
    }
    return ("seccompProfile", f"forbidden {counted('annotation', bad)} {', '.join(sorted(bad))}") if bad else None


def check_seccomp(metadata: Metadata, spec: Spec) -> Violation | None:
    values: set[str] = set()
    pod = _refuses_profile(pod_context(spec).get("seccompProfile"), values)
    bad = [name for name, context in contexts(spec) if _refuses_profile(context.get("seccompProfile"), values)]
    if not pod and not bad:
        return None
    what = f"must not set securityContext.seccompProfile.type to {quoted(sorted(values))}"
    return "seccompProfile", f"{setters(pod, bad)} {what}"


def check_sysctls(minor: int) -> Check:
    """The check as of a version."""
    allowed = frozenset(name for since, names in _SYSCTLS if since <= minor for name in names)

    def check(metadata: Metadata, spec: Spec) -> Violation | None:
        names = [each.get("name", "") for each in pod_context(spec).get("sysctls") or ()]
        bad = [name for name in names if name not in allowed]
        return ("forbidden sysctls", ", ".join(bad)) if bad else None

    return check
