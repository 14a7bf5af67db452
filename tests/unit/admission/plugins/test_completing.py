"""Plug-ins that complete objects: namespaces, tolerations, priorities, classes, finalizers."""

from __future__ import annotations

from typing import Any

import pytest

from pilothouse.admission.environment import Environment
from pilothouse.admission.plugins.default_ingress_class import DefaultIngressClass
from pilothouse.admission.plugins.default_storage_class import DefaultStorageClass
from pilothouse.admission.plugins.default_toleration_seconds import DefaultTolerationSeconds
from pilothouse.admission.plugins.namespace_lifecycle import NamespaceLifecycle
from pilothouse.admission.plugins.pod_group_protection import PodGroupProtection
from pilothouse.admission.plugins.priority import Priority
from pilothouse.admission.plugins.runtime_class import RuntimeClass
from pilothouse.admission.plugins.storage_object_in_use_protection import StorageObjectInUseProtection
from pilothouse.admission.plugins.taint_nodes_by_condition import TaintNodesByCondition
from pilothouse.apis.gates import default_gates
from pilothouse.endpoints.admission import CREATE, DELETE, UPDATE
from pilothouse.machinery.gvk import GroupResource
from pilothouse.registry.storage import StorageFactory
from pilothouse.storage.cacher import Cacher

NOT_READY, UNREACHABLE = "node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"
PODS = "/v1/pods"


async def test_namespace_must_exist(environment: Environment, make_request: Any, refused: Any) -> None:
    plugin = NamespaceLifecycle(environment)
    error = await refused(plugin.admit(make_request("/v1/configmaps", {"metadata": {"name": "x"}})))
    assert (error.code, error.message) == (404, 'namespaces "ns" not found')


@pytest.mark.parametrize("phase", ["Active", "Terminating"])
async def test_nothing_new_in_a_namespace_that_goes(
    environment: Environment, make_request: Any, refused: Any, put: Any, phase: str
) -> None:
    await put("/v1/namespaces", "ns", status={"phase": phase})
    action = NamespaceLifecycle(environment).admit(make_request("/v1/configmaps", {"metadata": {"name": "x"}}))
    if phase == "Active":
        await action
        return
    error = await refused(action)
    assert error.message == (
        'configmaps "x" is forbidden: unable to create new content in namespace ns because it is being terminated'
    )
    cause = {
        "reason": "NamespaceTerminating",
        "message": "namespace ns is being terminated",
        "field": "metadata.namespace",
    }
    assert error.details == {"name": "x", "kind": "configmaps", "causes": [cause]}


@pytest.mark.parametrize(("name", "immortal"), [("default", True), ("kube-system", True), ("kube-node-lease", False)])
async def test_immortal_namespaces(
    environment: Environment, make_request: Any, refused: Any, name: str, immortal: bool
) -> None:
    attributes = make_request("/v1/namespaces", None, {"metadata": {"name": name}}, operation=DELETE)
    action = NamespaceLifecycle(environment).admit(attributes)
    if not immortal:
        await action
        return
    assert (await refused(action)).message == f'namespaces "{name}" is forbidden: this namespace may not be deleted'


def test_updates_and_access_reviews_need_no_namespace(environment: Environment) -> None:
    concerns = NamespaceLifecycle(environment).concerns
    assert not concerns(UPDATE, GroupResource("", "configmaps"), "")
    assert not concerns("CREATE", GroupResource("authorization.k8s.io", "localsubjectaccessreviews"), "")


@pytest.mark.parametrize(
    ("given", "added"),
    [
        (None, [NOT_READY, UNREACHABLE]),
        ([{"key": NOT_READY, "effect": "NoExecute"}], [UNREACHABLE]),
        ([{"key": NOT_READY, "effect": "NoSchedule"}], [NOT_READY, UNREACHABLE]),
        ([{"operator": "Exists"}], []),
    ],
)
async def test_default_tolerations(
    environment: Environment, make_request: Any, make_pod: Any, given: Any, added: list[str]
) -> None:
    pod = make_pod() if given is None else make_pod(tolerations=given)
    await DefaultTolerationSeconds(environment).admit(make_request(PODS, pod))
    tolerations = pod["spec"].get("tolerations", [])
    assert [each["key"] for each in tolerations[len(given or []) :]] == added
    assert all(each["tolerationSeconds"] == 300 for each in tolerations[len(given or []) :])


