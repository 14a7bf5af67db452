"""Plug-ins that an administrator switches on, and small ones of the default set."""

from __future__ import annotations

from typing import Any

import pytest

from pilothouse.admission.configuration import ConfigurationError
from pilothouse.admission.environment import Environment
from pilothouse.admission.plugins.always_deny import AlwaysDeny
from pilothouse.admission.plugins.always_pull_images import AlwaysPullImages
from pilothouse.admission.plugins.deny_service_external_ips import DenyServiceExternalIPs
from pilothouse.admission.plugins.event_rate_limit import EventRateLimit
from pilothouse.admission.plugins.extended_resource_toleration import ExtendedResourceToleration
from pilothouse.admission.plugins.limit_pod_hard_anti_affinity_topology import LimitPodHardAntiAffinityTopology
from pilothouse.admission.plugins.namespace_auto_provision import NamespaceAutoProvision
from pilothouse.admission.plugins.namespace_exists import NamespaceExists
from pilothouse.admission.plugins.node_declared_feature_validator import NodeDeclaredFeatureValidator
from pilothouse.admission.plugins.owner_references_permission_enforcement import OwnerReferencesPermissionEnforcement
from pilothouse.admission.plugins.persistent_volume_claim_resize import PersistentVolumeClaimResize
from pilothouse.admission.plugins.pod_node_selector import PodNodeSelector
from pilothouse.admission.plugins.pod_resize_validator import PodResizeValidator
from pilothouse.admission.plugins.pod_toleration_restriction import PodTolerationRestriction
from pilothouse.admission.plugins.pod_topology_labels import PodTopologyLabels
from pilothouse.admission.tolerations import Coverage, merge_tolerations
from pilothouse.apis.gates import default_gates
from pilothouse.endpoints.admission import UPDATE
from pilothouse.registry.storage import StorageFactory
from pilothouse.storage.cacher import Cacher

PODS, NAMESPACES, NODES = "/v1/pods", "/v1/namespaces", "/v1/nodes"


async def test_always_deny(environment: Environment, make_request: Any, refused: Any) -> None:
    attributes = make_request("/v1/configmaps", {"metadata": {"name": "x"}})
    for action in (AlwaysDeny(environment).admit, AlwaysDeny(environment).validate):
        assert (await refused(action(attributes))).message.endswith("admission control is denying all modifications")


async def test_images_are_always_pulled(
    environment: Environment, make_request: Any, make_pod: Any, refused: Any
) -> None:
    plugin = AlwaysPullImages(environment)
    pod = make_pod(
        containers=[{"name": "c", "image": "i", "imagePullPolicy": "Never"}],
        volumes=[{"name": "v", "image": {"reference": "r"}}],
    )
    await plugin.admit(make_request(PODS, pod))
    assert (
        pod["spec"]["containers"][0]["imagePullPolicy"] == pod["spec"]["volumes"][0]["image"]["pullPolicy"] == "Always"
    )
    await plugin.validate(make_request(PODS, pod))
    pod["spec"]["containers"][0]["imagePullPolicy"] = "Never"
    error = await refused(plugin.validate(make_request(PODS, pod)))
    assert (error.code, error.message) == (
        500,
        'pods "p" is forbidden: spec.containers[0].imagePullPolicy: Unsupported value: "Never": supported values: '
        '"Always"',
    )
    await plugin.validate(make_request(PODS, pod, pod, operation=UPDATE))


async def test_anti_affinity_within_hosts(
    environment: Environment, make_request: Any, make_pod: Any, refused: Any
) -> None:
    def wanting(key: str) -> Any:
        terms = {"requiredDuringSchedulingIgnoredDuringExecution": [{"topologyKey": key}]}
        return make_request(PODS, make_pod(affinity={"podAntiAffinity": terms}))

    plugin = LimitPodHardAntiAffinityTopology(environment)
    await plugin.validate(wanting("kubernetes.io/hostname"))
    assert (await refused(plugin.validate(wanting("zone")))).message == (
        'pods "p" is forbidden: affinity.PodAntiAffinity.RequiredDuringScheduling has TopologyKey zone but only key '
        "kubernetes.io/hostname is allowed"
    )


