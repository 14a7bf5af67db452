"""Rules that follow the feature gates: what a switched gate newly allows or refuses, beside what the usual ones say."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from pilothouse.machinery.objects import Object

CONTAINER: Object = {"name": "c", "image": "i"}


def pod(spec: Object | None = None, container: Object | None = None, **metadata: Any) -> Object:
    made = {"containers": [{**CONTAINER, **(container or {})}], **(spec or {})}
    return {"metadata": {"name": "a", "namespace": "ns", **metadata}, "spec": made}


def stateful(strategy: Object) -> Object:
    labels = {"a": "b"}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [CONTAINER]}}
    spec = {"serviceName": "s", "selector": {"matchLabels": labels}, "template": template, "updateStrategy": strategy}
    return {"metadata": {"name": "a", "namespace": "ns"}, "spec": spec}


COMPARING = {"tolerations": [{"key": "a", "operator": "Gt", "value": "1"}]}
ONCE = {"initContainers": [{**CONTAINER, "name": "d", "restartPolicy": "Never"}]}
RESTART_ALL = {"action": "RestartAllContainers", "exitCodes": {"operator": "In", "values": [1]}}
RULES = {"restartPolicy": "Never", "restartPolicyRules": [RESTART_ALL]}
SPREAD = {
    "topologySpreadConstraints": [
        {
            "maxSkew": 1, "topologyKey": "z", "whenUnsatisfiable": "DoNotSchedule", "matchLabelKeys": ["k"],
            "labelSelector": {"matchLabels": {"k": "v"}},
        }
    ]
}  # fmt: skip
NEW = [
    ("PodDeletionCost=false", pod(annotations={"controller.kubernetes.io/pod-deletion-cost": "x"}), 1, 0),
    ("TaintTolerationComparisonOperators=true", pod(COMPARING), 1, 0),
    ("UserNamespacesHostNetworkSupport=true", pod({"hostNetwork": True, "hostUsers": False}), 1, 0),
    ("SELinuxMount=false", pod({"securityContext": {"seLinuxChangePolicy": "MountOption"}}), 0, 1),
    ("RestartAllContainersOnContainerExits=false", pod(container=RULES), 0, 1),
    ("ContainerRestartRules=false", pod(ONCE), 0, 1),
    ("MatchLabelKeysInPodTopologySpreadSelectorMerge=false", pod(SPREAD), 0, 1),
]


@pytest.mark.parametrize(("gate", "body", "usual", "switched"), NEW, ids=[gate for gate, *_ in NEW])
def test_new_pods(kind: Any, gate: str, body: Object, usual: int, switched: int) -> None:
    assert len(kind("v1", "pods").errors(body)) == usual
    assert len(kind("v1", "pods", gate).errors(body)) == switched
    metadata = {"annotations": body["metadata"].get("annotations", {})}
    template = {"metadata": {"name": "a", "namespace": "ns"}, "template": {"metadata": metadata, "spec": body["spec"]}}
    assert len(kind("v1", "podtemplates", gate).errors(template)) == switched


def test_the_last_choice_of_a_variable_source_comes_and_goes(kind: Any) -> None:
    body = pod(container={"env": [{"name": "a", "valueFrom": {}}]})
    assert "`secretKeyRef` or `fileKeyRef`" in kind("v1", "pods").errors(body)[0]
    assert "`configMapKeyRef` or `secretKeyRef`" in kind("v1", "pods", "EnvFiles=false").errors(body)[0]


@pytest.mark.parametrize(
    ("responders", "wanted"),
    [
        ([{"name": "a.b/c", "priority": 10000}], []),
        ([{"priority": 10000}], ["spec.evictionResponders[0].name: Required value"]),
        ([{"name": "a.b/c"}], ["spec.evictionResponders[0].priority: Required value"]),
        ([{"name": "a.b/c", "priority": 100001}],
         ["spec.evictionResponders[0].priority: Invalid value: 100001: must be less than or equal to 100000"]),
        ([{"name": "a.b/c", "priority": -1}],
         ["spec.evictionResponders[0].priority: Invalid value: -1: must be greater than or equal to 0"]),
        ([{"name": "a.b/c", "priority": 999}],
         ["spec.evictionResponders[0].priority: Invalid value: 999: priorities 0-999 are reserved for responders with "
          "*.k8s.io suffix"]),
        ([{"name": "c", "priority": 1000}],
         ["spec.evictionResponders[0].name: Invalid value: \"c\": must include a prefix (e.g. 'example.com/key')"]),
        ([{"name": "Kubernetes.io./c", "priority": 1000}],
         ['spec.evictionResponders[0].name: Invalid value: "Kubernetes.io./c": domain names *.k8s.io, *.kubernetes.io '
          "are reserved"]),
        ([{"name": f"a.b/c{at}", "priority": 1000} for at in range(11)],
         ["spec.evictionResponders: Too many: 11: must have at most 10 items"]),
    ],
)  # fmt: skip
def test_responders_to_evictions(kind: Any, responders: list[Object], wanted: list[str]) -> None:
    errs = kind("v1", "pods", "EvictionRequestAPI=true").errors(pod({"evictionResponders": responders}))
    assert [error for error in errs if not error.endswith("consist of")][: len(wanted)] == wanted
    assert bool(errs) == bool(wanted)


def test_responders_that_are_there_already_are_not_judged_again(kind: Any) -> None:
    templates = kind("v1", "podtemplates", "EvictionRequestAPI=true")
    body = {"metadata": {"name": "a", "namespace": "ns"}, "template": {"metadata": {}, "spec": pod()["spec"]}}
    body["template"]["spec"]["evictionResponders"] = [{"name": "a.b/c", "priority": 5000}]
    stored = templates.create(body)
    stored["template"]["spec"]["evictionResponders"][0]["priority"] = 5
    changed = copy.deepcopy(stored["template"])
    assert templates.errors({"template": changed}, stored) == []
    changed["spec"]["evictionResponders"][0]["priority"] = 6
    assert len(templates.errors({"template": changed}, stored)) == 1


def test_resources_of_a_whole_pod(kind: Any) -> None:
    spec = {"resources": {"limits": {"cpu": "2"}}}
    container = {"resources": {"limits": {"cpu": "1", "memory": "1Gi"}, "requests": {"cpu": "1"}}}
    usual = kind("v1", "pods").create(pod(spec, container))
    assert usual["spec"]["resources"] == {
        "limits": {"cpu": "2", "memory": "1Gi"}, "requests": {"cpu": "1", "memory": "1Gi"},
    }  # fmt: skip
    before = kind("v1", "pods", "PodLevelResourcesFixDefaulting=false").create(pod(spec, container))
    assert before["spec"]["resources"] == {"limits": {"cpu": "2"}, "requests": {"cpu": "1", "memory": "1Gi"}}
    without = kind("v1", "pods", *(f"{gate}=false" for gate in LEVEL)).create(pod(spec, container))
    assert "resources" not in without["spec"]


LEVEL = (
    "PodLevelResources", "PodLevelResourcesFixDefaulting", "PodLevelResourcesFixKubeletQOSClass",
    "InPlacePodLevelResourcesVerticalScaling",
)  # fmt: skip


def test_resizing_volumes_in_memory(kind: Any) -> None:
    in_memory = {"name": "v", "emptyDir": {"medium": "Memory", "sizeLimit": "1Mi"}}
    spec = {"volumes": [in_memory, {"name": "w", "emptyDir": {}}]}
    usual, switched = kind("v1", "pods"), kind("v1", "pods", "InPlacePodVerticalScalingMemoryBackedVolumes=true")
    stored = usual.create(pod(spec))
    wanted = copy.deepcopy(stored["spec"]["volumes"])
    wanted[0]["emptyDir"]["sizeLimit"] = "2Mi"
    assert usual.update(stored, {"spec": {"volumes": wanted}}, "resize")["spec"]["volumes"] == stored["spec"]["volumes"]
    assert switched.update(stored, {"spec": {"volumes": wanted}}, "resize")["spec"]["volumes"] == wanted

    def errors_of(change: Object, at: int = 0, name: str = "") -> list[str]:
        volumes = copy.deepcopy(stored["spec"]["volumes"])
        volumes[at]["emptyDir"] = change
        volumes[at]["name"] = name or volumes[at]["name"]
        return switched.errors({"spec": {"volumes": volumes}}, stored, "resize")

    assert errors_of({"medium": "Memory"}) == [
        "spec.volumes[0].emptyDir.sizeLimit: Forbidden: adding or removing sizeLimit on an existing volume is not "
        "allowed"
    ]
    assert errors_of({"medium": "Memory", "sizeLimit": "1Mi"}, name="x") == [
        "spec.volumes[0].name: Forbidden: volumes may not be renamed or reordered on resize"
    ]
    assert errors_of({"sizeLimit": "1Mi"}) == [
        "spec.volumes[0]: Forbidden: only sizeLimit of memory-backed emptyDir volumes is mutable on resize"
    ]
    assert switched.errors({"spec": {"volumes": wanted[:1]}}, stored, "resize") == [
        "spec.volumes: Forbidden: volumes may not be added or removed on resize"
    ]


def test_resizing_pods_with_resources_of_their_own(kind: Any) -> None:
    off = kind("v1", "pods", "InPlacePodLevelResourcesVerticalScaling=false")
    stored = off.create(pod({"resources": {"limits": {"cpu": "2"}}}))
    errs = off.errors({"spec": {"resources": {"limits": {"cpu": "3"}}}}, stored, "resize")
    assert errs == [
        "[]: Forbidden: resize of pods with pod-level resources is forbidden when "
        "InPlacePodLevelResourcesVerticalScalingEnabled feature gate is disabled"
    ]


def test_probes_get_a_protocol(kind: Any) -> None:
    body = pod(container={"livenessProbe": {"httpGet": {"port": 1}}})
    assert "protocol" not in kind("v1", "pods").create(body)["spec"]["containers"][0]["livenessProbe"]["httpGet"]
    made = kind("v1", "pods", "H2CContainerProbe=true").create(body)
    assert made["spec"]["containers"][0]["livenessProbe"]["httpGet"]["protocol"] == "HTTP1"


def test_sets_that_are_recreated(kind: Any) -> None:
    usual = kind("apps/v1", "statefulsets")
    switched = kind("apps/v1", "statefulsets", "StatefulSetRecreateStrategy=true")
    assert usual.errors(stateful({"type": "Recreate"}))[0].endswith("must be 'RollingUpdate' or 'OnDelete'")
    assert switched.errors(stateful({"type": "X"}))[0].endswith("must be 'RollingUpdate', 'OnDelete', or 'Recreate'")
    stored = switched.create(stateful({"type": "Recreate"}))
    assert usual.errors({"metadata": {"labels": {"a": "b"}}}, stored) == []


def test_sets_without_a_bound_on_unavailable_pods(kind: Any) -> None:
    sets = kind("apps/v1", "statefulsets", "MaxUnavailableStatefulSet=false")
    made = sets.create(stateful({"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 2}}))
    assert made["spec"]["updateStrategy"] == {"type": "RollingUpdate", "rollingUpdate": {"partition": 0}}


@pytest.mark.parametrize(
    ("gate", "change", "status", "wanted"),
    [
        ("AllAlpha=false", "resources", {}, ""),
        ("MutablePodResourcesForSuspendedJobs=false", "resources", {}, "spec.template"),
        ("AllAlpha=false", "nodeSelector", {"startTime": "2026-01-01T00:00:00Z", "conditions": []}, "spec.template"),
        ("MutableSchedulingDirectivesForSuspendedJobs=false", "nodeSelector", {}, ""),
        ("MutableSchedulingDirectivesForSuspendedJobs=false", "nodeSelector", {"startTime": "2026-01-01T00:00:00Z"},
         "spec.template"),
    ],
)  # fmt: skip
def test_templates_of_jobs_that_rest(kind: Any, gate: str, change: str, status: Object, wanted: str) -> None:
    jobs = kind("batch/v1", "jobs", gate)
    template = {"spec": {"restartPolicy": "Never", "containers": [CONTAINER]}}
    metadata = {"name": "a", "namespace": "ns", "uid": "u"}
    stored = jobs.create({"metadata": metadata, "spec": {"suspend": True, "template": template}})
    stored["status"] = status
    template = copy.deepcopy(stored["spec"]["template"])
    if change == "resources":
        template["spec"]["containers"][0]["resources"] = {"requests": {"cpu": "1"}}
    else:
        template["spec"]["nodeSelector"] = {"a": "b"}
    errs = jobs.errors({"spec": {"template": template}}, stored)
    assert [error.partition(":")[0] for error in errs] == ([wanted] if wanted else [])


LENIENT_IP, LENIENT_CIDR = "010.0.0.1", "10.0.0.1/8"


@pytest.mark.parametrize(
    ("group", "name", "body"),
    [
        ("v1", "pods", pod({"dnsPolicy": "None", "dnsConfig": {"nameservers": [LENIENT_IP]}})),
        ("v1", "pods", pod({"hostAliases": [{"ip": LENIENT_IP}]})),
        ("v1", "services", {"spec": {"ports": [{"port": 1}], "clusterIPs": [], "externalIPs": [LENIENT_IP]}}),
        ("v1", "services",
         {"spec": {"type": "LoadBalancer", "ports": [{"port": 1}], "loadBalancerSourceRanges": [LENIENT_CIDR]}}),
        ("v1", "endpoints", {"subsets": [{"addresses": [{"ip": LENIENT_IP}]}]}),
        ("v1", "nodes", {"spec": {"podCIDR": LENIENT_CIDR, "podCIDRs": [LENIENT_CIDR]}}),
        ("discovery.k8s.io/v1", "endpointslices", {"addressType": "IPv4", "endpoints": [{"addresses": [LENIENT_IP]}]}),
        ("networking.k8s.io/v1", "networkpolicies",
         {"spec": {"podSelector": {}, "ingress": [{"from": [{"ipBlock": {"cidr": LENIENT_CIDR}}]}]}}),
    ],
)  # fmt: skip
def test_ambiguous_addresses(kind: Any, group: str, name: str, body: Object) -> None:
    body = {"metadata": {"name": "a", "namespace": "" if name == "nodes" else "ns"}, **body}
    assert any("must not have" in error for error in kind(group, name).errors(body))
    assert kind(group, name, "StrictIPCIDRValidation=false").errors(body) == []


def test_volumes_that_move(kind: Any) -> None:
    def affinity(zone: str) -> Object:
        term = {"matchExpressions": [{"key": "zone", "operator": "In", "values": [zone]}]}
        return {"required": {"nodeSelectorTerms": [term]}}

    spec = {"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"], "local": {"path": "/a"}}
    body = {"metadata": {"name": "a"}, "spec": {**spec, "nodeAffinity": affinity("a")}}
    stored = kind("v1", "persistentvolumes").create(body)
    change = {"spec": {"nodeAffinity": affinity("b")}}
    assert len(kind("v1", "persistentvolumes").errors(change, stored)) == 1
    assert kind("v1", "persistentvolumes", "MutablePVNodeAffinity=true").errors(change, stored) == []


def test_claims_of_data_in_another_namespace(kind: Any) -> None:
    reference = {"apiGroup": "x.y", "kind": "K", "name": "n", "namespace": "other"}
    spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}, "dataSourceRef": reference}
    body = {"metadata": {"name": "a", "namespace": "ns"}, "spec": spec}
    assert "dataSourceRef" not in kind("v1", "persistentvolumeclaims").create(body)["spec"]
    switched = kind("v1", "persistentvolumeclaims", "CrossNamespaceVolumeDataSource=true").create(body)
    assert switched["spec"]["dataSourceRef"] == reference
    assert "dataSource" not in switched["spec"]


def test_autoscalers(kind: Any) -> None:
    metric = {"type": "External", "external": {"metric": {"name": "m"}, "target": {"type": "Value", "value": "1"}}}
    target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "d"}
    spec = {"scaleTargetRef": target, "minReplicas": 0, "maxReplicas": 1, "metrics": [metric]}
    body = {"metadata": {"name": "a", "namespace": "ns", "generation": 7}, "spec": spec}
    usual = kind("autoscaling/v2", "horizontalpodautoscalers")
    switched = kind("autoscaling/v2", "horizontalpodautoscalers", "HPAScaleToZero=false", "HPAGeneration=false")
    stored = usual.create(body)
    assert stored["metadata"]["generation"] == 1
    assert switched.errors(body) == ["spec.minReplicas: Invalid value: 0: must be greater than or equal to 1"]
    changed = switched.update(stored, {"spec": {"maxReplicas": 2}})
    assert changed["metadata"]["generation"] == 1


def test_drivers_without_limits_that_scale(kind: Any) -> None:
    field = "preventPodSchedulingIfMissing"
    assert kind("storage.k8s.io/v1", "csidrivers").create({"spec": {}})["spec"][field] is False
    off = kind("storage.k8s.io/v1", "csidrivers", "VolumeLimitScaling=false")
    assert field not in off.create({"spec": {field: True}})["spec"]


def test_ranges_whose_status_is_anybodys(kind: Any) -> None:
    condition = {"type": "Ready", "status": "True", "reason": "r", "message": "", "lastTransitionTime": None}
    body = {"metadata": {"name": "a"}, "spec": {"cidrs": ["10.0.0.0/8"]}, "status": {"conditions": [condition]}}
    assert kind("networking.k8s.io/v1", "servicecidrs").create(body)["status"] == {}
    kept = kind("networking.k8s.io/v1", "servicecidrs", "ServiceCIDRStatusFieldWiping=false")
    assert kept.create(body)["status"]["conditions"] == [condition]
    assert kept.strategy.reset_fields == ()


def test_names_that_files_would_own(kind: Any) -> None:
    body = {"metadata": {"name": "a.static.k8s.io"}, "webhooks": []}
    usual = kind("admissionregistration.k8s.io/v1", "mutatingwebhookconfigurations")
    off = "ManifestBasedAdmissionControlConfig=false"
    switched = kind("admissionregistration.k8s.io/v1", "mutatingwebhookconfigurations", off)
    assert len(usual.errors(body)) == 1
    assert switched.errors(body) == []
    assert switched.warnings[0].startswith('metadata.name: names ending with ".static.k8s.io" are reserved')


def test_groups_that_preempt(kind: Any) -> None:
    body = {"metadata": {"name": "a", "namespace": "ns"}, "spec": {"schedulingPolicy": {"basic": {}}}}
    usual, on = "GenericWorkload=true", "PodGroupPreemptionPolicy=true"
    assert "preemptionPolicy" not in kind("scheduling.k8s.io/v1beta1", "podgroups", usual).create(body)["spec"]
    made = kind("scheduling.k8s.io/v1beta1", "podgroups", usual, on).create(body)
    assert made["spec"]["preemptionPolicy"] == "PreemptLowerPriority"


def test_constraints_of_claims_without_capacity_to_share(kind: Any) -> None:
    request = {"name": "r", "exactly": {"deviceClassName": "c"}}
    spec = {"devices": {"requests": [request], "constraints": [{}]}}
    body = {"metadata": {"name": "a", "namespace": "ns"}, "spec": spec}
    assert "distinctAttribute" in kind("resource.k8s.io/v1", "resourceclaims").errors(body)[0]
    errs = kind("resource.k8s.io/v1", "resourceclaims", "DRAConsumableCapacity=false").errors(body)
    assert errs == ["spec.devices.constraints[0].matchAttribute: Required value"]
