"""The service ``kubernetes``, through which workloads reach this server, and the range its address is of."""

from __future__ import annotations

from collections.abc import Iterator

from pilothouse.cluster.hooks.hook import HookContext, PostStartHook
from pilothouse.controllers.runtime.controller import Periodic
from pilothouse.controlplane.bootstrap.address_leases import RENEW_SECONDS, AddressLeases
from pilothouse.controlplane.bootstrap.kubernetes_endpoints import EndpointReconciler, EndpointsObjects, LeasedEndpoints
from pilothouse.controlplane.bootstrap.kubernetes_service import KubernetesService
from pilothouse.controlplane.bootstrap.service_cidr import INTERVAL_SECONDS, DefaultServiceCIDR
from pilothouse.machinery.supervision import Supervisor


def service(context: HookContext) -> Iterator[PostStartHook]:
    """The service is there when the server gets ready; its address follows then, and is the first to go."""
    options = context.options
    port = options.secure_serving.secure_port
    service = KubernetesService(
        context.store("", "services"),
        context.store("networking.k8s.io", "ipaddresses"),
        options.derived.service_ip,
        port,
        options.control_plane.kubernetes_service_node_port,
    )
    endpoints = _reconciler(context)

    async def keep() -> None:
        await service.ensure()
        if endpoints is not None:
            await endpoints.reconcile()

    async def prepare() -> None:
        await _default(context).reconcile()  # the service's own address is taken from it
        await service.ensure()
        if endpoints is not None:
            await endpoints.withdraw_stale()

    async def start(supervisor: Supervisor) -> None:
        # A store that takes no writes just now (etcd's quota) is no reason not to serve: `keep` makes up for it.
        await Periodic("kubernetes service", prepare, RENEW_SECONDS).round()
        Periodic("kubernetes service", keep, RENEW_SECONDS, wait_for=context.lifecycle.ready).start(supervisor)

    stop = ("stop-kubernetes-service-controller", endpoints.withdraw) if endpoints is not None else None
    yield PostStartHook("bootstrap-controller", "the kubernetes service and its endpoints", start, before_shutdown=stop)


def _reconciler(context: HookContext) -> EndpointReconciler | None:
    """What keeps this server among the endpoints, as the flags want it."""
    options = context.options
    flags, address, port = options.control_plane, options.generic.advertise_address, options.secure_serving.secure_port
    if flags.endpoint_reconciler_type == "none":
        return None
    objects = EndpointsObjects(context.store("", "endpoints"), context.store("discovery.k8s.io", "endpointslices"))
    if flags.endpoint_reconciler_type == "master-count":
        from pilothouse.controlplane.bootstrap.counted_endpoints import CountedEndpoints

        return CountedEndpoints(objects, address, port, flags.apiserver_count)
    codec = context.storage.codec("", "v1", "endpoints")
    leases = AddressLeases(context.stack.cacher, f"{context.storage.root}/masterleases/", codec)
    return LeasedEndpoints(objects, leases, address, port)


def default_cidr(context: HookContext) -> Iterator[PostStartHook]:
    """The ServiceCIDR of the flags."""
    default = _default(context)

    async def start(supervisor: Supervisor) -> None:
        keeping = Periodic("default ServiceCIDR", default.reconcile, INTERVAL_SECONDS, at_once=False)
        await keeping.round()
        keeping.start(supervisor)

    yield PostStartHook("start-kubernetes-service-cidr-controller", "the default ServiceCIDR", start)


def _default(context: HookContext) -> DefaultServiceCIDR:
    ranges = [str(network) for network in context.options.derived.service_ranges]
    return DefaultServiceCIDR(context.store("networking.k8s.io", "servicecidrs"), ranges)