async def test_devices_are_tolerated(environment: Environment, make_request: Any, make_pod: Any) -> None:
    requests = {"cpu": "1", "example.com/gpu": "1", "example.com/nic": "1"}
    known = {"key": "example.com/gpu", "operator": "Exists", "effect": "NoSchedule", "tolerationSeconds": 5}
    pod = make_pod(containers=[{"name": "c", "resources": {"requests": requests}}], tolerations=[known])
    await ExtendedResourceToleration(environment).admit(make_request(PODS, pod))
    assert pod["spec"]["tolerations"] == [
        {"key": "example.com/gpu", "operator": "Exists", "effect": "NoSchedule"},
        {"key": "example.com/nic", "operator": "Exists", "effect": "NoSchedule"},
    ]


async def test_namespace_exists(environment: Environment, make_request: Any, put: Any, refused: Any) -> None:
    attributes = make_request("/v1/configmaps", {"metadata": {"name": "x"}}, {}, operation=UPDATE)
    assert (await refused(NamespaceExists(environment).validate(attributes))).code == 404
    await put(NAMESPACES, "ns")
    await NamespaceExists(environment).validate(attributes)


async def test_namespaces_come_by_themselves(
    environment: Environment, storage: StorageFactory, make_request: Any
) -> None:
    plugin = NamespaceAutoProvision(environment)
    store = storage.store("", "v1", "namespaces")
    await plugin.admit(make_request("/v1/configmaps", {"metadata": {}}, dry_run=True))
    assert store.cache.get(store.key("", "ns")) is None
    for _ in range(2):
        await plugin.admit(make_request("/v1/configmaps", {"metadata": {}}))
    entry = store.cache.get(store.key("", "ns"))
    assert entry is not None
    assert store.decode(entry)["status"]["phase"] == "Active"


@pytest.mark.parametrize(
    ("given", "before", "allowed"),
    [([], None, True), (["1.1.1.1"], None, False), (["1.1.1.1"], ["1.1.1.1", "2.2.2.2"], True)],
)
async def test_external_addresses(
    environment: Environment, make_request: Any, refused: Any, given: Any, before: Any, allowed: bool
) -> None:
    new = {"metadata": {"name": "s"}, "spec": {"externalIPs": given}}
    old = None if before is None else {"metadata": {"name": "s"}, "spec": {"externalIPs": before}}
    action = DenyServiceExternalIPs(environment).validate(make_request("/v1/services", new, old))
    if allowed:
        await action
    else:
        assert (await refused(action)).message.endswith("Use of external IPs is denied by admission control")


SELECTOR = "scheduler.alpha.kubernetes.io/node-selector"


@pytest.mark.parametrize(
    ("annotations", "configured", "given", "result"),
    [
        ({SELECTOR: "env=dev"}, {}, {"disk": "ssd"}, {"env": "dev", "disk": "ssd"}),
        ({}, {"clusterDefaultNodeSelector": "env=any"}, None, {"env": "any"}),
        (
            {SELECTOR: "env=dev"},
            {},
            {"env": "x"},
            "pod node label selector conflicts with its namespace node label selector",
        ),
        (
            {},
            {"ns": "env=dev"},
            {"disk": "ssd"},
            "pod node label selector labels conflict with its namespace whitelist",
        ),
        ({}, {"clusterDefaultNodeSelector": 1, "ns": "a=b"}, {"a": "b"}, {"a": "b"}),
        ({}, ["clusterDefaultNodeSelector"], {"a": "b"}, {"a": "b"}),
        ({SELECTOR: "nonsense"}, {}, None, "invalid selector: [nonsense]"),
        ({SELECTOR: "a=b=c"}, {}, None, "invalid selector: [a b c]"),
        ({SELECTOR: "a=b!"}, {}, None, "validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"),
    ],
)
async def test_node_selectors_of_namespaces(
    environment: Environment, make_request: Any, make_pod: Any, put: Any, refused: Any, annotations: Any,
    configured: Any, given: Any, result: Any,
) -> None:  # fmt: skip
    await put(NAMESPACES, "ns", metadata={"annotations": annotations})
    plugin = PodNodeSelector(environment, {"podNodeSelectorPluginConfig": configured})
    pod = make_pod(nodeSelector=given)
    action = plugin.admit(make_request(PODS, pod))
    if isinstance(result, str):
        assert (await refused(action)).message.endswith(result)
    else:
        await action
        assert pod["spec"]["nodeSelector"] == result


