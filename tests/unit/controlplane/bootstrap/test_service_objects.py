"""The kubernetes service, the default ServiceCIDR and the system namespaces."""

from pilothouse.controllers.own_objects import condition_of, create, existing, remove, update
from pilothouse.controlplane.bootstrap.kubernetes_service import KubernetesService
from pilothouse.controlplane.bootstrap.namespaces import SYSTEM_NAMESPACES, create_system_namespaces
from pilothouse.controlplane.bootstrap.priority_classes import create_system_priority_classes
from pilothouse.controlplane.bootstrap.service_cidr import DefaultServiceCIDR
from pilothouse.registry.storage import StorageFactory
from pilothouse.registry.store.store import Store


def service_of(storage: StorageFactory, ip: str = "10.0.0.1", node_port: int = 0) -> KubernetesService:
    services = storage.store("", "v1", "services")
    return KubernetesService(services, storage.store("networking.k8s.io", "v1", "ipaddresses"), ip, 6443, node_port)


async def test_service_and_address_come_back_when_they_are_missing(storage: StorageFactory) -> None:
    await DefaultServiceCIDR(cidrs(storage), ["10.0.0.0/16"]).reconcile()
    service = service_of(storage)
    await service.ensure()
    revision = service.services.cache.revision
    await service.ensure()
    assert service.services.cache.revision == revision
    await remove(service.services, "default", "kubernetes")
    await service.ensure()
    assert await existing(service.services, "default", "kubernetes") is not None
    assert await existing(service.addresses, "", "10.0.0.1") is not None


def test_a_node_port_makes_it_a_node_port_service(storage: StorageFactory) -> None:
    spec = service_of(storage, node_port=30443).service()["spec"]
    assert spec["type"] == "NodePort"
    assert spec["ports"][0]["nodePort"] == 30443


def test_the_family_is_that_of_the_address(storage: StorageFactory) -> None:
    service = service_of(storage, "fd00::1")
    assert service.address()["metadata"]["labels"]["ipaddress.kubernetes.io/ip-family"] == "IPv6"


def cidrs(storage: StorageFactory) -> Store:
    return storage.store("networking.k8s.io", "v1", "servicecidrs")


async def ready(store: Store) -> str:
    stored = await existing(store, "", "kubernetes")
    assert stored is not None
    return str((condition_of(stored, "Ready") or {}).get("status"))


async def test_the_default_range_is_created_and_ready(storage: StorageFactory) -> None:
    store = cidrs(storage)
    default = DefaultServiceCIDR(store, ["10.0.0.0/16"])
    await default.reconcile()
    assert await ready(store) == "True"
    revision = store.cache.revision
    await default.reconcile()
    assert store.cache.revision == revision


async def test_one_family_becomes_two_but_nothing_else_changes(storage: StorageFactory) -> None:
    store = cidrs(storage)
    await DefaultServiceCIDR(store, ["10.0.0.0/16"]).reconcile()
    await DefaultServiceCIDR(store, ["10.0.0.0/16", "fd00::/108"]).reconcile()
    stored = await existing(store, "", "kubernetes")
    assert stored is not None
    assert stored["spec"]["cidrs"] == ["10.0.0.0/16", "fd00::/108"]
    await DefaultServiceCIDR(store, ["10.9.0.0/16"]).reconcile()
    stored = await existing(store, "", "kubernetes")
    assert stored is not None
    assert stored["spec"]["cidrs"] == ["10.0.0.0/16", "fd00::/108"]


async def test_a_range_that_differs_is_not_marked_as_ready(storage: StorageFactory) -> None:
    store = cidrs(storage)
    await create(store, {"metadata": {"name": "kubernetes"}, "spec": {"cidrs": ["10.9.0.0/16"]}})
    await DefaultServiceCIDR(store, ["10.0.0.0/16"]).reconcile()
    assert await ready(store) == "None"


async def test_system_namespaces_come_back(storage: StorageFactory) -> None:
    store = storage.store("", "v1", "namespaces")
    await create_system_namespaces(store)
    assert sorted(entry.name for entry in store.cache.entries()) == sorted(SYSTEM_NAMESPACES)
    await update(store, "", "default", lambda obj: {**obj, "metadata": {**obj["metadata"], "labels": {"a": "b"}}})
    entry = store.cache.get(store.key("", "kube-node-lease"))
    assert entry is not None
    await store.cache.delete(entry.key, entry.revision)
    await create_system_namespaces(store)
    default = await existing(store, "", "default")
    assert default is not None
    assert default["metadata"]["labels"]["a"] == "b"
    assert await existing(store, "", "kube-node-lease") is not None


async def test_system_priority_classes_are_made_once(storage: StorageFactory) -> None:
    store = storage.store("scheduling.k8s.io", "v1", "priorityclasses")
    await create_system_priority_classes(store)
    revision = store.cache.revision
    await create_system_priority_classes(store)
    assert store.cache.revision == revision
    assert {entry.name for entry in store.cache.entries()} == {"system-node-critical", "system-cluster-critical"}
