"""What lives in the process of a library server: the declared groups, behind the filters of the main server."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from typing import Final, Protocol

from pilothouse.admission.metrics import AdmissionMetrics
from pilothouse.admission.plugin import Plugin
from pilothouse.admission.versions import ServedVersions
from pilothouse.apiextensions.audiences import CustomDefinitions, CustomVersionDocuments
from pilothouse.apiextensions.serving.definition import ServedDefinition
from pilothouse.apiextensions.serving.versions import CustomVersion
from pilothouse.authz.metrics import AuthorizationMetrics
from pilothouse.cluster.basic_checks import install_basic_checks, install_shutdown_check
from pilothouse.cluster.shared_parts import SharedParts
from pilothouse.filters.chain import ChainConfig, build_filter_chain
from pilothouse.flowcontrol.max_in_flight import MaxInFlight
from pilothouse.library.declarations import Group
from pilothouse.library.definitions import additions_of, definition_of
from pilothouse.library.delegation import DelegatedAuthentication, delegated_authorizer
from pilothouse.library.main_server import Main
from pilothouse.library.mirror import MirrorBackend
from pilothouse.library.options import LibraryOptions
from pilothouse.library.plugins import LibraryEnvironment, generic_plugins, make_admission
from pilothouse.machinery.closing import Closing
from pilothouse.openapi.registry import OpenApi
from pilothouse.registry.storage import StorageFactory
from pilothouse.registry.storage_metrics import StorageMetrics
from pilothouse.registry.store.store import Store
from pilothouse.server.build_metrics import BuildMetrics
from pilothouse.server.discovery import ChainDiscovery
from pilothouse.server.generic import GenericAPIServer
from pilothouse.server.openapi_routes import install_documents
from pilothouse.server.profiling_pages import ProfilingPages
from pilothouse.server.standard_routes import NATIVE_HISTOGRAMS, install_standard_routes
from pilothouse.storage.cacher import Cacher

Definitions = dict[tuple[str, str], ServedDefinition]
_MIRROR: Final = "/mirror"


class Declared(Protocol):
    """What the author of a server says of it."""

    @property
    def name(self) -> str: ...
    @property
    def groups(self) -> Sequence[Group]: ...
    @property
    def plugins(self) -> Sequence[type[Plugin]]: ...
    @property
    def hooks(self) -> Mapping[str, Callable[[Main | None], Awaitable[None]]]: ...


class LibraryServer:
    """One server of somebody's own. Nothing runs before ``start``."""

    def __init__(
        self,
        declared: Declared,
        options: LibraryOptions,
        main: Main | None,
        shared: SharedParts,
    ) -> None:
        self._options, self._shared, self._main = options, shared, main
        self.supervisor = shared.supervisor.child("server")
        self._make_deciders()
        self.storage = StorageFactory(
            shared.storage.cacher,
            options.etcd.root,
            gates=options.generic.enabled_gates(),
            is_stale=shared.storage.is_stale,
            media=options.etcd.media_type(options.given),
            deleting=options.etcd.deleting(),
            monotonic=shared.clock.monotonic,
        )
        # Plug-ins read what they decide about: so the kinds are there, without admission, before the plug-ins are.
        bare = self._define(declared.groups)
        self._mirror = None if main is None else Cacher(MirrorBackend(main, self.supervisor, _MIRROR))
        environment = LibraryEnvironment(
            storage=self.storage if self._mirror is None else self._mirrored(self._mirror),
            served=ServedVersions(frozenset(), _defined(bare)),
            authorizer=self.authorizer,
            egress=shared.egress,
            metrics=AdmissionMetrics(),
            stores=_stores(bare),
            main=main,
        )
        generic = [] if main is None else generic_plugins()
        self.admission = make_admission((*generic, *declared.plugins), environment, options.admission)
        self._definitions = self._define(declared.groups, bare)
        self.server = self._make_front(declared)
        self.handler = build_filter_chain(self.server.handle, self._filter_config())
        self._closing = Closing("server")

    def _mirrored(self, mirror: Cacher) -> StorageFactory:
        """Stores of the main server's resources."""
        return StorageFactory(mirror, _MIRROR, gates=self.storage.gates)

    def _make_deciders(self) -> None:
        options, outgoing = self._options, self._shared.outgoing
        dialer, agent = self._shared.egress.control_plane, options.program
        asked = options.endpoint(options.authentication.kubeconfig)
        judging = options.endpoint(options.authorization.kubeconfig)
        self._reviewing = None if asked is None else Main(asked, dialer, agent)
        self.authentication = DelegatedAuthentication(options, self._reviewing, outgoing)
        self._authorization_metrics = AuthorizationMetrics()
        deciding = None if judging is None else Main(judging, dialer, agent)
        self.authorizer = delegated_authorizer(options, deciding, outgoing, self._authorization_metrics)

    def _define(self, groups: Sequence[Group], previous: Definitions | None = None) -> Definitions:
        made: Definitions = {}
        for group in groups:
            for kind in group.kinds:
                crd = definition_of(group.name, kind)
                key = (group.name, crd["spec"]["names"]["plural"])
                before = None if previous is None else previous[key]
                admission = None if previous is None else self.admission
                made[key] = ServedDefinition(
                    crd, self.storage, admission=admission, previous=before, additions=additions_of(kind, self._main)
                )
        return made

    def _make_front(self, declared: Declared) -> GenericAPIServer:
        """The server with its versions, checks, hooks and routes."""
        server = GenericAPIServer(declared.name, livez_grace_seconds=self._options.generic.livez_grace_period)
        openapi = OpenApi()
        documents = CustomVersionDocuments(openapi)
        for version in _versions(self._definitions):
            server.install_version(version)
            documents.version_changed(version.version.group_version, version)
        address = f"{self._options.generic.external_hostname}:{self._options.secure_serving.secure_port}"
        ChainDiscovery(server, lambda: address, core=False).install()
        install_documents(server, openapi)
        install_basic_checks(server.checks, self._shared)
        for title, hook in declared.hooks.items():
            server.hooks.add_post_start(title, partial(hook, self._main))
        install_shutdown_check(server.checks, self._shared)
        metrics = self._shared.metrics
        metrics.register(self.authentication.metrics, self._authorization_metrics, self.admission.metrics)
        counted = self._options.etcd.etcd_count_metric_poll_period
        metrics.register(StorageMetrics(self._shared.storage.cachers, self.storage.root, dict, counted))
        metrics.register(BuildMetrics(self.storage.gates, self._options.generic.emulation()))
        native = NATIVE_HISTOGRAMS in self.storage.gates
        emulation = self._options.generic.emulation()
        install_standard_routes(server, metrics, emulation=emulation, native_histograms=native)
        if self._options.features.profiling:
            ProfilingPages(self._shared.stalls, self._shared.workers.gather).install(server.routes)
        server.checks.install(server.routes)
        return server

    def _filter_config(self) -> ChainConfig:
        generic = self._options.generic
        return ChainConfig(
            authenticator=self.authentication.authenticator,
            authorizer=self.authorizer,
            metrics=self._shared.request_metrics,
            request_timeout=generic.request_timeout,
            min_request_timeout=generic.min_request_timeout,
            cors_origins=generic.cors_allowed_origins,
            strict_transport=generic.strict_transport_security_directives,
            auditing=self._shared.auditing,
            authentication_metrics=self.authentication.metrics,
            authorization_metrics=self._authorization_metrics,
            flow_control=MaxInFlight(generic.max_requests_inflight, generic.max_mutating_requests_inflight),
            draining=self._shared.draining,
            durations=self._shared.filter_durations,
            tracer=self._shared.tracer,
        )

    def store(self, group: str, version: str, resource: str) -> Store:
        """The stored objects of a kind, as a version has them."""
        return _stores(self._definitions)[group, version, resource]

    async def start(self) -> None:
        """Learn whom to trust, and load what plug-ins decide by."""
        self._closing.add("background work", self.supervisor.close)
        for client in (self._main, self._reviewing):
            if client is not None:
                self._closing.add("connections to the main server", client.close)
        self._closing.add("admission", self.admission.close)
        if self._mirror is not None:
            self._closing.add("what is known of the main server", self._mirror.close)
            await self._mirror.open()
        await self.authentication.start(self.supervisor)
        await self.admission.wait_ready()

    async def run_hooks(self) -> None:
        """Run the post-start hooks, once requests are served."""
        await self.server.hooks.run_post_start()

    async def poll_files(self) -> None:
        """Look whether files that flags name have changed."""
        await asyncio.to_thread(self.authentication.poll)
        await self.admission.reload()

    async def prepare_stop(self) -> None:
        """Run the pre-shutdown hooks, while everything is still served."""
        await self.server.hooks.run_pre_shutdown()

    async def close(self) -> None:
        """End everything, when no requests come any more."""
        await self._closing.close()


def _versions(definitions: Definitions) -> list[CustomVersion]:
    served: dict[tuple[str, str], dict[str, ServedDefinition]] = {}
    for (group, plural), definition in definitions.items():
        for version in definition.served:
            served.setdefault((group, version), {})[plural] = definition
    return [CustomVersion(group, version, kinds) for (group, version), kinds in served.items()]


def _defined(definitions: Definitions) -> CustomDefinitions:
    """The server's own kinds, for admission that looks at other versions of them."""
    found = CustomDefinitions()
    for version in _versions(definitions):
        found.version_changed(version.version.group_version, version)
    return found


def _stores(definitions: Definitions) -> dict[tuple[str, str, str], Store]:
    found: dict[tuple[str, str, str], Store] = {}
    for (group, plural), definition in definitions.items():
        for version in definition.versions.schemas:
            scope = definition.scope(version)
            if scope is not None:
                found[group, version, plural] = scope.store
    return found