def test_a_file_of_node_selectors_that_cannot_be_read_is_none(environment: Environment) -> None:
    for odd in ([None], "x", 1):
        PodNodeSelector(environment, odd)


async def test_tolerations_of_namespaces(
    environment: Environment, make_request: Any, make_pod: Any, put: Any, refused: Any
) -> None:
    prefix = "scheduler.alpha.kubernetes.io/"
    annotations = {
        f"{prefix}defaultTolerations": '[{"key": "a", "operator": "Exists"}]',
        f"{prefix}tolerationsWhitelist": '[{"key": "a", "operator": "Exists"}]',
    }
    await put(NAMESPACES, "ns", metadata={"annotations": annotations})
    plugin = PodTolerationRestriction(environment)
    pod = make_pod()
    await plugin.admit(make_request(PODS, pod))
    assert pod["spec"]["tolerations"] == [{"key": "a", "operator": "Exists"}]
    error = await refused(plugin.admit(make_request(PODS, make_pod(tolerations=[{"key": "b", "operator": "Exists"}]))))
    assert (error.code, error.message) == (
        500,
        "pod tolerations (possibly merged with namespace default tolerations) conflict with its namespace whitelist",
    )


async def test_pods_with_requests_tolerate_memory_pressure(
    environment: Environment, make_request: Any, make_pod: Any, put: Any
) -> None:
    await put(NAMESPACES, "ns")
    pod = make_pod(containers=[{"name": "c", "resources": {"requests": {"cpu": "1"}}}])
    await PodTolerationRestriction(environment).admit(make_request(PODS, pod, pod, operation=UPDATE))
    assert [each["key"] for each in pod["spec"]["tolerations"]] == ["node.kubernetes.io/memory-pressure"]


ANY = {"operator": "Exists"}


@pytest.mark.parametrize(
    ("wide", "narrow", "result"),
    [
        (ANY, {"key": "a", "operator": "Equal", "value": "b", "effect": "NoSchedule"}, True),
        ({"key": "a", "operator": "Exists"}, {"key": "b", "operator": "Exists"}, False),
        (
            {"key": "a", "operator": "Equal", "value": "x"},
            {"key": "a", "operator": "Equal", "value": "x", "effect": "E"},
            True,
        ),
        ({"key": "a", "operator": "Equal", "value": "x"}, {"key": "a", "operator": "Exists"}, False),
        (
            {"key": "a", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 5},
            {"key": "a", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 6},
            False,
        ),
    ],
)
def test_tolerations_that_cover_others(wide: Any, narrow: Any, result: bool) -> None:
    assert Coverage([wide]).covers(narrow) is result


def test_merging_tolerations() -> None:
    narrow = {"key": "a", "operator": "Exists", "effect": "NoSchedule"}
    wide = {"key": "a", "operator": "Exists"}
    assert merge_tolerations([narrow], [wide, dict(wide)]) == [wide]


def rate_limits(*limits: Any) -> dict[str, Any]:
    return {"apiVersion": "eventratelimit.admission.k8s.io/v1alpha1", "kind": "Configuration", "limits": list(limits)}


async def test_events_are_limited(storage: StorageFactory, make_request: Any, refused: Any) -> None:
    now = 0.0
    environment = Environment(storage, monotonic=lambda: now)
    limits = rate_limits(
        {"type": "Namespace", "qps": 1, "burst": 2, "cacheSize": 1}, {"type": "Server", "qps": 10, "burst": 10}
    )
    plugin = EventRateLimit(environment, limits)
    event = make_request("/v1/events", {"metadata": {"name": "e"}})
    await plugin.validate(event)
    await plugin.validate(event)
    error = await refused(plugin.validate(event))
    assert (error.code, error.reason, error.message) == (
        429,
        "TooManyRequests",
        "Too many requests: limit reached on type Namespace for key ns",
    )
    await plugin.validate(make_request("/v1/events", {"metadata": {}}, dry_run=True))
    now = 1.0
    await plugin.validate(event)
    await plugin.validate(make_request("/v1/events", {"metadata": {}}, namespace="other"))
    await plugin.validate(event)


