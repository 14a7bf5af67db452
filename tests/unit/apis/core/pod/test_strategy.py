"""Pods through their strategies: creation, updates, subresources, deletion, selection."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from pilothouse.apis import types
from pilothouse.apis.core.pod.qos import compute_qos
from pilothouse.apis.core.pod.strategy import (
    PodEphemeralContainersStrategy,
    PodResizeStrategy,
    PodStatusStrategy,
    PodStrategy,
)
from pilothouse.apis.strategy import Context, Strategy
from pilothouse.machinery.schema.decoding import decode

Struct = dict[str, Any]
CLAIMS = "status.nodeAllocatableResourceClaimStatuses"
HEALTH = "status.volumeHealth[1].healthConditions[0]"
NOW = "2024-05-01T10:00:00Z"
UPDATES = (
    "spec: Forbidden: pod updates may not change fields other than `spec.containers[*].image`,"
    "`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing"
    " tolerations),`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)\n"
)


def made(spec: Struct | None = None, metadata: Struct | None = None, strategy: type[Strategy] = PodStrategy) -> Struct:
    raw = {
        "metadata": {"name": "p", "namespace": "ns", **(metadata or {})},
        "spec": {"containers": [{"name": "c", "image": "a:1"}], **(spec or {})},
    }
    pod, _ = decode(types.struct("core.v1.Pod"), raw)
    strategy().default(pod)
    return pod


def created(spec: Struct | None = None, metadata: Struct | None = None) -> Struct:
    pod = made(spec, metadata)
    PodStrategy().prepare_for_create(Context(now=NOW), pod)
    assert PodStrategy().validate(Context(now=NOW), pod) == []
    return pod


def update(old: Struct, change: Any, strategy: type[Strategy] = PodStrategy) -> tuple[Struct, list[str]]:
    pod, before = copy.deepcopy(old), copy.deepcopy(old)
    change(pod)
    strategy().default(pod)
    strategy().prepare_for_update(Context(now=NOW), pod, old)
    errs = strategy().validate_update(Context(now=NOW), pod, old)
    assert old == before
    return pod, [str(error) for error in errs]


def test_creation_starts_the_status() -> None:
    pod = created()
    assert pod["status"] == {"phase": "Pending", "qosClass": "BestEffort"}
    assert pod["metadata"]["generation"] == 1


def test_gates_show_in_the_status() -> None:
    pod = created({"schedulingGates": [{"name": "example.com/g"}]})
    assert pod["status"]["conditions"] == [
        {
            "type": "PodScheduled",
            "status": "False",
            "lastProbeTime": None,
            "lastTransitionTime": NOW,
            "reason": "SchedulingGated",
            "message": "Scheduling is blocked due to non-empty scheduling gates",
        }
    ]
    assert decode(types.struct("core.v1.Pod"), pod)[0] == pod


def test_label_keys_become_selectors_of_the_pods_own_values() -> None:
    spread = {
        "maxSkew": 1,
        "topologyKey": "zone",
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {},
        "matchLabelKeys": ["app", "absent"],
    }
    term = {"topologyKey": "zone", "labelSelector": {}, "mismatchLabelKeys": ["app"]}
    affinity = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    pod = created({"topologySpreadConstraints": [spread], "affinity": affinity}, {"labels": {"app": "web"}})
    wanted = {"key": "app", "operator": "In", "values": ["web"]}
    assert pod["spec"]["topologySpreadConstraints"][0]["labelSelector"] == {"matchExpressions": [wanted]}
    found = pod["spec"]["affinity"]["podAntiAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"][0]
    assert found["labelSelector"] == {"matchExpressions": [{**wanted, "operator": "NotIn"}]}


def test_app_armor_annotations_become_fields_with_a_warning() -> None:
    key = "container.apparmor.security.beta.kubernetes.io/c"
    pod = made(metadata={"annotations": {key: "localhost/x"}})
    ctx = Context(now=NOW)
    PodStrategy().prepare_for_create(ctx, pod)
    profile = pod["spec"]["containers"][0]["securityContext"]["appArmorProfile"]
    assert profile == {"type": "Localhost", "localhostProfile": "x"}
    assert ctx.warnings == [
        f'metadata.annotations[{key}]: deprecated since v1.30; use the "appArmorProfile" field instead'
    ]


def test_resources_of_the_whole_pod_are_completed() -> None:
    resources = {"limits": {"memory": "1Gi"}}
    limited = {"limits": {"cpu": "2", "memory": "512Mi"}, "requests": {"cpu": "1"}}
    pod = created({"resources": resources, "containers": [{"name": "c", "image": "a", "resources": limited}]})
    assert pod["spec"]["resources"] == {
        "limits": {"memory": "1Gi", "cpu": "2"},
        "requests": {"cpu": "1", "memory": "512Mi"},
    }


@pytest.mark.parametrize(
    ("resources", "wanted"),
    [
        ([{}], "BestEffort"),
        ([{"requests": {"cpu": "1"}}], "Burstable"),
        ([{"requests": {"cpu": "1", "memory": "1"}, "limits": {"cpu": "1", "memory": "1"}}], "Guaranteed"),
        ([{"requests": {"cpu": "1", "memory": "1"}, "limits": {"cpu": "1000m", "memory": "1"}}], "Guaranteed"),
        ([{"requests": {"cpu": "1", "memory": "1"}, "limits": {"cpu": "1", "memory": "1"}}, {}], "Burstable"),
        ([{"requests": {"cpu": "1"}, "limits": {"cpu": "1"}}], "Burstable"),
        ([{"requests": {"example.com/x": "1"}, "limits": {"example.com/x": "1"}}], "BestEffort"),
    ],
)
def test_quality_of_service(resources: list[Struct], wanted: str) -> None:
    assert compute_qos({"containers": [{"resources": each} for each in resources]}) == wanted


def test_quality_of_the_whole_pod_wins() -> None:
    amounts = {"cpu": "1", "memory": "1Gi"}
    spec = {"resources": {"requests": amounts, "limits": amounts}, "containers": [{"resources": {}}]}
    assert compute_qos(spec) == "Guaranteed"


def test_images_may_change_and_count_generations() -> None:
    pod, errs = update(created(), lambda pod: pod["spec"]["containers"][0].update(image="a:2"))
    assert (pod["metadata"]["generation"], errs) == (2, [])


def test_an_update_without_effect_counts_nothing_and_keeps_the_status() -> None:
    old = created()
    pod, errs = update(old, lambda pod: pod.update(status={"phase": "Running"}))
    assert (pod, errs) == (old, [])


def _add_container(pod: Struct) -> None:
    pod["spec"]["containers"].append({"name": "d", "image": "a:1", "resources": {}})


@pytest.mark.parametrize(
    ("change", "wanted"),
    [
        (
            lambda pod: pod["spec"].update(nodeSelector={"a": "b"}),
            [
                UPDATES
                + '@@ -39,7 +39,9 @@\n  "TerminationGracePeriodSeconds": 30,\n  "ActiveDeadlineSeconds": null,\n'
                '  "DNSPolicy": "ClusterFirst",\n- "NodeSelector": null,\n+ "NodeSelector": {\n+  "a": "b"\n+ },\n'
                '  "ServiceAccountName": "",\n  "DeprecatedServiceAccount": "",\n '
                ' "AutomountServiceAccountToken": null,\n'
            ],
        ),
        (_add_container, ["spec.containers: Forbidden: pod updates may not add or remove containers"]),
        (lambda pod: pod["spec"].update(tolerations=[{"operator": "Exists"}]), []),
        (lambda pod: pod["spec"].update(activeDeadlineSeconds=5), []),
        (
            lambda pod: pod["spec"].update(schedulingGates=[{"name": "g"}]),
            ["spec.schedulingGates[0].name: Forbidden: only deletion is allowed, but found new scheduling gate 'g'"],
        ),
        (
            lambda pod: pod["metadata"].update(annotations={"kubernetes.io/config.mirror": "x"}),
            [
                'metadata.annotations[kubernetes.io/config.mirror]: Invalid value: "x": must set spec.nodeName'
                " if mirror pod"
                " annotation is set",
                "metadata.annotations[kubernetes.io/config.mirror]: Forbidden: may not add mirror pod annotation",
                'metadata.annotations[kubernetes.io/config.mirror]: Invalid value: "x": must set spec.nodeName'
                " if mirror pod"
                " annotation is set",
            ],
        ),
    ],
)
def test_updates(change: Any, wanted: list[str]) -> None:
    assert update(created(), change)[1] == wanted


def test_the_deadline_only_shrinks() -> None:
    old = created({"activeDeadlineSeconds": 10})
    where = "spec.activeDeadlineSeconds: Invalid value"
    assert update(old, lambda pod: pod["spec"].update(activeDeadlineSeconds=11))[1] == [
        f"{where}: 11: must be less than or equal to previous value"
    ]
    assert update(old, lambda pod: pod["spec"].pop("activeDeadlineSeconds"))[1] == [
        f"{where}: null: must not update from a positive integer to nil value"
    ]
    assert update(old, lambda pod: pod["spec"].update(activeDeadlineSeconds=9))[1] == []


def test_tolerations_only_grow() -> None:
    old = created({"tolerations": [{"key": "a", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 5}]})
    assert update(old, lambda pod: pod["spec"].pop("tolerations"))[1] == [
        "spec.tolerations: Forbidden: existing toleration can not be modified except its tolerationSeconds"
    ]
    assert update(old, lambda pod: pod["spec"]["tolerations"][0].update(tolerationSeconds=1))[1] == []


def test_gated_pods_may_narrow_their_nodes() -> None:
    old = created({"schedulingGates": [{"name": "g"}], "nodeSelector": {"a": "1"}})
    assert update(old, lambda pod: pod["spec"]["nodeSelector"].update(b="2"))[1] == []
    assert update(old, lambda pod: pod["spec"]["nodeSelector"].update(a="2"))[1] == [
        'spec.nodeSelector: Invalid value: {"a":"2"}: only additions to spec.nodeSelector are allowed (no mutations or'
        " deletions)"
    ]
    terms = {
        "requiredDuringSchedulingIgnoredDuringExecution": {
            "nodeSelectorTerms": [{"matchExpressions": [{"key": "a", "operator": "Exists"}]}]
        }
    }
    assert update(old, lambda pod: pod["spec"].update(affinity={"nodeAffinity": terms}))[1] == []


@pytest.mark.parametrize(
    ("affinity", "shown"),
    [
        ({}, "null"),
        ({"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": []}}}, "[]"),
    ],
)
def test_gated_pods_may_not_widen_their_nodes(affinity: Struct, shown: str) -> None:
    kept = "requiredDuringSchedulingIgnoredDuringExecution"
    terms = {"nodeSelectorTerms": [{"matchExpressions": [{"key": "a", "operator": "Exists"}]}]}
    old = created({"schedulingGates": [{"name": "g"}], "affinity": {"nodeAffinity": {kept: terms}}})
    _, errs = update(old, lambda pod: pod["spec"].update(affinity=affinity))
    assert errs[-1] == (
        f"spec.affinity.nodeAffinity.{kept}.nodeSelectorTerms: Invalid value: {shown}: no additions/deletions to"
        " non-empty NodeSelectorTerms list are allowed"
    )


def test_equal_amounts_written_differently_are_no_change() -> None:
    old = created({"containers": [{"name": "c", "image": "a:1", "resources": {"limits": {"memory": "1048576k"}}}]})
    pod, errs = update(
        old,
        lambda pod: pod["spec"]["containers"][0].update(
            resources={"limits": {"memory": "1048576e3"}, "requests": {"memory": "1048576k"}}
        ),
    )
    assert (errs, pod["metadata"]["generation"]) == ([], 1)


def test_ephemeral_containers_are_added_and_nothing_else_changes() -> None:
    old = created(metadata={"labels": {"a": "b"}})

    def change(pod: Struct) -> None:
        pod["spec"]["ephemeralContainers"] = [{"name": "e", "image": "i", "resources": {}, "targetContainerName": "c"}]
        pod["spec"]["nodeName"] = "elsewhere"
        pod["metadata"]["labels"] = {"x": "y"}

    pod, errs = update(old, change, PodEphemeralContainersStrategy)
    assert errs == []
    assert "nodeName" not in pod["spec"]
    assert (pod["metadata"]["labels"], pod["metadata"]["generation"]) == ({"a": "b"}, 2)
    _, errs = update(
        pod, lambda pod: pod["spec"]["ephemeralContainers"][0].update(image="j"), PodEphemeralContainersStrategy
    )
    assert errs[0].startswith(
        'spec.ephemeralContainers: Forbidden: existing ephemeral containers "e" may not be changed\n@@'
    )
    _, errs = update(pod, lambda pod: pod["spec"].pop("ephemeralContainers"), PodEphemeralContainersStrategy)
    assert errs == ['spec.ephemeralContainers: Forbidden: existing ephemeral containers "e" may not be removed\n']


def test_ephemeral_containers_may_not_serve() -> None:
    ephemeral = [
        {
            "name": "c",
            "image": "i",
            "resources": {"limits": {"cpu": "1"}},
            "ports": [{"containerPort": 1}],
            "targetContainerName": "x",
        }
    ]
    _, errs = update(
        created(), lambda pod: pod["spec"].update(ephemeralContainers=ephemeral), PodEphemeralContainersStrategy
    )
    assert errs == [
        'spec.ephemeralContainers[0].name: Duplicate value: "c"',
        'spec.ephemeralContainers[0].targetContainerName: Not found: "x"',
        "spec.ephemeralContainers[0].ports: Forbidden: cannot be set for an Ephemeral Container",
        "spec.ephemeralContainers[0].resources: Forbidden: cannot be set for an Ephemeral Container",
    ]


def resized(old: Struct, resources: Struct) -> tuple[Struct, list[str]]:
    return update(old, lambda pod: pod["spec"]["containers"][0].update(resources=resources), PodResizeStrategy)


def test_resizing_changes_cpu_and_memory() -> None:
    resources = {"requests": {"cpu": "1", "memory": "1Gi"}}
    old = created({"containers": [{"name": "c", "image": "a:1", "resources": resources}]})
    pod, errs = resized(old, {"requests": {"cpu": "2", "memory": "1Gi"}})
    assert errs == []
    assert pod["spec"]["containers"][0]["resources"] == {"requests": {"cpu": "2", "memory": "1Gi"}}
    assert pod["metadata"]["generation"] == 2


@pytest.mark.parametrize(
    ("resources", "wanted"),
    [
        (
            {"requests": {"cpu": "1"}},
            ["spec.containers[0].resources.requests: Forbidden: resource requests cannot be removed"],
        ),
        (
            {"requests": {"cpu": "1", "memory": "1Gi", "ephemeral-storage": "1"}},
            ["spec: Forbidden: only cpu and memory resources are mutable"],
        ),
        (
            {"requests": {"cpu": "1", "memory": "1Gi"}, "limits": {"cpu": "1", "memory": "1Gi"}},
            ['spec: Invalid value: "Burstable": Pod QOS Class may not change as a result of resizing'],
        ),
    ],
)
def test_what_resizing_may_not_do(resources: Struct, wanted: list[str]) -> None:
    given = {"requests": {"cpu": "1", "memory": "1Gi"}}
    old = created({"containers": [{"name": "c", "image": "a:1", "resources": given}]})
    assert resized(old, resources)[1] == wanted


def test_resizing_ignores_other_changes_but_not_other_containers() -> None:
    old = created()
    pod, errs = update(old, lambda pod: pod["spec"].update(nodeName="n"), PodResizeStrategy)
    assert (pod["spec"], errs) == (old["spec"], [])
    _, errs = update(old, _add_container, PodResizeStrategy)
    assert errs == ["spec.containers: Forbidden: containers may not be added or removed on resize"]


def test_resizing_keeps_resources_that_clients_do_not_know() -> None:
    old = created({"resources": {"requests": {"cpu": "1"}}})
    for change in (lambda pod: pod["spec"].pop("resources"), _forget_resources_and_add_a_container):
        pod, _ = update(old, change, PodResizeStrategy)
        assert pod["spec"]["resources"] == old["spec"]["resources"]


def _forget_resources_and_add_a_container(pod: Struct) -> None:
    del pod["spec"]["resources"]
    _add_container(pod)


def test_status_writes_leave_the_spec_alone() -> None:
    old = created()
    old["status"]["conditions"] = [{"type": "Ready", "status": "True", "observedGeneration": 3}]

    def change(pod: Struct) -> None:
        pod["spec"]["nodeName"] = "n"
        pod["metadata"]["ownerReferences"] = [{"name": "x"}]
        pod["status"] = {"phase": "Running", "podIP": "10.0.0.1", "conditions": [{"type": "Ready", "status": "False"}]}

    pod, errs = update(old, change, PodStatusStrategy)
    assert errs == []
    assert pod["spec"] == old["spec"]
    assert "ownerReferences" not in pod["metadata"]
    assert pod["status"]["qosClass"] == "BestEffort"
    assert pod["status"]["podIPs"] == [{"ip": "10.0.0.1"}]
    assert pod["status"]["conditions"] == [{"type": "Ready", "status": "False", "observedGeneration": 3}]


@pytest.mark.parametrize(
    ("status", "wanted"),
    [
        ({"qosClass": "Guaranteed"}, ['status.qosClass: Invalid value: "Guaranteed": field is immutable']),
        (
            {"podIP": "10.0.0.1", "podIPs": [{"ip": "10.0.0.1"}, {"ip": "10.0.0.2"}]},
            [
                'status.podIPs: Invalid value: [{"IP":"10.0.0.1"},{"IP":"10.0.0.2"}]: may specify no more than'
                " one IP for each"
                " IP family"
            ],
        ),
        (
            {"podIP": "10.0.0.1", "podIPs": [{"ip": "10.0.0.1"}, {"ip": "x"}]},
            [
                'status.podIPs[1]: Invalid value: "x": must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)',
                "status.podIPs: Internal error: failed to check for dual stack with error:invalid IP[1]: x",
                'status.podIPs: Invalid value: [{"IP":"10.0.0.1"},{"IP":"x"}]: may specify no more than one IP for each'
                " IP family",
            ],
        ),
        (
            {
                "nodeAllocatableResourceClaimStatuses": [
                    {"resourceClaimName": "a", "mapping": [{"name": "cpu", "quantity": "-1"}, {"name": "x"}]},
                    {"resourceClaimName": "mine", "overhead": [{"name": "memory"}, {"name": "cpu", "perPod": "-2"}]},
                ]
            },
            [
                f'{CLAIMS}[0].resourceClaimName: Invalid value: "a": no mapping found in pod reference',
                f'{CLAIMS}[0].mapping[0].quantity: Invalid value: "-1": must be non-negative',
                f'{CLAIMS}[0].mapping[1].name: Invalid value: "x": must be a node allocatable resource name',
                f'{CLAIMS}[1].overhead[0]: Invalid value: "": at least one of perPod or perContainer must be set',
                f'{CLAIMS}[1].overhead[1].perPod: Invalid value: "-2": must be non-negative',
            ],
        ),
        (
            {"volumeHealth": [{"name": "v"}, {"name": "w", "healthConditions": [{"reason": "not a reason"}]}]},
            ['status.volumeHealth[1].name: Not found: "w"', f'{HEALTH}.reason: Invalid value: "not a reason": a'],
        ),
        (
            {"hostIP": "10.0.0.1", "hostIPs": [{"ip": "10.0.0.2"}]},
            ['status.hostIPs[0].ip: Invalid value: "10.0.0.2": must be equal to `hostIP`'],
        ),
        (
            {"conditions": [{"type": "a b", "status": "True", "observedGeneration": -1}]},
            ["status.conditions[0].observedGeneration: Invalid value: -1: must be a non-negative integer"],
        ),
        (
            {"containerStatuses": [{"name": "c", "state": {"running": {}}}]},
            ["status.containerStatuses[0].state: Forbidden: may not be transitioned to non-terminated state"],
        ),
        (
            {"resourceClaimStatuses": [{"name": "x"}]},
            [
                'status.resourceClaimStatuses[0].name: Invalid value: "x": must match the name of an entry in'
                " `spec.resourceClaims`"
            ],
        ),
        (
            {
                "containerStatuses": [
                    {"name": "c", "state": {"terminated": {"exitCode": 0}}, "user": {"linux": {"uid": -1, "gid": 1}}}
                ]
            },
            [
                "status.containerStatuses[0].user.linux.uid: Invalid value: -1: must be between 0 and"
                " 4294967295, inclusive"
            ],
        ),
    ],
)
def test_errors_of_a_status(status: Struct, wanted: list[str]) -> None:
    claims = [{"name": "c", "resourceClaimName": "mine"}]
    old = created({"restartPolicy": "Never", "resourceClaims": claims, "volumes": [{"name": "v", "emptyDir": {}}]})
    old["status"]["containerStatuses"] = [{"name": "c", "state": {"terminated": {"exitCode": 0}}}]
    # Reports of features that are off stay where they already are.
    old["status"].update(
        {key: [{}] for key in ("nodeAllocatableResourceClaimStatuses", "volumeHealth") if key in status}
    )
    _, errs = update(old, lambda pod: pod["status"].update(status), PodStatusStrategy)
    assert [error[: len(start)] for error, start in zip(errs, wanted, strict=False)] == wanted


def test_a_bound_pod_is_not_nominated() -> None:
    old = created({"nodeName": "n"})
    _, errs = update(old, lambda pod: pod["status"].update(nominatedNodeName="m"), PodStatusStrategy)
    assert errs == ["status.nominatedNodeName: Forbidden: may not be set on pods that are already bound to a node"]


@pytest.mark.parametrize(
    ("spec", "phase", "asked", "wanted"),
    [
        ({"nodeName": "n"}, "Running", None, 30),
        ({"nodeName": "n"}, "Running", 5, 5),
        ({"nodeName": "n"}, "Succeeded", None, 0),
        ({}, "Pending", 60, 0),
        ({"nodeName": "n", "terminationGracePeriodSeconds": 0}, "Running", None, 0),
    ],
)
def test_grace(spec: Struct, phase: str, asked: int | None, wanted: int) -> None:
    pod = created(spec)
    pod["status"]["phase"] = phase
    assert PodStrategy().check_graceful_delete(Context(), pod, asked) == wanted


def test_fields_for_selectors() -> None:
    pod = created({"nodeName": "n", "hostNetwork": True})
    assert PodStrategy().fields(pod)["spec.nodeName"] == "n"
    assert PodStrategy().fields(pod)["spec.hostNetwork"] == "true"
    assert PodStrategy().convert_field("spec.host", "n") == ("spec.nodeName", "n")
    with pytest.raises(ValueError, match=r"field label not supported: spec\.nope"):
        PodStrategy().convert_field("spec.nope", "n")


def test_a_name_that_is_no_host_name_is_warned_about() -> None:
    pod = created(metadata={"name": "a.b"})
    assert PodStrategy().warnings_on_create(Context(), pod) == [
        "metadata.name: this is used in the Pod's hostname, which can result in surprising behavior; a DNS label is"
        " recommended: [must not contain dots]"
    ]