async def test_new_nodes_are_tainted_once(environment: Environment, make_request: Any) -> None:
    node: dict[str, Any] = {"metadata": {"name": "n"}}
    for _ in range(2):
        await TaintNodesByCondition(environment).admit(make_request("/v1/nodes", node))
    assert node["spec"]["taints"] == [{"key": NOT_READY, "effect": "NoSchedule"}]


CLASSES = "scheduling.k8s.io/v1/priorityclasses"


async def test_priority_without_classes(environment: Environment, make_request: Any, make_pod: Any) -> None:
    pod = make_pod()
    await Priority(environment).admit(make_request(PODS, pod))
    assert pod["spec"]["priority"] == 0
    assert pod["spec"]["preemptionPolicy"] == "PreemptLowerPriority"
    assert "priorityClassName" not in pod["spec"]


async def test_priority_of_the_lower_of_two_defaults(
    environment: Environment, make_request: Any, make_pod: Any, put: Any
) -> None:
    await put(CLASSES, "high", value=10, globalDefault=True, preemptionPolicy="Never")
    await put(CLASSES, "low", value=5, globalDefault=True)
    pod = make_pod()
    await Priority(environment).admit(make_request(PODS, pod))
    assert (pod["spec"]["priorityClassName"], pod["spec"]["priority"]) == ("low", 5)
    assert "preemptionPolicy" not in pod["spec"]


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ({"priorityClassName": "none"}, "no PriorityClass with name none was found"),
        (
            {"priorityClassName": "high", "priority": 3},
            "the integer value of priority (3) must not be provided in pod spec; priority admission controller "
            "computed 10 from the given PriorityClass name",
        ),
        (
            {"priorityClassName": "high", "preemptionPolicy": "PreemptLowerPriority"},
            "the string value of PreemptionPolicy (PreemptLowerPriority) must not be provided in pod spec; "
            "priority admission controller computed Never from the given PriorityClass name",
        ),
    ],
)
async def test_priorities_that_clash(
    environment: Environment, make_request: Any, make_pod: Any, put: Any, refused: Any, spec: Any, message: str
) -> None:
    await put(CLASSES, "high", value=10, preemptionPolicy="Never")
    error = await refused(Priority(environment).admit(make_request(PODS, make_pod(**spec))))
    assert error.message == f'pods "p" is forbidden: {message}'


async def test_priority_is_kept_on_update(environment: Environment, make_request: Any, make_pod: Any) -> None:
    pod, old = make_pod(), make_pod(priority=7, preemptionPolicy="Never")
    await Priority(environment).admit(make_request(PODS, pod, old, operation=UPDATE))
    assert (pod["spec"]["priority"], pod["spec"]["preemptionPolicy"]) == (7, "Never")


async def test_only_one_default_class(environment: Environment, make_request: Any, put: Any, refused: Any) -> None:
    await put(CLASSES, "first", value=1, globalDefault=True)
    second = {"metadata": {"name": "second"}, "value": 2, "globalDefault": True}
    error = await refused(Priority(environment).validate(make_request(CLASSES, second)))
    assert "PriorityClass first is already marked as default. Only one default can exist" in error.message
    first = {"metadata": {"name": "first"}, "value": 3, "globalDefault": True}
    await Priority(environment).validate(make_request(CLASSES, first, first, operation=UPDATE))


async def test_pod_groups_get_priority_and_finalizer(cacher: Cacher, make_request: Any) -> None:
    storage = StorageFactory(cacher, gates=default_gates() | {"GenericWorkload"})
    environment = Environment(storage)
    group: dict[str, Any] = {"metadata": {"name": "g"}, "spec": {}}
    attributes = make_request("scheduling.k8s.io/v1alpha2/podgroups", group)
    await Priority(environment).admit(attributes)
    await PodGroupProtection(environment).admit(attributes)
    assert group["spec"] == {"priority": 0}
    assert Priority(environment).concerns(CREATE, GroupResource("scheduling.k8s.io", "podgroups"), "")
    assert group["metadata"]["finalizers"] == ["scheduling.k8s.io/podgroup-protection"]