@pytest.mark.parametrize(
    ("limits", "message"),
    [
        ([], "must not be empty"),
        ([{"type": "X", "qps": 1, "burst": 1}], 'limits[0].type: Unsupported value: "X"'),
        ([{"type": "Server", "qps": 0, "burst": 1}], "limits[0].qps: Invalid value: 0: must be positive"),
        ([{"type": "User", "qps": 1, "burst": 1, "cacheSize": -1}], "must not be negative"),
    ],
)
def test_faulty_rate_limits(environment: Environment, limits: Any, message: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        EventRateLimit(environment, rate_limits(*limits))
    assert message in str(caught.value)


OWNER = {"apiVersion": "v1", "kind": "Pod", "name": "o", "uid": "1"}


@pytest.mark.parametrize(
    ("references", "allowed", "message"),
    [
        ([], set(), ""),
        ([OWNER], {("delete", "configmaps", "x")}, ""),
        (
            [OWNER],
            set(),
            "cannot set an ownerRef on a resource you can't delete: no rule, <nil>",
        ),
        (
            [{**OWNER, "blockOwnerDeletion": True}],
            {("delete", "configmaps", "x")},
            "cannot set blockOwnerDeletion if an ownerReference refers to a resource you can't set finalizers on: "
            "no rule, <nil>",
        ),
        (
            [{**OWNER, "blockOwnerDeletion": True}],
            {("delete", "configmaps", "x"), ("update", "pods", "o")},
            "",
        ),
        ([{**OWNER, "blockOwnerDeletion": True}], {("delete", "configmaps", "x"), ("update", "*", "*")}, ""),
        (
            [{**OWNER, "kind": "Nothing", "blockOwnerDeletion": True}],
            {("delete", "configmaps", "x")},
            "cannot set blockOwnerDeletion in this case because cannot find RESTMapping for APIVersion v1 "
            'Kind Nothing: no matches for kind "Nothing" in version "v1"',
        ),
    ],
)
async def test_owner_references(
    environment: Environment,
    authorizer: Any,
    make_request: Any,
    refused: Any,
    references: Any,
    allowed: Any,
    message: str,
) -> None:
    authorizer.allowed |= allowed
    new = {"metadata": {"name": "x", "ownerReferences": references}}
    attributes = make_request("/v1/configmaps", new, {"metadata": {"name": "x"}}, operation=UPDATE)
    action = OwnerReferencesPermissionEnforcement(environment).validate(attributes)
    if message:
        assert (await refused(action)).message == f'configmaps "x" is forbidden: {message}'
    else:
        await action


async def test_custom_owners(environment: Environment, authorizer: Any, make_request: Any, put: Any) -> None:
    spec = {
        "group": "example.com",
        "names": {"kind": "Thing", "plural": "things"},
        "scope": "Cluster",
        "versions": [{"name": "v1", "served": True}],
    }
    await put("apiextensions.k8s.io/v1/customresourcedefinitions", "things.example.com", spec=spec)
    authorizer.allowed.add(("update", "things", "o"))
    reference = {**OWNER, "apiVersion": "example.com/v1", "kind": "Thing", "blockOwnerDeletion": True}
    obj = {"metadata": {"name": "x", "ownerReferences": [reference]}}
    await OwnerReferencesPermissionEnforcement(environment).validate(make_request("/v1/configmaps", obj))


def claim(size: str, phase: str = "Bound", storage_class: str = "gold") -> dict[str, Any]:
    spec = {"storageClassName": storage_class, "resources": {"requests": {"storage": size}}}
    return {"metadata": {"name": "c"}, "spec": spec, "status": {"phase": phase}}


@pytest.mark.parametrize(
    ("new", "old", "message"),
    [
        (claim("2Gi"), claim("1Gi"), ""),
        (claim("1Gi"), claim("2Gi", "Pending"), ""),
        (claim("2Gi"), claim("1Gi", "Pending"), "Only bound persistent volume claims can be expanded"),
        (claim("2Gi", storage_class="fixed"), claim("1Gi", storage_class="fixed"), "must support resize"),
        (claim("2Gi"), claim("1Gi", storage_class="fixed"), "must support resize"),
    ],
)
async def test_claims_grow_where_they_can(
    environment: Environment, make_request: Any, put: Any, refused: Any, new: Any, old: Any, message: str
) -> None:
    await put("storage.k8s.io/v1/storageclasses", "gold", allowVolumeExpansion=True)
    await put("storage.k8s.io/v1/storageclasses", "fixed")
    attributes = make_request("/v1/persistentvolumeclaims", new, old, operation=UPDATE)
    action = PersistentVolumeClaimResize(environment).validate(attributes)
    if message:
        assert (await refused(action)).message.endswith(message)
    else:
        await action


def resized(make_pod: Any, generation: int, **requests: str) -> dict[str, Any]:
    pod: dict[str, Any] = make_pod(nodeName="n", containers=[{"name": "c", "resources": {"requests": requests}}])
    pod["metadata"]["generation"] = generation
    return pod


@pytest.mark.parametrize(
    ("system", "requests", "message", "reason"),
    [
        ("linux", {"cpu": "1"}, "", ""),
        (
            "linux",
            {"cpu": "3", "memory": "2Gi"},
            "node didn't have enough allocatable resources: cpu, requested: 3000, allocatable: 2000; "
            "memory, requested: 2147483648, allocatable: 1073741824",
            "NodeCapacity",
        ),
        (
            "windows",
            {"cpu": "1"},
            'pod resize is only supported on linux nodes, node "n" is "windows"',
            "UnsupportedPlatform",
        ),
    ],
)
async def test_pods_grow_no_larger_than_nodes(
    environment: Environment, make_request: Any, make_pod: Any, put: Any, refused: Any, system: str, requests: Any,
    message: str, reason: str,
) -> None:  # fmt: skip
    labels = {"labels": {"kubernetes.io/os": system}}
    await put(NODES, "n", metadata=labels, status={"allocatable": {"cpu": "2", "memory": "1Gi"}})
    new, old = resized(make_pod, 2, **requests), resized(make_pod, 1)
    action = PodResizeValidator(environment).validate(make_request("/v1/pods:resize", new, old, operation=UPDATE))
    if not message:
        await action
        return
    error = await refused(action)
    assert error.message.endswith(message)
    assert error.details["causes"] == [{"reason": reason}]


async def test_nodes_must_declare_what_updates_need(
    environment: Environment, make_request: Any, make_pod: Any, put: Any, refused: Any
) -> None:
    await put(NODES, "n", status={"declaredFeatures": ["InPlacePodVerticalScalingInitContainers"]})
    new, old = resized(make_pod, 2), resized(make_pod, 1)
    new["spec"] |= {"resources": {"requests": {"cpu": "1"}}, "initContainers": [{"name": "i", "resources": {"x": 1}}]}
    old["spec"] |= {"initContainers": [{"name": "i", "resources": {}}]}
    attributes = make_request("/v1/pods:resize", new, old, operation=UPDATE)
    error = await refused(NodeDeclaredFeatureValidator(environment).validate(attributes))
    assert error.message.endswith(
        'pod update requires features InPlacePodLevelResourcesVerticalScaling which are not available on node "n"'
    )


async def test_topology_labels(storage: StorageFactory, make_request: Any, make_pod: Any, put: Any) -> None:
    environment = Environment(storage)
    labels = {"topology.kubernetes.io/zone": "a", "other": "b"}
    await put(NODES, "n", metadata={"labels": labels})
    pod = make_pod(nodeName="n")
    await PodTopologyLabels(environment).admit(make_request(PODS, pod))
    assert pod["metadata"]["labels"] == {"topology.kubernetes.io/zone": "a"}
    binding: dict[str, Any] = {"metadata": {"name": "p"}, "target": {"kind": "Node", "name": "n"}}
    await PodTopologyLabels(environment).admit(make_request("/v1/pods:binding", binding))
    assert binding["metadata"]["labels"] == {"topology.kubernetes.io/zone": "a"}


def test_topology_labels_are_behind_a_gate(cacher: Cacher) -> None:
    storage = StorageFactory(cacher, gates=default_gates() - {"PodTopologyLabelsAdmission"})
    environment = Environment(storage)
    assert not PodTopologyLabels(environment).concerns("CREATE", next(iter(PodTopologyLabels.resources or ())), "")
