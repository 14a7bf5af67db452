"""All parts of one server, wired together, with its start and its stop."""

from __future__ import annotations

import asyncio
import logging
import socket
from pathlib import Path
from typing import TYPE_CHECKING

from pilothouse.admission.versions import ServedVersions
from pilothouse.apis.core.pod_spec.security import allow_privileged
from pilothouse.apis.gates import enabled_gates
from pilothouse.app.admission import build_admission
from pilothouse.app.auditing import build_auditing
from pilothouse.app.authentication import Authentication
from pilothouse.app.authorization import Authorization
from pilothouse.app.chain import Chain, build_chain, enabled_versions
from pilothouse.app.custom_versions import CustomDefinitions, CustomVersionDocuments
from pilothouse.app.device_access import guard_devices
from pilothouse.app.encryption import Encryption
from pilothouse.app.escalation import EscalationGuard
from pilothouse.app.gates import read_gates
from pilothouse.app.hooks import ServerHooks
from pilothouse.app.openid import install_openid
from pilothouse.app.reviews import review_verbs
from pilothouse.app.services import install_allocation
from pilothouse.audit.metrics import AuditMetrics
from pilothouse.authn.outgoing import OutgoingCalls
from pilothouse.authz.rbac.escalation import GROUP as RBAC_GROUP
from pilothouse.cel.metrics import instruments as expression_instruments
from pilothouse.controlplane.bootstrap.identity_lease import server_identity
from pilothouse.endpoints.request import APIRequest
from pilothouse.filters.audit import Auditing
from pilothouse.filters.chain import ChainConfig
from pilothouse.filters.chain import build_chain as build_filters
from pilothouse.filters.instrumentation import RequestMetrics
from pilothouse.machinery.metrics import Instrument
from pilothouse.net.listener import Listener, bind
from pilothouse.net.server import HttpServer
from pilothouse.net.tls import ServerTls, SniCertificate, TlsFiles
from pilothouse.registry.storage import StorageFactory
from pilothouse.server.debugging_pages import install_debugging_pages
from pilothouse.server.lifecycle import Lifecycle
from pilothouse.server.openapi_routes import install_openapi
from pilothouse.server.standard_routes import install_standard_routes
from pilothouse.storage.backends.sqlite import Retention, SQLiteBackend
from pilothouse.storage.cacher import Cacher
from pilothouse.storage.encryption.metrics import EncryptionMetrics

if TYPE_CHECKING:
    from pilothouse.options import ServerOptions

logger = logging.getLogger(__name__)
_DRAIN_SECONDS = 60.0
_AUDIT_SECONDS = 10.0