@pytest.mark.parametrize(
    ("plugin", "classes", "resource", "field", "mark"),
    [
        (
            DefaultStorageClass,
            "storage.k8s.io/v1/storageclasses",
            "/v1/persistentvolumeclaims",
            "storageClassName",
            "storageclass.kubernetes.io/is-default-class",
        ),
        (
            DefaultIngressClass,
            "networking.k8s.io/v1/ingressclasses",
            "networking.k8s.io/v1/ingresses",
            "ingressClassName",
            "ingressclass.kubernetes.io/is-default-class",
        ),
    ],
)
async def test_default_classes(
    environment: Environment,
    make_request: Any,
    put: Any,
    plugin: Any,
    classes: str,
    resource: str,
    field: str,
    mark: str,
) -> None:
    made = plugin(environment)

    async def chosen(**spec: Any) -> Any:
        obj = {"metadata": {"name": "x"}, "spec": spec}
        await made.admit(make_request(resource, obj))
        return obj["spec"].get(field)

    assert await chosen() is None
    annotations = {"annotations": {mark: "true"}}
    await put(classes, "b-old", metadata={**annotations, "creationTimestamp": "2025-01-01T00:00:00Z"})
    assert await chosen() == "b-old"
    await put(classes, "z-new", metadata=annotations)
    await put(classes, "y-new", metadata=annotations)
    assert await chosen() == "y-new"
    assert await chosen(**{field: ""}) == ""


@pytest.mark.parametrize(
    ("resource", "finalizer"),
    [
        ("/v1/persistentvolumes", "kubernetes.io/pv-protection"),
        ("/v1/persistentvolumeclaims", "kubernetes.io/pvc-protection"),
        ("storage.k8s.io/v1/volumeattributesclasses", "kubernetes.io/vac-protection"),
    ],
)
async def test_storage_protection(environment: Environment, make_request: Any, resource: str, finalizer: str) -> None:
    obj = {"metadata": {"name": "x", "finalizers": ["mine"]}}
    for _ in range(2):
        await StorageObjectInUseProtection(environment).admit(make_request(resource, obj))
    assert obj["metadata"]["finalizers"] == ["mine", finalizer]


RUNTIMES = "node.k8s.io/v1/runtimeclasses"


async def test_runtime_class_shapes_the_pod(
    environment: Environment, make_request: Any, make_pod: Any, put: Any
) -> None:
    await put(
        RUNTIMES,
        "kata",
        handler="kata",
        overhead={"podFixed": {"cpu": "250m"}},
        scheduling={"nodeSelector": {"kata": "yes"}, "tolerations": [{"key": "kata", "operator": "Exists"}]},
    )
    pod = make_pod(runtimeClassName="kata", nodeSelector={"disk": "ssd"}, overhead={"cpu": "0.25"})
    attributes = make_request(PODS, pod)
    plugin = RuntimeClass(environment)
    await plugin.admit(attributes)
    await plugin.validate(attributes)
    assert pod["spec"]["overhead"] == {"cpu": "250m"}
    assert pod["spec"]["nodeSelector"] == {"disk": "ssd", "kata": "yes"}
    assert pod["spec"]["tolerations"] == [{"key": "kata", "operator": "Exists"}]


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ({"runtimeClassName": "none"}, 'pod rejected: RuntimeClass "none" not found'),
        (
            {"runtimeClassName": "kata", "overhead": {"cpu": "1"}},
            "pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead",
        ),
        (
            {"runtimeClassName": "kata", "nodeSelector": {"kata": "no"}},
            "conflict: runtimeClass.scheduling.nodeSelector[kata] = yes; pod.spec.nodeSelector[kata] = no",
        ),
    ],
)
async def test_runtime_class_conflicts(
    environment: Environment, make_request: Any, make_pod: Any, put: Any, refused: Any, spec: Any, message: str
) -> None:
    overhead = {"podFixed": {"cpu": "250m"}}
    await put(RUNTIMES, "kata", overhead=overhead, scheduling={"nodeSelector": {"kata": "yes"}})
    error = await refused(RuntimeClass(environment).admit(make_request(PODS, make_pod(**spec))))
    assert error.message == f'pods "p" is forbidden: {message}'


async def test_overhead_without_a_class(
    environment: Environment, make_request: Any, make_pod: Any, refused: Any
) -> None:
    attributes = make_request(PODS, make_pod(overhead={"cpu": "1"}))
    error = await refused(RuntimeClass(environment).validate(attributes))
    assert error.message.endswith("Pod Overhead set without corresponding RuntimeClass defined Overhead")
