"""Feature gates and what they switch."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from pilothouse.apis import types
from pilothouse.apis.emulation import Emulation
from pilothouse.apis.gated import drop_gated, find_gated, is_served
from pilothouse.apis.gates import check_switched, default_gates, enabled_gates, known_gates
from pilothouse.apis.resources import table
from pilothouse.machinery.schema.types import ListOf, MapOf


@pytest.mark.parametrize(
    ("switched", "on", "off"),
    [
        ({}, {"PodLevelResources", "ClusterTrustBundle"}, {"ContainerStopSignals", "GenericWorkload"}),
        ({"ContainerStopSignals": True}, {"ContainerStopSignals", "PodLevelResources"}, {"EmptyDirVolumeMode"}),
        ({"AllAlpha": True}, {"ContainerStopSignals", "EmptyDirVolumeMode"}, {"GenericWorkload"}),
        ({"AllAlpha": True, "EmptyDirVolumeMode": False}, {"ContainerStopSignals"}, {"EmptyDirVolumeMode"}),
        ({"AllBeta": False}, {"ClusterTrustBundle"}, {"PodLevelResources"}),
        ({"AllBeta": True}, {"GenericWorkload"}, {"ContainerStopSignals"}),
    ],
)
def test_what_is_on(switched: dict[str, bool], on: set[str], off: set[str]) -> None:
    enabled = enabled_gates(switched)
    assert on <= enabled
    assert not off & enabled


@pytest.mark.parametrize(
    ("switched", "errs"),
    [
        ({}, []),
        ({"EmptyDirVolumeMode": True, "AllBeta": True}, []),
        ({"Nonsense": True}, ["unrecognized feature gate: Nonsense"]),
        (
            {"JobManagedBy": False, "Nonsense": True},
            [
                "cannot set feature gate JobManagedBy to false, feature is locked to true",
                "unrecognized feature gate: Nonsense",
            ],
        ),
        ({"JobManagedBy": True}, []),
        (
            {"CompositePodGroup": True},
            [
                "CompositePodGroup is enabled, but depends on features that are disabled:"
                " [GenericWorkload TopologyAwareWorkloadScheduling]"
            ],
        ),
        ({"ClusterTrustBundle": False, "ClusterTrustBundleProjection": False}, []),
    ],
)
def test_what_may_be_switched(switched: dict[str, bool], errs: list[str]) -> None:
    assert check_switched(switched) == errs


def test_the_defaults_hold_together() -> None:
    assert check_switched({}) == check_switched({"AllAlpha": False}) == []
    for gate in known_gates().values():
        assert gate.stage in ("alpha", "beta", "ga", "deprecated")
        assert set(gate.needs) <= set(known_gates())
    assert {gate.name for gate in known_gates().values() if gate.stage == "alpha"}.isdisjoint(default_gates())


def test_every_gated_field_and_resource_exists() -> None:
    from pilothouse.apis.gated import _lines

    resources = {f"/{row.group}/{row.name}" for version in table().values() for row in version.resources}
    for gate, places in _lines():
        assert not known_gates()[gate].locked
        for place in places:
            if place.startswith("/"):
                assert place in resources
                continue
            package, version, name, *path = place.removesuffix("!").split(".")
            kind: Any = types.struct(f"{package}.{version}.{name}")
            for step in path:
                if step == "*":
                    assert isinstance(kind, ListOf | MapOf)
                    kind = kind.item if isinstance(kind, ListOf) else kind.value
                else:
                    kind = kind.fields[step].type


POD_WITH_EVERYTHING: dict[str, Any] = {
    "metadata": {},
    "spec": {
        "schedulingGroup": {"podGroupName": "g"},
        "volumes": [
            {"name": "v", "emptyDir": {"mode": 448}},
            {"name": "s", "secret": {"secretName": "s", "defaultUser": 1, "items": [{"key": "k", "user": 1}]}},
        ],
        "containers": [
            {
                "name": "c",
                "lifecycle": {"stopSignal": "SIGTERM"},
                "volumeMounts": [{"name": "v", "mountPath": "/v", "bindMountOptions": ["noexec"]}],
                "livenessProbe": {"httpGet": {"port": 1, "protocol": "HTTP2"}},
            }
        ],
    },
}
POD: dict[str, Any] = {
    "metadata": {},
    "spec": {
        "volumes": [
            {"name": "v", "emptyDir": {}},
            {"name": "s", "secret": {"secretName": "s", "items": [{"key": "k"}]}},
        ],
        "containers": [
            {
                "name": "c",
                "volumeMounts": [{"name": "v", "mountPath": "/v"}],
                "livenessProbe": {"httpGet": {"port": 1}},
            }
        ],
    },
}


def dropped(type_name: str, obj: Any, old: Any = None, **switched: bool) -> Any:
    obj = copy.deepcopy(obj)
    places = find_gated(type_name, enabled_gates(switched))
    if places is not None:
        drop_gated(places, obj, old)
    return obj


def test_fields_of_features_that_are_off() -> None:
    assert dropped("core.v1.Pod", POD_WITH_EVERYTHING) == POD
    assert dropped("core.v1.Pod", POD) == POD
    assert dropped("core.v1.Pod", POD_WITH_EVERYTHING, POD_WITH_EVERYTHING) == POD_WITH_EVERYTHING
    assert dropped("core.v1.Pod", POD_WITH_EVERYTHING, AllAlpha=True, AllBeta=True) == POD_WITH_EVERYTHING


def test_templates_are_looked_at_wherever_they_are() -> None:
    template = {"spec": {"jobTemplate": {"spec": {"scheduling": {}, "template": POD_WITH_EVERYTHING}}}}
    assert dropped("batch.v1.CronJob", template) == {"spec": {"jobTemplate": {"spec": {"template": POD}}}}


def test_one_use_keeps_a_feature_and_no_other() -> None:
    old = {"metadata": {}, "spec": {"containers": [{"name": "x", "lifecycle": {"stopSignal": "SIGHUP"}}]}}
    obj = dropped("core.v1.Pod", POD_WITH_EVERYTHING, old)
    assert obj["spec"]["containers"][0]["lifecycle"] == {"stopSignal": "SIGTERM"}
    assert "bindMountOptions" not in obj["spec"]["containers"][0]["volumeMounts"][0]


def test_a_hook_beside_the_signal_stays() -> None:
    hooks = {"stopSignal": "SIGTERM", "preStop": {"sleep": {"seconds": 1}}}
    obj = dropped("core.v1.Pod", {"metadata": {}, "spec": {"containers": [{"lifecycle": hooks}]}})
    assert obj["spec"]["containers"][0] == {"lifecycle": {"preStop": {"sleep": {"seconds": 1}}}}


@pytest.mark.parametrize(
    ("type_name", "obj", "left", "switched"),
    [
        ("core.v1.Pod", {"spec": {"resources": {"limits": {}}}}, {"spec": {}}, {"PodLevelResources": False}),
        (
            "core.v1.Pod",
            {"spec": {"containers": [{"restartPolicy": "Never"}], "initContainers": [{"restartPolicy": "Always"}]}},
            {"spec": {"containers": [{}], "initContainers": [{"restartPolicy": "Always"}]}},
            {"ContainerRestartRules": False},
        ),
        (
            "resource.v1.ResourceSlice",
            {
                "spec": {
                    "devices": [{"attributes": {"a": {"int": 1, "ints": [2]}}, "nodeAllocatableResources": {"c": {}}}]
                }
            },
            {"spec": {"devices": [{"attributes": {"a": {"int": 1}}}]}},
            {},
        ),
        ("storage.v1.CSINode", {"status": {"storageHealth": [{"name": "d"}]}}, {"status": {}}, {}),
        ("coordination.v1.Lease", {"spec": {"strategy": "x", "preferredHolder": "y"}}, {"spec": {}}, {}),
        (
            "coordination.v1.Lease",
            {"spec": {"strategy": "x", "preferredHolder": "y"}},
            {"spec": {"strategy": "x", "preferredHolder": "y"}},
            {"CoordinatedLeaderElection": True},
        ),
        (
            "scheduling.v1beta1.Workload",
            {"spec": {"podGroupTemplates": [{"name": "a", "preemptionPolicy": "Never"}]}},
            {"spec": {"podGroupTemplates": [{"name": "a"}]}},
            {"GenericWorkload": True},
        ),
    ],
)
def test_kinds(type_name: str, obj: Any, left: Any, switched: dict[str, bool]) -> None:
    assert dropped(type_name, obj, **switched) == left


def test_fields_are_judged_line_by_line() -> None:
    lease = {"spec": {"strategy": "x", "preferredHolder": "y"}}
    assert dropped("coordination.v1.Lease", lease, {"spec": {"strategy": "x"}}) == {"spec": {"strategy": "x"}}


def test_resources_of_features_that_are_off_are_not_served() -> None:
    assert not is_served("lifecycle.k8s.io", "evictions", default_gates())
    assert is_served("lifecycle.k8s.io", "evictions", enabled_gates({"EvictionRequestAPI": True}))
    assert is_served("", "pods", enabled_gates({"AllBeta": False}))
    assert not is_served("certificates.k8s.io", "clustertrustbundles", enabled_gates({"ClusterTrustBundle": False}))


def test_gates_of_an_older_version() -> None:
    """As they were: with other defaults, unlocked, or not there at all."""
    old, present = Emulation((1, 35), (1, 34)), Emulation()
    assert "CRDObservedGenerationTracking" in default_gates(present) - default_gates(old)
    assert known_gates(old)["AtomicFIFO"].stage == "pre-alpha"
    assert known_gates(old)["CSIServiceAccountTokenSecrets"].locked is False
    assert check_switched({"CSIServiceAccountTokenSecrets": False}, old) == []
    assert check_switched({"AtomicFIFO": True}, old) == [
        "cannot set feature gate AtomicFIFO to true, feature is PreAlpha at emulated version 1.35, "
        "min compatibility version 1.34"
    ]


def test_gates_that_wait_for_the_oldest_version_to_go() -> None:
    assert "DRAFractionalCapacityRange" not in default_gates()
    assert "DRAFractionalCapacityRange" in default_gates(Emulation(compatible=(1, 37)))