class Assembly:
    """A server that can be started and stopped once."""

    def __init__(self, options: ServerOptions) -> None:
        self.options = options
        self.lifecycle = Lifecycle()
        self.outgoing = OutgoingCalls()
        self.metrics = RequestMetrics()
        identity = server_identity(socket.gethostname())
        self._make_storage(identity)
        self._make_deciders(identity)
        self._make_servers()
        self.handler = build_filters(self.chain.aggregator.handle, self.filter_config())
        self.http: HttpServer | None = None
        self._listener: Listener | None = None
        self._tls: ServerTls | None = None
        self._upkeep: asyncio.Task[None] | None = None

    def _make_storage(self, identity: str) -> None:
        """What keeps objects: backend → encryption → cache → stores, and the addresses of services in them."""
        options = self.options
        path = str(Path(options.own.data_dir) / "store.db")
        self.backend = SQLiteBackend(path, retention=Retention(seconds=options.etcd.etcd_compaction_interval or 300.0))
        self.encryption_metrics = EncryptionMetrics(identity)
        self.encryption: Encryption | None = None
        if options.etcd.encryption_provider_config:
            self.encryption = Encryption(options, self.backend, self.encryption_metrics, identity)
        self.cacher = Cacher(self.backend if self.encryption is None else self.encryption.backend)
        self.storage = StorageFactory(self.cacher, options.etcd.etcd_prefix, int(options.control_plane.event_ttl))
        self.storage.gates = enabled_gates(read_gates(options.generic.feature_gates))
        if self.encryption is not None:
            self.storage.is_stale = self.encryption.backend.is_stale
        allow_privileged(options.control_plane.allow_privileged)
        self.node_ports = install_allocation(options, self.storage, self.backend)

    def _make_deciders(self, identity: str) -> None:
        """Who asks, whether they may, what objects must be like, and what is written down of it."""
        options = self.options
        self.audit_metrics = AuditMetrics()
        self.auditing = build_auditing(options, self.outgoing, self.audit_metrics)
        self.authentication = Authentication(options, self.storage, self.outgoing, identity)
        self.authorization = Authorization(options, self.storage, self.outgoing, identity)
        self._enabled = enabled_versions(dict(options.api_enablement.runtime_config), self.storage.gates)
        self._definitions = CustomDefinitions()
        self._served = ServedVersions({each.group_version for each in self._enabled}, self._definitions)
        self.admission = build_admission(options, self.storage, self.authorization.authorizer, self._served)

    def _make_servers(self) -> None:
        """The chain of servers, with its checks, hooks and routes beside resources."""
        options = self.options
        address = f"{options.generic.external_hostname}:{options.secure_serving.secure_port}"
        self.chain: Chain = build_chain(
            self.storage,
            self._enabled,
            address,
            self.admission,
            review_verbs(self.authentication, self.authorization.authorizer),
            {
                RBAC_GROUP: EscalationGuard(self.admission, self.authorization),
                **guard_devices(self.admission, self.authorization.authorizer, self.storage.gates),
            },
        )
        front = self.chain.aggregator
        self._install_checks()
        front.hooks.livez_grace_seconds = options.generic.livez_grace_period
        self.hooks = ServerHooks(options, self.chain, self.storage, self.cacher, self.lifecycle, self.node_ports)
        self.hooks.install()
        if options.own.check_policy_types:
            self.hooks.check_policy_types(self._served)
        front.checks.add("shutdown", self._stopping_fault, ("readyz",))
        install_standard_routes(front, self._instruments())
        self.openapi = install_openapi(front)
        self.chain.custom.tell(CustomVersionDocuments(self.openapi))
        self.chain.custom.tell(self._definitions)
        install_debugging_pages(front, options.shown, self.storage.gates)
        install_openid(front, self.authentication, options.authentication.service_account_jwks_uri, address)
        front.checks.install(front.routes)

    def filter_config(self) -> ChainConfig:
        """What the filters of this server are made of."""
        generic = self.options.generic
        return ChainConfig(
            authenticator=self.authentication.authenticator,
            authorizer=self.authorization.authorizer,
            metrics=self.metrics,
            request_timeout=generic.request_timeout,
            min_request_timeout=generic.min_request_timeout,
            cors_origins=generic.cors_allowed_origins,
            strict_transport=generic.strict_transport_security_directives,
            auditing=self.auditing,
            authentication_metrics=self.authentication.metrics,
            authorization_metrics=self.authorization.metrics,
            constrained_impersonation="ConstrainedImpersonation" in self.storage.gates,
        )

    def _instruments(self) -> list[Instrument]:
        authentication, authorization = self.authentication.metrics, self.authorization.metrics
        counting = (
            self.metrics,
            self.audit_metrics,
            authentication,
            authorization,
            self.admission.metrics,
            self.encryption_metrics,
            self.node_ports.metrics,
        )
        reloads = () if self.encryption is None else self.encryption.reloads.instruments()
        return [*(each for part in counting for each in part.instruments()), *expression_instruments(), *reloads]

    def _install_checks(self) -> None:
        checks = self.chain.aggregator.checks
        checks.add("ping", lambda: "")
        checks.add("log", lambda: "")
        checks.add("loopback-serving-certificate", lambda: "", ("healthz", "livez"))
        checks.add("etcd", self._store_fault)
        checks.add("etcd-readiness", self._store_fault, ("readyz",))
        if self.encryption is not None and self.encryption.needs_check:
            checks.add("kms-providers", self.encryption.fault)
        checks.add("informer-sync", lambda: "", ("readyz",))

    def _store_fault(self) -> str:
        return "" if self.backend.is_open else "the store is not open"

    def _stopping_fault(self) -> str:
        return "process is shutting down" if self.lifecycle.stopping.is_set() else ""

    async def start(self) -> None:
        """Open the store, listen, and run the post-start hooks."""
        await self.backend.open()
        if self.encryption is not None:
            await self.encryption.start()
        await self.cacher.open()
        await self.authentication.start()
        await self.authorization.start()
        serving = self.options.secure_serving
        self._tls = ServerTls(self._tls_files())
        self.http = HttpServer(self.handler, request_type=APIRequest)
        sock = bind(serving.bind_address, serving.secure_port, reuse_port=serving.permit_port_sharing)
        self._listener = Listener(self.http, sock, self._tls.context)
        self._listener.start()
        self.lifecycle.started.set()
        await self.chain.aggregator.hooks.run_post_start()
        self.lifecycle.ready.set()
        self._upkeep = asyncio.get_running_loop().create_task(self._keep_up())

    def _tls_files(self) -> TlsFiles:
        serving, authentication = self.options.secure_serving, self.options.authentication
        authorities = (authentication.client_ca_file, authentication.requestheader_client_ca_file)
        return TlsFiles(
            serving.tls_cert_file,
            serving.tls_private_key_file,
            tuple(dict.fromkeys(path for path in authorities if path)),
            tuple(SniCertificate(each.cert_file, each.key_file, each.names) for each in serving.tls_sni_cert_key),
            serving.tls_min_version or "VersionTLS12",
            serving.tls_cipher_suites,
        )

    async def _keep_up(self) -> None:
        """Look for changed files now and then."""
        while True:
            await asyncio.sleep(self.options.own.file_check_interval)
            await asyncio.to_thread(self.authentication.poll)
            await asyncio.to_thread(self.authorization.poll)
            await self.admission.reload()
            if self.encryption is not None:
                await self.encryption.poll()
            if self._tls is not None:
                await asyncio.to_thread(self._tls.reload_if_changed)

    async def stop(self) -> None:
        """Stop gracefully: see the timeline in ``server.lifecycle``."""
        self.lifecycle.stopping.set()
        await self.chain.aggregator.hooks.run_pre_shutdown()
        await asyncio.sleep(self.options.generic.shutdown_delay_duration)
        self.lifecycle.delayed.set()
        if self._listener is not None:
            self._listener.stop()
        # Requests in flight still need the caches; only watches, which would go on for ever, are told to end.
        self.cacher.end_served_watches()
        if self.http is not None:
            self.http.begin_drain()
            await self.http.wait_idle(_DRAIN_SECONDS)
        self.lifecycle.drained.set()
        await self.close()
        self.lifecycle.closed.set()

    async def _end_auditing(self, auditing: Auditing) -> None:
        """Let the last events out, but do not wait for ever for a webhook that is away."""
        try:
            async with asyncio.timeout(_AUDIT_SECONDS):
                await auditing.close()
        except TimeoutError:
            logger.error("the last audit events could not be stored in time")

    async def close(self) -> None:
        """Release everything at once."""
        if self._upkeep is not None:
            self._upkeep.cancel()
        if self._listener is not None:
            self._listener.stop()
            await self._listener.wait_stopped()
        if self.http is not None:
            await self.http.close()
        await self.hooks.background.stop()
        await self.authorization.stop()
        await self.admission.close()
        await self.authentication.close()
        if self.auditing is not None:
            await self._end_auditing(self.auditing)
        await self.outgoing.close()
        await self.cacher.close()
        await self.backend.close()
        if self.encryption is not None:
            await self.encryption.close()


def assemble(options: ServerOptions) -> Assembly:
    """Wire a server for these options. Nothing is opened yet."""
    return Assembly(options)
