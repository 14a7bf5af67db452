"""Which checks make up a level at a version, and what they say about a pod.

A check exists from some version on and may change at later ones. Checks of the restricted level come on top of those of
the baseline, or in place of one. Messages list baseline checks first, both kinds by name.
"""

from __future__ import annotations

from functools import cache
from typing import Any, Final, NamedTuple

from pilothouse.admission.pod_security.checks import host, kernel, restricted
from pilothouse.admission.pod_security.checks.kernel import Check
from pilothouse.admission.pod_security.checks.wording import Violation
from pilothouse.admission.pod_security.policies import BASELINE, LATEST, PRIVILEGED, RESTRICTED, LevelVersion

NEWEST: Final = 37


class _Rule(NamedTuple):
    """A check by name: its forms, each with the minor version it came with, and the baseline check it replaces."""

    name: str
    versions: tuple[tuple[int, Check], ...]
    replaces: str = ""

    def at(self, minor: int) -> Check | None:
        """The form that holds at a version."""
        return next((check for since, check in reversed(self.versions) if since <= minor), None)


_escalation = restricted.check_privilege_escalation
_capabilities = restricted.check_capabilities
_BASELINE: Final = (
    _Rule("appArmorProfile", ((0, kernel.check_apparmor),)),
    _Rule("capabilities_baseline", ((0, kernel.check_added_capabilities),)),
    _Rule("hostNamespaces", ((0, host.check_host_namespaces),)),
    _Rule("hostPathVolumes", ((0, host.check_host_paths),)),
    _Rule("hostPorts", ((0, host.check_host_ports),)),
    _Rule("hostProbesAndHostLifecycle", ((34, host.check_host_probes),)),
    _Rule("privileged", ((0, host.check_privileged),)),
    _Rule("procMount", ((0, kernel.check_proc_mount), (35, kernel.check_proc_mount_of_host_users))),
    _Rule("seLinuxOptions", ((0, kernel.check_selinux()), (31, kernel.check_selinux("container_engine_t")))),
    _Rule("seccompProfile_baseline", ((0, kernel.check_seccomp_annotations), (19, kernel.check_seccomp))),
    _Rule("sysctls", tuple((since, kernel.check_sysctls(since)) for since in (0, 27, 29, 32, 37))),
    _Rule("windowsHostProcess", ((0, host.check_windows_host_process),)),
)
_RESTRICTED: Final = (
    _Rule("allowPrivilegeEscalation", ((8, _escalation), (25, restricted.unless_windows(_escalation)))),
    _Rule(
        "capabilities_restricted",
        ((22, _capabilities), (25, restricted.unless_windows(_capabilities))),
        "capabilities_baseline",
    ),
    _Rule("procMount_restricted", ((35, kernel.check_proc_mount),), "procMount"),
    _Rule("restrictedVolumes", ((0, restricted.check_volumes),), "hostPathVolumes"),
    _Rule(
        "runAsNonRoot",
        ((0, restricted.check_non_root), (35, restricted.unless_user_namespace(restricted.check_non_root))),
    ),
    _Rule("runAsUser", ((23, restricted.check_user), (35, restricted.unless_user_namespace(restricted.check_user)))),
    _Rule(
        "seccompProfile_restricted",
        ((19, restricted.check_seccomp_set), (25, restricted.unless_windows(restricted.check_seccomp_set))),
        "seccompProfile_baseline",
    ),
)


class Evaluation(NamedTuple):
    """What was found; nothing means the pod may pass."""

    errs: tuple[Violation, ...]

    @property
    def reason(self) -> str:
        """The reasons alone."""
        return ", ".join(reason for reason, _ in self.errs)

    @property
    def detail(self) -> str:
        """Reasons with their details."""
        return ", ".join(f"{reason} ({detail})" if detail else reason for reason, detail in self.errs)


def evaluate(wanted: LevelVersion, metadata: dict[str, Any], spec: dict[str, Any], newest: int = NEWEST) -> Evaluation:
    """Hold a pod against a level; versions of the future count as the newest one."""
    if wanted.level == PRIVILEGED:
        return Evaluation(())
    minor = newest if wanted.minor == LATEST else min(wanted.minor, newest)
    found = (check(metadata, spec) for check in _checks(wanted.level, minor))
    return Evaluation(tuple(error for error in found if error is not None))


@cache
def _checks(level: str, minor: int) -> tuple[Check, ...]:
    rules = [(rule, check) for rule in _BASELINE if (check := rule.at(minor)) is not None]
    if level == BASELINE:
        return tuple(check for _, check in rules)
    assert level == RESTRICTED
    more = [(rule, check) for rule in _RESTRICTED if (check := rule.at(minor)) is not None]
    replaced = {rule.replaces for rule, _ in more}
    return (*(check for rule, check in rules if rule.name not in replaced), *(check for _, check in more))
