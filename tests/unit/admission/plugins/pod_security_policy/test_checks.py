from __future__ import annotations

from typing import Any

import pytest

from pilothouse.admission.plugins.pod_security_policy.checks import judge
from pilothouse.admission.plugins.pod_security_policy.filling import fill_in

ANY = {"rule": "RunAsAny"}
OPEN = {"seLinux": ANY, "runAsUser": ANY, "fsGroup": ANY, "supplementalGroups": ANY, "volumes": ["*"]}


def policy(annotations: dict[str, str] | None = None, **rules: Any) -> dict[str, Any]:
    return {"metadata": {"name": "p", "annotations": annotations or {}}, "spec": {**OPEN, **rules}}


def pod(container: dict[str, Any] | None = None, **spec: Any) -> dict[str, Any]:
    return {"metadata": {"name": "a"}, "spec": {"containers": [{"name": "c", **(container or {})}], **spec}}


def context(**fields: Any) -> dict[str, Any]:
    return {"securityContext": fields}


@pytest.mark.parametrize(
    ("rules", "given", "fields"),
    [
        ({}, pod(), []),
        ({}, pod(context(privileged=True)), ["spec.containers[0].securityContext.privileged"]),
        ({"privileged": True}, pod(context(privileged=True)), []),
        ({}, pod(hostPID=True, hostIPC=True), ["spec.securityContext.hostPID", "spec.securityContext.hostIPC"]),
        ({"volumes": ["emptyDir"]}, pod(volumes=[{"name": "v", "hostPath": {"path": "/"}}]), ["spec.volumes[0]"]),
        (
            {"allowedHostPaths": [{"pathPrefix": "/foo"}]},
            pod(volumes=[{"name": "v", "hostPath": {"path": "/food"}}]),
            ["spec.volumes[0].hostPath.pathPrefix"],
        ),
        (
            {"allowedHostPaths": [{"pathPrefix": "/foo", "readOnly": True}]},
            pod({"volumeMounts": [{"name": "v"}]}, volumes=[{"name": "v", "hostPath": {"path": "/foo/bar"}}]),
            ["spec.containers[0].volumeMounts[0].readOnly"],
        ),
        (
            {"fsGroup": {"rule": "MayRunAs", "ranges": [{"min": 1, "max": 2}]}},
            pod(securityContext={"fsGroup": 3}),
            ["spec.securityContext.fsGroup"],
        ),
        (
            {"runAsUser": {"rule": "MustRunAsNonRoot"}},
            pod(context(runAsUser=0)),
            ["spec.containers[0].securityContext.runAsUser"],
        ),
        (
            {"allowedCapabilities": ["CHOWN"]},
            pod(context(capabilities={"add": ["CHOWN", "KILL"]})),
            ["spec.containers[0].securityContext.capabilities.add"],
        ),
        ({"hostPorts": [{"min": 80, "max": 90}]}, pod({"ports": [{"hostPort": 80}]}), []),
        ({}, pod({"ports": [{"hostPort": 80}]}), ["spec.containers[0].hostPort"]),
        (
            {"allowedUnsafeSysctls": ["kernel.*"]},
            pod(securityContext={"sysctls": [{"name": "kernel.msgmax"}, {"name": "net.core.x"}]}),
            ["pod.spec.securityContext.sysctls[1]"],
        ),
        (
            {"runtimeClass": {"allowedRuntimeClassNames": ["gvisor"]}},
            pod(runtimeClassName="runc"),
            ["spec.runtimeClassName"],
        ),
    ],
)
def test_pods_that_do_not_fit(rules: dict[str, Any], given: dict[str, Any], fields: list[str]) -> None:
    assert [error.field for error in judge(given, policy(**rules))] == fields


def test_what_is_left_open_is_filled_in_so_that_it_fits() -> None:
    strict = policy(
        {"seccomp.security.alpha.kubernetes.io/defaultProfileName": "runtime/default",
         "seccomp.security.alpha.kubernetes.io/allowedProfileNames": "runtime/default"},
        runAsUser={"rule": "MustRunAs", "ranges": [{"min": 7, "max": 8}]},
        supplementalGroups={"rule": "MustRunAs", "ranges": [{"min": 5, "max": 5}]},
        seLinux={"rule": "MustRunAs", "seLinuxOptions": {"level": "s0:c1,c2"}},
        requiredDropCapabilities=["ALL"],
        allowPrivilegeEscalation=False,
        readOnlyRootFilesystem=True,
    )  # fmt: skip
    made = pod()
    assert judge(made, strict)
    fill_in(made, strict)
    assert judge(made, strict) == []
    assert made["spec"]["containers"][0]["securityContext"]["runAsUser"] == 7
    once = repr(made)
    fill_in(made, strict)
    assert repr(made) == once


def test_levels_may_name_categories_in_any_order() -> None:
    rule = {"rule": "MustRunAs", "seLinuxOptions": {"level": "s0:c1,c2"}}
    given = pod(securityContext={"seLinuxOptions": {"level": "s0:c2,c1"}})
    assert judge(given, policy(seLinux=rule)) == []
