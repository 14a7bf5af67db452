"""All parts of one cluster, wired together, with its start and its end.

    storage          the stores of all resources, under one root of the process's storage
    informers        one for each kind, shared by whoever wants to hear of its objects
    deciders         who asks (authentication), whether they may (authorization), what objects must be like (admission):
                     ``deciders.py``
    servers          the chain of three, with health checks, hooks, and routes beside resources
    console          a page to look into all this, where it is on
    handler          the chain behind its filters: what the process hands requests to
    clients          the API as a user sees it, through that handler, for controllers

New parts are wired here if each cluster has its own: a filter gets what it needs in ``filter_config`` and its place in
``filters/chain.py``; what runs in the background is a post-start hook on this cluster's supervisor.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

from pilothouse.apiextensions.audiences import CustomDefinitions, CustomVersionDocuments
from pilothouse.cluster.basic_checks import install_basic_checks, install_shutdown_check
from pilothouse.cluster.deciders import Deciders
from pilothouse.cluster.flow_control import build_flow_control, install_flow_control_dumps
from pilothouse.cluster.hooks.hook import HookContext
from pilothouse.cluster.hooks.registry import install_hooks
from pilothouse.cluster.server_chain import ServerChain, build_server_chain
from pilothouse.cluster.shared_parts import SharedParts
from pilothouse.cluster.workers import Workers
from pilothouse.controllers.runtime.client import LoopbackClients
from pilothouse.controllers.runtime.informers import InformerFactory
from pilothouse.controllers.runtime.sources import Source, built_in_source, scope_source
from pilothouse.controlplane.allocation.services import ServiceAllocations
from pilothouse.controlplane.bootstrap.address_leases import AddressLeases
from pilothouse.filters.audit import Auditing
from pilothouse.filters.chain import ChainConfig, build_filter_chain
from pilothouse.filters.types import Handler
from pilothouse.machinery.closing import Closing
from pilothouse.machinery.gvk import GroupResource, GroupVersionResource
from pilothouse.machinery.verbosity import set_level
from pilothouse.net.client import HttpClient
from pilothouse.options import ServerOptions
from pilothouse.registry.service_routing import ServiceResolver
from pilothouse.registry.storage import StorageFactory
from pilothouse.registry.storage_metrics import StorageMetrics, resources_by_key
from pilothouse.server.build_metrics import BuildMetrics
from pilothouse.server.debug_flags import install_debug_flags, take_verbosity, tell_level
from pilothouse.server.debug_socket import DebugSocket
from pilothouse.server.debugging_pages import install_debugging_pages
from pilothouse.server.log_files import install_log_files
from pilothouse.server.openapi_routes import install_openapi
from pilothouse.server.openid_routes import install_openid
from pilothouse.server.profiling_pages import ProfilingPages
from pilothouse.server.routes import PathMux
from pilothouse.server.standard_routes import NATIVE_HISTOGRAMS, install_standard_routes

if TYPE_CHECKING:
    from pilothouse.console.console import Console
    from pilothouse.console.shared_sessions import SharedSessions

_SERVICES: Final = GroupResource("", "services")
_LEVEL: Final = "log level"
_KUBELET: Final = "kubelet"
_AUDIT_SINKS: Final = GroupResource("auditregistration.k8s.io", "auditsinks")


class Cluster:
    """One cluster of a process. Nothing runs before ``start``."""

    def __init__(self, options: ServerOptions, root: str, shared: SharedParts) -> None:
        self.options, self._shared = options, shared
        self.supervisor = shared.supervisor.child("cluster")
        self._make_storage(root)
        self._definitions = CustomDefinitions()
        self._informing, self._hooking = self.supervisor.child("informers"), self.supervisor.child("hooks")
        self.informers = InformerFactory(self._find_source, self._informing)
        shared.metrics.register(self.informers)
        self._sessions = _console_sessions(options, shared.workers)
        own_tokens = () if self._sessions is None else (self._sessions,)
        self.deciders = Deciders(
            options, self.storage, self.informers, self._definitions, self.supervisor, shared, own_tokens
        )
        self.flow_control = build_flow_control(
            options, self.storage.gates, shared.storage.cacher, self.storage.root, shared.workers.count
        )
        shared.metrics.register(
            self.flow_control,
            StorageMetrics(
                shared.storage.cachers,
                self.storage.root,
                resources_by_key,
                options.etcd.etcd_count_metric_poll_period,
            ),
            BuildMetrics(self.storage.gates, options.generic.emulation()),
        )
        serving = options.secure_serving
        self._simulation = options.living.simulation(
            shared.egress.cluster,
            serving.tls_cert_file,
            serving.tls_private_key_file,
            None if shared.workers.acts else lambda: shared.workers.ask(_KUBELET),
        )
        if (simulation := self._simulation) is not None and shared.workers.acts:
            shared.workers.offer(_KUBELET, simulation.kubelet_port)
        self._client = HttpClient(shared.egress.cluster if self._simulation is None else self._simulation.dialer)
        flags = options.control_plane
        self._resolver = ServiceResolver(self.storage, by_endpoints=flags.enable_aggregator_routing)
        self._aggregation = flags.aggregation(self._resolver, self._client, self.storage.gates)
        self._make_peers()
        self.servers = self._make_servers()
        shared.metrics.register(self.servers.custom.conversion_metrics)
        self._auditing = self._make_auditing()
        self.console = self._make_console()
        self.handler = self._make_handler()
        self.clients = LoopbackClients(self.handler)
        self._finish_front()
        self._closing = Closing("cluster")

    def _make_storage(self, root: str) -> None:
        """The stores of objects, and the addresses of services in them."""
        options, shared = self.options, self._shared
        families = [f"IPv{block.version}" for block in options.derived.service_ranges]
        self.storage = StorageFactory(
            shared.storage.cacher,
            root,
            int(options.control_plane.event_ttl),
            gates=options.generic.enabled_gates() | options.control_plane.permissions(),
            is_stale=shared.storage.is_stale,
            media=options.etcd.media_type(options.given),
            cacher_for=shared.storage.cacher_for,
            deleting=options.etcd.deleting(),
            reads_newest=options.etcd.reads_newest(),
            monotonic=shared.clock.monotonic,
            reservations={
                _SERVICES: lambda storage: options.control_plane.allocate_in(storage, shared.storage.backend, families)
            },
        )
        allocations = self.storage.store("", "v1", "services").reservations
        assert isinstance(allocations, ServiceAllocations)
        self._node_ports = allocations.node_ports
        shared.metrics.register(self._node_ports.metrics)

    def _make_peers(self) -> None:
        """The other servers on this store, where flags say how they are believed."""
        shared, codec = self._shared, self.storage.codec("", "v1", "endpoints")
        self._peer_leases = AddressLeases(shared.storage.cacher, f"{self.storage.root}/peerserverleases/", codec)
        self._peer_client = HttpClient(shared.egress.control_plane)
        local = {
            GroupVersionResource(*version.group_version, row.name)
            for version in self.deciders.enabled
            for row in version.resources
        }
        self._peers = self.options.control_plane.peers(
            self._peer_client, self._peer_leases.endpoint, shared.identity, local, self.storage.gates
        )
        if self._peers is not None:
            shared.metrics.register(self._peers.apis.metrics)

    @property
    def _address(self) -> str:
        return f"{self.options.generic.external_hostname}:{self.options.secure_serving.secure_port}"

    def _make_servers(self) -> ServerChain:
        deciders, links = self.deciders, self.options.control_plane.links(self._client)
        self._shared.metrics.register(links.metrics)
        return build_server_chain(
            self.storage,
            deciders.enabled,
            address=self._address,
            informers=self.informers,
            resolver=self._resolver,
            admission=deciders.admission,
            own_verbs=deciders.own_verbs(),
            guards=deciders.guards(),
            links=links,
            proxy=self._aggregation,
            peers=self._peers,
            egress=self._shared.egress,
            livez_grace_seconds=self.options.generic.livez_grace_period,
        )

    def _make_handler(self) -> Handler:
        """The servers behind their filters and, where it is on, the console before all of them."""
        api = build_filter_chain(self.servers.aggregator.handle, self.filter_config())
        return api if self.console is None else self.console.in_front_of(api)

    def _make_console(self) -> Console | None:
        if self._sessions is None:
            return None
        from pilothouse.console.console import Console, ConsoleParts

        parts = ConsoleParts(
            filters=self.filter_config(),
            front=self.servers.aggregator,
            admission=self.deciders.admission,
            flow_control=self.flow_control,
            storage=self._shared.storage,
            root=self.storage.root,
            lifecycle=self._shared.lifecycle,
            workers=self._shared.workers,
        )
        return Console(self._sessions, parts)

    def _make_auditing(self) -> Auditing | None:
        """What flags ask for and, where AuditSinks are served, those."""
        rows = {row.group_resource for version in self.deciders.enabled for row in version.resources}
        if _AUDIT_SINKS not in rows:
            return self._shared.auditing
        from pilothouse.admission.objects import Objects
        from pilothouse.audit.metrics import AuditMetrics
        from pilothouse.audit.registered_sinks import SinkConnections
        from pilothouse.filters.audit_sinks import SinkAuditing

        static, supervisor = self._shared.auditing, self.supervisor.child("audit sinks")
        metrics = AuditMetrics() if static is None else static.metrics
        objects = Objects(self.storage.store(_AUDIT_SINKS.group, "v1alpha1", _AUDIT_SINKS.resource))
        connections = SinkConnections(self._resolver.dial, self._shared.egress, metrics.lose, supervisor)
        return SinkAuditing(static, objects, connections, metrics, supervisor)

    def _finish_front(self) -> None:
        """Checks, hooks and routes of the first server; the order of checks and hooks is what clients see."""
        options, front = self.options, self.servers.aggregator
        install_basic_checks(front.checks, self._shared, self.informers)
        openapi = install_openapi(front)
        context = HookContext(
            options=options,
            servers=self.servers,
            storage=self.storage,
            stack=self._shared.storage,
            lifecycle=self._shared.lifecycle,
            node_ports=self._node_ports,
            informers=self.informers,
            clients=self.clients,
            admission=self.deciders.admission,
            served=self.deciders.served,
            openapi=openapi,
            simulation=self._simulation,
            hostname=self._shared.hostname,
            identity=self._shared.identity,
            flow_control=self.flow_control,
            aggregation=self._aggregation,
            peer_leases=self._peer_leases,
            peers=self._peers,
            clock=self._shared.clock,
            metrics=self._shared.metrics,
        )
        install_hooks(context, front.hooks, self._hooking, self._shared.workers)
        install_shutdown_check(front.checks, self._shared)
        emulation = options.generic.emulation()
        native = NATIVE_HISTOGRAMS in self.storage.gates
        install_standard_routes(front, self._shared.metrics, self._shared.workers, emulation, native_histograms=native)
        self._shared.workers.show_errors(front.checks.errors)
        documents = CustomVersionDocuments(openapi)
        self._shared.metrics.register(documents.metrics, self.servers.discovery)
        for audience in (documents, self._definitions, self.informers):
            self.servers.custom.tell(audience)
        install_debugging_pages(front, options.shown, self.storage.gates, emulation.text())
        install_flow_control_dumps(front, self.flow_control, self._shared.workers)
        self._debug_socket = self._install_profiling(front.routes)
        if options.control_plane.enable_logs_handler:
            install_log_files(front)
        install_openid(front, self.deciders.issuing, options.authentication.service_account_jwks_uri, self._address)
        front.checks.install(front.routes)

    def _install_profiling(self, routes: PathMux) -> DebugSocket | None:
        """On the port with ``--profiling``, and on a socket that is made where one is asked for."""
        flags, workers = self.options.features, self._shared.workers
        pages = ProfilingPages(self._shared.stalls, workers.gather)
        set_verbosity = workers.gather("verbosity", take_verbosity)
        if workers.acts:
            workers.offer(_LEVEL, tell_level)
        unprotected = PathMux()
        for each in (routes, unprotected) if flags.profiling else (unprotected,):
            pages.install(each)
            install_debug_flags(each, set_verbosity)
        wanted = flags.debug_socket_path and workers.acts
        return DebugSocket(flags.debug_socket_path, unprotected) if wanted else None

    def filter_config(self) -> ChainConfig:
        """What the filters of this cluster are made of."""
        generic = self.options.generic
        authentication, authorization = self.deciders.authentication, self.deciders.authorization
        return ChainConfig(
            authenticator=authentication.authenticator,
            authorizer=authorization.authorizer,
            metrics=self._shared.request_metrics,
            request_timeout=generic.request_timeout,
            min_request_timeout=generic.min_request_timeout,
            cors_origins=generic.cors_allowed_origins,
            strict_transport=generic.strict_transport_security_directives,
            auditing=self._auditing,
            authentication_metrics=authentication.metrics,
            authorization_metrics=authorization.metrics,
            constrained_impersonation="ConstrainedImpersonation" in self.storage.gates,
            flow_control=self.flow_control,
            draining=self._shared.draining,
            durations=self._shared.filter_durations,
            tracer=self._shared.tracer,
            foresee=self._shared.storage.foresee if self.options.etcd.uses_etcd else None,
        )

    def _find_source(self, gvr: GroupVersionResource) -> Source | None:
        """Where informers find a resource: among the built-in ones, or what definitions serve now."""
        built_in = built_in_source(self.storage, gvr)
        if built_in is not None:
            return built_in
        definition = self._definitions.of_resource(gvr)
        scope = None if definition is None else definition.scope(gvr.version)
        return None if scope is None else scope_source(scope)

    async def start(self) -> None:
        """Get ready to decide about requests; what was started before a failure waits for ``close``."""
        self._closing.add("background work", self.supervisor.close)
        if not self._shared.workers.acts:
            set_level(await self._shared.workers.ask(_LEVEL))
        if self._debug_socket is not None:
            self._closing.add("the debug socket", self._debug_socket.close)
            await self._debug_socket.start()
        if self._simulation is not None:
            self._closing.add("simulated kubelets", self._simulation.close)
        self._closing.add("connections to nodes and pods", self._client.close)
        self._closing.add("connections to peers", self._peer_client.close)
        self.deciders.close_with(self._closing)
        self._closing.add("conversion webhooks", self.servers.custom.close)
        self._closing.add("informers", self._informing.close)
        self._closing.add("what hooks started", self._hooking.close)
        if self._auditing is not None and self._auditing is not self._shared.auditing:
            self._closing.add("audit sinks", self._auditing.close)
            await self._auditing.start()
        await self.deciders.start(self.informers)

    async def run_hooks(self) -> None:
        """Run the post-start hooks, once requests are served."""
        await self.servers.aggregator.hooks.run_post_start()

    async def poll_files(self) -> None:
        """Look whether files that flags name have changed."""
        await asyncio.to_thread(self.deciders.poll_files)
        await self.deciders.admission.reload()

    async def prepare_stop(self) -> None:
        """Run the pre-shutdown hooks, while everything is still served."""
        await self.servers.aggregator.hooks.run_pre_shutdown()

    async def close(self) -> None:
        """End everything, when no requests come any more."""
        await self._closing.close()


def _console_sessions(options: ServerOptions, workers: Workers) -> SharedSessions | None:
    """Where browsers sign in; None without a console, of which nothing is then imported."""
    if not options.living.console:
        return None
    from pilothouse.console.shared_sessions import SharedSessions

    return SharedSessions(workers)
