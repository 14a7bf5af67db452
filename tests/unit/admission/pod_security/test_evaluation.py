"""The checks of all levels and versions, with the words of kube-apiserver."""

from __future__ import annotations

from typing import Any

import pytest

from pilothouse.admission.pod_security.evaluation import evaluate
from pilothouse.admission.pod_security.policies import LATEST, LevelVersion

GOOD = {
    "allowPrivilegeEscalation": False,
    "capabilities": {"drop": ["ALL"]},
    "runAsNonRoot": True,
    "seccompProfile": {"type": "RuntimeDefault"},
}


def spec(*contexts: dict[str, Any], **more: Any) -> dict[str, Any]:
    names = "abc"
    return {"containers": [{"name": names[i], "securityContext": c} for i, c in enumerate(contexts)], **more}


def detail(level: str, minor: int, pod: dict[str, Any], annotations: dict[str, str] | None = None) -> str:
    return evaluate(LevelVersion(level, minor), {"annotations": annotations or {}}, pod).detail


def test_privileged_checks_nothing() -> None:
    assert detail("privileged", LATEST, spec({"privileged": True})) == ""


def test_a_good_pod_passes_everything() -> None:
    assert detail("restricted", LATEST, spec(GOOD, GOOD)) == ""


@pytest.mark.parametrize(
    ("pod", "expected"),
    [
        (spec({"privileged": True}), 'privileged (container "a" must not set securityContext.privileged=true)'),
        (
            spec({"privileged": True}, {"privileged": True}),
            'privileged (containers "a", "b" must not set securityContext.privileged=true)',
        ),
        (spec({}, hostNetwork=True, hostIPC=True), "host namespaces (hostNetwork=true, hostIPC=true)"),
        (spec({}, volumes=[{"name": "v", "hostPath": {}}]), 'hostPath volumes (volume "v")'),
        (
            {"containers": [{"name": "a", "ports": [{"hostPort": 80}, {"hostPort": 9}]}]},
            'hostPort (container "a" uses hostPorts 80, 9)',
        ),
        (
            {"containers": [{"name": "a", "livenessProbe": {"httpGet": {"host": "h"}}}]},
            'probe or lifecycle host (container "a" uses probe or lifecycle host "h")',
        ),
        (
            spec({"capabilities": {"add": ["SYS_ADMIN", "CHOWN", "NET_ADMIN"]}}),
            'non-default capabilities (container "a" must not include "NET_ADMIN", "SYS_ADMIN" in '
            "securityContext.capabilities.add)",
        ),
        (
            spec({"procMount": "Unmasked"}),
            'procMount (container "a" must not set securityContext.procMount to "Unmasked")',
        ),
        (
            spec({"seLinuxOptions": {"type": "x", "user": "u"}}, securityContext={"seLinuxOptions": {"role": "r"}}),
            'seLinuxOptions (pod and container "a" set forbidden securityContext.seLinuxOptions: type "x"; '
            "user may not be set; role may not be set)",
        ),
        (
            spec(
                {"seccompProfile": {"type": "Unconfined"}}, securityContext={"seccompProfile": {"type": "Unconfined"}}
            ),
            'seccompProfile (pod and container "a" must not set securityContext.seccompProfile.type to "Unconfined")',
        ),
        (
            spec({}, securityContext={"sysctls": [{"name": "kernel.x"}, {"name": "net.ipv4.tcp_rmem"}]}),
            "forbidden sysctls (kernel.x)",
        ),
        (
            spec({"windowsOptions": {"hostProcess": True}}),
            'hostProcess (container "a" must not set securityContext.windowsOptions.hostProcess=true)',
        ),
        (
            spec({"appArmorProfile": {"type": "Unconfined"}}),
            'forbidden AppArmor profile (container "a" must not set AppArmor profile type to "Unconfined")',
        ),
        (
            spec({"privileged": True}, hostPID=True),
            'host namespaces (hostPID=true), privileged (container "a" must not set securityContext.privileged=true)',
        ),
    ],
)
def test_baseline(pod: dict[str, Any], expected: str) -> None:
    assert detail("baseline", LATEST, pod) == expected


