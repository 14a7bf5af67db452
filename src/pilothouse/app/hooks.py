"""Everything that begins when the server listens: the post-start hooks, named and ordered as in kube-apiserver.

A hook returns when what it stands for is done or runs; each is also a health check. What runs on is stopped together.
These names have nothing of their own to do here, because

    start-apiserver-admission-initializer     admission plug-ins are ready when they are made
    generic-apiserver-start-informers,        caches load when first used and are followed by whoever needs them;
    start-apiextensions-informers,            there are no shared informers to start
    crd-informer-synced, start-kube-aggregator-informers
    priority-and-fairness-filter              the filter needs no upkeep
    storage-object-count-tracker-hook         caches know their size at any time
    storage-readiness                         the store is open before the server listens; caches load when first used
    aggregator-reload-proxy-client-cert       certificate files are read when a connection is made
    apiservice-status-local-available-        done together with registration
      controller
    apiservice-registration-controller,       local group versions are routed and listed when they are installed
    apiservice-discovery-controller
    apiservice-openapi-controller,            documents are made from what is installed when they are asked for
    apiservice-openapiv3-controller
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Final

from pilothouse.admission.versions import ServedVersions
from pilothouse.aggregator.availability import RemoteAvailability
from pilothouse.aggregator.registration import AutoRegistration, built_in_services
from pilothouse.app.chain import Chain
from pilothouse.app.custom_versions import CustomVersionServices, conversion_webhooks
from pilothouse.controllers.policy_types import PolicyTypes
from pilothouse.controllers.running import Background, Periodic
from pilothouse.controlplane.allocation.node_ports import NodePorts
from pilothouse.controlplane.bootstrap import (
    flow_control,
    identity_lease,
    namespaces,
    service_cidr,
    service_repair,
)
from pilothouse.controlplane.bootstrap.address_leases import IDENTITY_LABEL, RENEW_SECONDS, AddressLeases
from pilothouse.controlplane.bootstrap.authentication_trust import (
    ALLOWED_NAMES,
    EXTRA_PREFIXES,
    GROUP_HEADERS,
    UID_HEADERS,
    USERNAME_HEADERS,
    AuthenticationTrust,
    Trust,
)
from pilothouse.controlplane.bootstrap.flow_schema_status import FlowSchemaStatus
from pilothouse.controlplane.bootstrap.kubernetes_endpoints import KubernetesEndpoints
from pilothouse.controlplane.bootstrap.kubernetes_service import KubernetesService
from pilothouse.controlplane.bootstrap.policy import reconcile_policy
from pilothouse.controlplane.bootstrap.priority_classes import create_system_priority_classes
from pilothouse.controlplane.bootstrap.service_repair import ServiceRepair
from pilothouse.controlplane.bootstrap.token_tracking import TokenTracking
from pilothouse.machinery.gvk import GroupVersion
from pilothouse.registry.storage import StorageFactory
from pilothouse.registry.store.store import Store
from pilothouse.server.lifecycle import Lifecycle
from pilothouse.storage.cacher import Cacher

if TYPE_CHECKING:
    from pilothouse.options import ServerOptions

_FLOW_CONTROL: Final = "flowcontrol.apiserver.k8s.io"
_RBAC: Final = "rbac.authorization.k8s.io"
_SCHEDULING: Final = "scheduling.k8s.io"


class ServerHooks:
    """The hooks of one server. ``install`` registers them; ``background`` is what they leave running."""

    def __init__(
        self,
        options: ServerOptions,
        chain: Chain,
        storage: StorageFactory,
        cacher: Cacher,
        lifecycle: Lifecycle,
        node_ports: NodePorts,
    ) -> None:
        self._node_ports = node_ports
        self._options, self._chain, self._storage, self._lifecycle = options, chain, storage, lifecycle
        self._hooks = chain.aggregator.hooks
        self._root, self._cacher = options.etcd.etcd_prefix, cacher
        self._port = options.secure_serving.secure_port
        self._address = options.generic.advertise_address
        self._lease = identity_lease.IdentityLease(self._store("coordination.k8s.io", "leases"), self._peer_address())
        self.background = Background()

    def install(self) -> None:
        """Register every hook; the order is that of the health checks."""
        self._add("start-apiserver-admission-initializer")
        self._add("generic-apiserver-start-informers")
        self._install_flow_control_consumer()
        self._add("storage-object-count-tracker-hook")
        self._add("start-apiextensions-informers")
        self._add("start-apiextensions-controllers", self._serve_custom_resources)
        self._add("crd-informer-synced")
        self._add("start-system-namespaces-controller", self._keep_namespaces)
        self._install_peer_lease()
        self._add("start-cluster-authentication-info-controller", self._keep_authentication_trust)
        self._install_identity_lease()
        self._add("storage-readiness")
        self._add("start-legacy-token-tracking-controller", self._keep_token_tracking)
        self._add("start-service-ip-repair-controllers", self._repair_services)
        self._install_group_hooks()
        self._install_kubernetes_service()
        self._add("start-kubernetes-service-cidr-controller", self._keep_service_cidr)
        self._add("aggregator-reload-proxy-client-cert")
        self._add("start-kube-aggregator-informers")
        self._add("apiservice-status-local-available-controller")
        self._add("apiservice-status-remote-available-controller", self._judge_remote_services)
        self._add("apiservice-registration-controller")
        self._add("apiservice-discovery-controller")
        self._install_registration()
        self._add("apiservice-openapi-controller")
        self._add("apiservice-openapiv3-controller")

    def check_policy_types(self, served: ServedVersions) -> None:
        """Have the types of admission policies checked, which is the controller manager's business elsewhere."""

        async def start() -> None:
            checks = PolicyTypes(self._store("admissionregistration.k8s.io", "validatingadmissionpolicies"), served)
            self.background.add(checks)
            await checks.start()

        self._add("start-policy-type-checking", start)

    def _add(self, name: str, hook: Callable[[], Awaitable[None]] | None = None) -> None:
        self._hooks.add_post_start(name, hook or _nothing_to_do)

    def _store(self, group: str, resource: str) -> Store:
        return self._storage.store(group, "v1", resource)

    def _serves(self, group: str) -> bool:
        return any(GroupVersion(group, "v1") in server.versions for server in self._chain.aggregator.chain())

    def _periodic(self, name: str, work: Callable[[], Awaitable[None]], seconds: float, *, at_once: bool) -> None:
        """Repeat something until the server stops; what begins at once waits until the server is ready."""
        periodic = Periodic(name, work, seconds, wait_for=self._lifecycle.ready if at_once else None)
        periodic.start(at_once=at_once)
        self.background.add(periodic)

    async def _serve_custom_resources(self) -> None:
        custom, by_endpoints = self._chain.custom, self._options.control_plane.enable_aggregator_routing
        custom.convert_with(lambda: conversion_webhooks(self._storage, by_endpoints=by_endpoints))
        self.background.add(custom)
        await custom.start()

    # Namespaces, trust and tokens

    async def _keep_namespaces(self) -> None:
        store = self._store("", "namespaces")
        await namespaces.create_system_namespaces(store)
        self._periodic(
            "system namespaces",
            lambda: namespaces.create_system_namespaces(store),
            namespaces.INTERVAL_SECONDS,
            at_once=False,
        )

    async def _keep_authentication_trust(self) -> None:
        flags = self._options.authentication
        lists = {
            ALLOWED_NAMES: flags.requestheader_allowed_names,
            EXTRA_PREFIXES: flags.requestheader_extra_headers_prefix,
            GROUP_HEADERS: flags.requestheader_group_headers,
            UID_HEADERS: flags.requestheader_uid_headers,
            USERNAME_HEADERS: flags.requestheader_username_headers,
        }
        trust = Trust(flags.client_ca_file, flags.requestheader_client_ca_file, lists)
        keeper = AuthenticationTrust(self._store("", "configmaps"), trust, self._lifecycle.ready)
        self.background.add(keeper)
        await keeper.start()

    async def _keep_token_tracking(self) -> None:
        keeper = TokenTracking(self._store("", "configmaps"))
        self.background.add(keeper)
        await keeper.start()

    # Identity

    def _peer_address(self) -> str:
        flags = self._options.control_plane
        if flags.peer_advertise_ip and flags.peer_advertise_port:
            return _join(flags.peer_advertise_ip, flags.peer_advertise_port)
        return _join(self._address, str(self._port))

    def _install_identity_lease(self) -> None:
        async def start() -> None:
            await self._lease.begin()
            self._periodic("identity lease", self._lease.renew, identity_lease.RENEW_SECONDS, at_once=False)

        async def collect() -> None:
            store = self._store("coordination.k8s.io", "leases")
            self._periodic(
                "identity lease collection",
                lambda: identity_lease.collect_expired(store),
                identity_lease.COLLECT_SECONDS,
                at_once=True,
            )

        self._add("start-kube-apiserver-identity-lease-controller", start)
        self._hooks.add_pre_shutdown("stop-kube-apiserver-identity-lease-controller", self._lease.end)
        self._add("start-kube-apiserver-identity-lease-garbage-collector", collect)

    def _install_peer_lease(self) -> None:
        leases = AddressLeases(self._cacher, f"{self._root}/peerserverleases/")
        host, _, port = self._peer_address().rpartition(":")
        ports = [{"name": "https", "port": int(port), "protocol": "TCP"}]
        subset = {"addresses": [{"ip": host.strip("[]")}], "ports": ports}
        stopping = False

        async def renew() -> None:
            if not stopping:
                await leases.renew(self._lease.name, subset, {IDENTITY_LABEL: self._lease.name})

        async def start() -> None:
            self._periodic("peer lease", renew, RENEW_SECONDS, at_once=True)

        async def stop() -> None:
            nonlocal stopping
            stopping = True
            await leases.remove(self._lease.name)

        self._add("peer-endpoint-reconciler-controller", start)
        self._hooks.add_pre_shutdown("peer-endpoint-reconciler-controller", stop)

    # Objects of single groups

    def _install_flow_control_consumer(self) -> None:
        if not self._options.features.enable_priority_and_fairness:
            return

        async def start() -> None:
            status = FlowSchemaStatus(*self._flow_control_stores())
            self.background.add(status)
            await status.start()

        self._add("priority-and-fairness-config-consumer", start)
        self._add("priority-and-fairness-filter")

    def _flow_control_stores(self) -> tuple[Store, Store]:
        return self._store(_FLOW_CONTROL, "flowschemas"), self._store(_FLOW_CONTROL, "prioritylevelconfigurations")

    def _install_group_hooks(self) -> None:
        if self._serves(_RBAC):
            self._add("rbac/bootstrap-roles", lambda: reconcile_policy(lambda name: self._store(_RBAC, name)))
        if self._serves(_SCHEDULING):
            store = self._store(_SCHEDULING, "priorityclasses")
            self._add("scheduling/bootstrap-system-priority-classes", lambda: create_system_priority_classes(store))
        if self._serves(_FLOW_CONTROL):
            self._add("priority-and-fairness-config-producer", self._keep_flow_control)

    async def _keep_flow_control(self) -> None:
        stores = self._flow_control_stores()
        await flow_control.ensure_flow_control(*stores)
        self._periodic(
            "flow control",
            lambda: flow_control.ensure_flow_control(*stores),
            flow_control.INTERVAL_SECONDS,
            at_once=False,
        )

    # The kubernetes service

    def _install_kubernetes_service(self) -> None:
        """The service is there when the server gets ready; its address follows then, and is the first to go."""
        service = KubernetesService(
            self._store("", "services"),
            self._store("networking.k8s.io", "ipaddresses"),
            self._options.derived.service_ip,
            self._port,
            self._options.control_plane.kubernetes_service_node_port,
        )
        endpoints = KubernetesEndpoints(
            self._store("", "endpoints"),
            self._store("discovery.k8s.io", "endpointslices"),
            AddressLeases(self._cacher, f"{self._root}/masterleases/"),
            self._address,
            self._port,
        )
        keeps_endpoints = self._options.control_plane.endpoint_reconciler_type != "none"

        async def keep() -> None:
            await service.ensure()
            if keeps_endpoints:
                await endpoints.reconcile()

        async def start() -> None:
            await self._default_cidr().reconcile()  # the service's own address is taken from it
            await service.ensure()
            if keeps_endpoints:
                await endpoints.withdraw_stale()
            self._periodic("kubernetes service", keep, RENEW_SECONDS, at_once=True)

        self._add("bootstrap-controller", start)
        if keeps_endpoints:
            self._hooks.add_pre_shutdown("stop-kubernetes-service-controller", endpoints.withdraw)

    async def _repair_services(self) -> None:
        """Ports are put right before the server is ready; addresses when the kubernetes service has its own."""
        repair = ServiceRepair(
            self._store("", "services"),
            self._store("networking.k8s.io", "ipaddresses"),
            self._store("networking.k8s.io", "servicecidrs"),
            self._store("events.k8s.io", "events"),
            self._node_ports,
        )
        await repair.repair_ports()
        self._periodic("service repair", repair.reconcile, service_repair.INTERVAL_SECONDS, at_once=True)

    async def _keep_service_cidr(self) -> None:
        default = self._default_cidr()
        await default.reconcile()
        self._periodic("default ServiceCIDR", default.reconcile, service_cidr.INTERVAL_SECONDS, at_once=False)

    def _default_cidr(self) -> service_cidr.DefaultServiceCIDR:
        ranges = [str(network) for network in self._options.derived.service_ranges]
        return service_cidr.DefaultServiceCIDR(self._store("networking.k8s.io", "servicecidrs"), ranges)

    # Aggregation

    async def _judge_remote_services(self) -> None:
        availability = RemoteAvailability(
            self._store("apiregistration.k8s.io", "apiservices"),
            self._store("", "services"),
            self._store("discovery.k8s.io", "endpointslices"),
        )
        self.background.add(availability)
        await availability.start()

    def _install_registration(self) -> None:
        registration = AutoRegistration(self._store("apiregistration.k8s.io", "apiservices"))
        installed = [version for server in self._chain.aggregator.chain() for version in server.versions.values()]
        for service in built_in_services(each.version for each in installed):
            registration.add(service)
        self._chain.custom.tell(CustomVersionServices(registration))
        self.background.add(registration)
        self._add("kube-apiserver-autoregistration", registration.start)
        self._chain.aggregator.checks.add("autoregister-completion", registration.missing)


async def _nothing_to_do() -> None:
    """See the list at the top."""


def _join(host: str, port: str) -> str:
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