def test_annotations() -> None:
    key = "container.apparmor.security.beta.kubernetes.io/a"
    assert detail("baseline", LATEST, spec({}), {key: "unconfined"}) == (
        'forbidden AppArmor profile (annotation must not set AppArmor profile type to "'
        'container.apparmor.security.beta.kubernetes.io/a="unconfined"")'
    )
    assert detail("baseline", LATEST, spec({}), {key: "localhost/x"}) == ""
    seccomp = {"seccomp.security.alpha.kubernetes.io/pod": "unconfined"}
    assert detail("baseline", 18, spec({}), seccomp) == (
        'seccompProfile (forbidden annotation seccomp.security.alpha.kubernetes.io/pod="unconfined")'
    )
    assert detail("baseline", 19, spec({}), seccomp) == ""


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (
            {"allowPrivilegeEscalation": None},
            'allowPrivilegeEscalation != false (container "a" must set securityContext.allowPrivilegeEscalation=false)',
        ),
        (
            {"capabilities": {"add": ["CHOWN"]}},
            'unrestricted capabilities (container "a" must set securityContext.capabilities.drop=["ALL"]; '
            'container "a" must not include "CHOWN" in securityContext.capabilities.add)',
        ),
        ({"capabilities": {"drop": ["ALL"], "add": ["NET_BIND_SERVICE"]}}, ""),
        (
            {"runAsNonRoot": None},
            'runAsNonRoot != true (pod or container "a" must set securityContext.runAsNonRoot=true)',
        ),
        (
            {"runAsNonRoot": False},
            'runAsNonRoot != true (container "a" must not set securityContext.runAsNonRoot=false)',
        ),
        ({"runAsUser": 0}, 'runAsUser=0 (container "a" must not set runAsUser=0)'),
        (
            {"seccompProfile": None},
            'seccompProfile (pod or container "a" must set securityContext.seccompProfile.type to "RuntimeDefault" or '
            '"Localhost")',
        ),
    ],
)
def test_restricted(change: dict[str, Any], expected: str) -> None:
    assert detail("restricted", LATEST, spec({**GOOD, **change})) == expected


@pytest.mark.parametrize(
    ("volume", "expected"),
    [
        ({"emptyDir": {}}, ""),
        (
            {"hostPath": {}},
            'restricted volume types (volume "v" uses restricted volume type "hostPath")',
        ),
        ({"nfs": {}}, 'restricted volume types (volume "v" uses restricted volume type "nfs")'),
        ({}, 'restricted volume types (volume "v" uses restricted volume type "unknown")'),
    ],
)
def test_volumes(volume: dict[str, Any], expected: str) -> None:
    assert detail("restricted", LATEST, spec(GOOD, volumes=[{"name": "v", **volume}])) == expected


@pytest.mark.parametrize(
    ("level", "minor", "pod", "allowed"),
    [
        ("restricted", 7, spec({**GOOD, "allowPrivilegeEscalation": None}), True),
        ("restricted", 8, spec({**GOOD, "allowPrivilegeEscalation": None}), False),
        ("restricted", 24, spec({**GOOD, "capabilities": None}, os={"name": "windows"}), False),
        ("restricted", 25, spec({**GOOD, "capabilities": None}, os={"name": "windows"}), True),
        ("restricted", 21, spec({**GOOD, "capabilities": None}), True),
        ("restricted", 22, spec({**GOOD, "capabilities": None}), False),
        ("restricted", 22, spec({**GOOD, "runAsUser": 0}), True),
        ("restricted", 23, spec({**GOOD, "runAsUser": 0}), False),
        ("restricted", 34, spec({**GOOD, "runAsUser": 0}, hostUsers=False), False),
        ("restricted", 35, spec({**GOOD, "runAsUser": 0}, hostUsers=False), True),
        ("baseline", 34, spec({"procMount": "Unmasked"}, hostUsers=False), False),
        ("baseline", 35, spec({"procMount": "Unmasked"}, hostUsers=False), True),
        ("restricted", 35, spec({**GOOD, "procMount": "Unmasked"}, hostUsers=False), False),
        ("baseline", 30, spec({"seLinuxOptions": {"type": "container_engine_t"}}), False),
        ("baseline", 31, spec({"seLinuxOptions": {"type": "container_engine_t"}}), True),
        ("baseline", 36, spec({}, securityContext={"sysctls": [{"name": "net.ipv4.tcp_notsent_lowat"}]}), False),
        ("baseline", 37, spec({}, securityContext={"sysctls": [{"name": "net.ipv4.tcp_notsent_lowat"}]}), True),
        ("baseline", 33, {"containers": [{"name": "a", "lifecycle": {"preStop": {"tcpSocket": {"host": "h"}}}}]}, True),
        (
            "baseline",
            34,
            {"containers": [{"name": "a", "lifecycle": {"preStop": {"tcpSocket": {"host": "h"}}}}]},
            False,
        ),
        ("baseline", 9999, spec({"privileged": True}), False),
    ],
)
def test_versions(level: str, minor: int, pod: dict[str, Any], allowed: bool) -> None:
    assert (not evaluate(LevelVersion(level, minor), {}, pod).errs) is allowed


def test_restricted_checks_replace_those_of_the_baseline() -> None:
    pod = spec(
        {**GOOD, "capabilities": {"drop": ["ALL"], "add": ["SYS_ADMIN"]}}, volumes=[{"name": "v", "hostPath": {}}]
    )
    assert [reason for reason, _ in evaluate(LevelVersion("restricted", LATEST), {}, pod).errs] == [
        "unrestricted capabilities",
        "restricted volume types",
    ]


def test_init_and_ephemeral_containers_count() -> None:
    pod = {
        "initContainers": [{"name": "i", "securityContext": {"privileged": True}}],
        "ephemeralContainers": [{"name": "e", "securityContext": {"privileged": True}}],
    }
    assert '"i", "e"' in detail("baseline", LATEST, pod)
