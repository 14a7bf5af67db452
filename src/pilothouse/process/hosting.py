"""All parts of one process, with its start and its stop, around the cluster or server that lives in it.

New parts are wired here if a process has them once (another backend: ``backend.py``; another protocol on the sockets:
``serving.py``; anything that calls out: ``outgoing``), and in ``cluster/cluster.py`` if each cluster has its own.
"""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Generic, Protocol, TypeVar

from pilothouse.audit.metrics import AuditMetrics
from pilothouse.authn.outgoing import OutgoingCalls
from pilothouse.cel import metrics as expression_metrics
from pilothouse.cluster.shared_parts import SharedParts
from pilothouse.controllers.runtime import metrics as runtime_metrics
from pilothouse.controllers.runtime.clock import SYSTEM, Clock
from pilothouse.controlplane.bootstrap.identity_lease import server_identity
from pilothouse.endpoints.watch import metrics as watch_metrics
from pilothouse.filters.filter_durations import FilterDurations
from pilothouse.filters.request_metrics import RequestMetrics
from pilothouse.filters.retry_after import Draining
from pilothouse.filters.types import Handler
from pilothouse.machinery.closing import Closing
from pilothouse.machinery.log_flushing import LogFlushing
from pilothouse.machinery.process_metrics import ProcessMetrics
from pilothouse.machinery.stall_meter import StallMeter
from pilothouse.machinery.supervision import Supervisor
from pilothouse.options.process_options import ProcessOptions
from pilothouse.process.allocator import FreeMemory
from pilothouse.process.companions import NO_COMPANIONS, Companions
from pilothouse.process.file_polling import FilePolling, Poll
from pilothouse.process.garbage import Survivors
from pilothouse.process.serving import Serving
from pilothouse.process.watch_endings import end_watches
from pilothouse.registry import rest_client
from pilothouse.server.lifecycle import Lifecycle

logger = logging.getLogger(__name__)
_LAST_SECONDS = 2.0
_AUDIT_SECONDS = 10.0


class Tenant(Protocol):
    """What lives in a process: a cluster, or a server of somebody's own."""

    @property
    def handler(self) -> Handler:
        """What requests are handed to."""
        ...

    async def start(self) -> None:
        """Get ready to decide about requests; what was started before a failure waits for ``close``."""

    async def run_hooks(self) -> None:
        """Run the post-start hooks, once requests are served."""

    async def poll_files(self) -> None:
        """Look whether files that flags name have changed."""

    async def prepare_stop(self) -> None:
        """Run the pre-shutdown hooks, while everything is still served."""

    async def close(self) -> None:
        """End everything, when no requests come any more."""


T = TypeVar("T", bound=Tenant)


class HostingProcess(Generic[T]):
    """A server that can be started and stopped once. To be made on the event loop; nothing is opened yet."""

    def __init__(
        self,
        options: ProcessOptions,
        make_tenant: Callable[[SharedParts], T],
        clock: Clock = SYSTEM,
        pollers: Mapping[str, Poll] = MappingProxyType({}),
        companions: Companions = NO_COMPANIONS,
    ) -> None:
        self._options, self._companions = options, companions
        self.lifecycle = Lifecycle()
        self.supervisor = Supervisor("process")
        hostname = options.own.hostname_override or socket.gethostname()
        identity = server_identity(hostname)
        self._egress = options.egress.build()
        self.storage = companions.make_storage(options, identity, self.supervisor.child("storage"), self._egress.etcd)
        self._outgoing = OutgoingCalls(self._egress.control_plane)
        self._traces = options.traces.build(self._egress.control_plane, identity)
        audit_metrics, request_metrics, durations = AuditMetrics(), RequestMetrics(), FilterDurations()
        self._auditing = options.audit.build(
            self._outgoing, audit_metrics, self.supervisor.child("audit"), shared=companions.workers.count > 1
        )
        self._log_flushing = LogFlushing(self.supervisor.child("log"), options.logs.flush_frequency)
        self._metrics = options.metrics.build()
        self.stalls = StallMeter(keeps_stacks=options.features.contention_profiling)
        self._metrics.register(request_metrics, durations, self.stalls, audit_metrics, self.storage, expression_metrics)
        self._metrics.register(self.supervisor.metrics, ProcessMetrics())
        self._metrics.register(runtime_metrics, rest_client, watch_metrics)
        self._draining = Draining() if options.generic.shutdown_send_retry_after else None
        self.shared = SharedParts(
            storage=self.storage,
            outgoing=self._outgoing,
            egress=self._egress,
            supervisor=self.supervisor,
            lifecycle=self.lifecycle,
            hostname=hostname,
            identity=identity,
            metrics=self._metrics,
            request_metrics=request_metrics,
            filter_durations=durations,
            log_flushing=self._log_flushing,
            auditing=self._auditing,
            draining=self._draining,
            tracer=self._traces,
            clock=clock,
            stalls=self.stalls,
            workers=companions.workers,
        )
        self.cluster = make_tenant(self.shared)
        self.serving = self._make_serving()
        self._metrics.register(self.serving)
        self.survivors = Survivors()
        files = self.supervisor.child("files")
        self._polling = FilePolling(files, options.own.file_check_interval, {**self._own_pollers(), **pollers})
        self._closing = Closing("process")

    def _make_serving(self) -> Serving:
        options, companions = self._options, self._companions
        return Serving(
            companions.guard(self.cluster.handler, self.storage),
            options.secure_serving,
            options.client_authorities,
            options.generic.goaway_chance,
            lambda serving: companions.open_socket(options, serving),
            companions.connection_closed,
        )

    def _own_pollers(self) -> dict[str, Poll]:
        return {
            "cluster files": self.cluster.poll_files,
            "encryption configuration": self.storage.poll_files,
            "serving certificates": self.serving.poll_files,
            "garbage": self.survivors.poll,
            "free memory": FreeMemory().poll,
        }

    async def start(self) -> None:
        """Open the store, listen, and run the post-start hooks. A start that fails closes what it had opened."""
        try:
            await self._start()
        except BaseException:
            await self.close()
            raise

    async def _start(self) -> None:
        self._closing.add("the stall meter", self.stalls.close)
        self.stalls.start()
        self._closing.add("background work", self.supervisor.close)
        self._log_flushing.start()
        await self._companions.begin(self.supervisor)
        self._closing.add("tunnels", self._egress.close)
        self._closing.add("the store", self.storage.close)
        logger.info("starting: opening the store")
        await self.storage.open()
        self._closing.add("companions", self._companions.close)
        await self._companions.store_opened(self.storage)
        self._closing.add("outgoing connections", self._outgoing.close)
        if self._traces is not None:
            self._closing.add("traces", self._traces.close)
            self._traces.start()
        if self._auditing is not None:
            self._closing.add("the audit log", self._end_auditing)
        self._closing.add("the cluster", self.cluster.close)
        logger.info("starting: reading what decides about requests")
        await self.cluster.start()
        self._closing.add("connections", self.serving.close)
        self.serving.start()
        alone = self._companions.workers.count == 1
        if alone:
            self.serving.accept()
        self.lifecycle.started.set()
        logger.info("starting: listening, not ready yet")
        await self._companions.allow_hooks()
        await self.cluster.run_hooks()
        self.lifecycle.ready.set()
        logger.info("starting: all post-start hooks are done")
        await self._companions.ready()
        if not alone:  # those who come first must not all be served by whichever process was there first
            self.serving.accept()
        self._closing.add("the polling of files", self._polling.close)
        self._polling.start()

    async def stop(self) -> None:
        """Stop gracefully: see the timeline in ``server.lifecycle``."""
        generic, lifecycle = self._options.generic, self.lifecycle
        lifecycle.stopping.set()
        self._companions.stop()
        logger.info("stopping: not ready any more, for %g s still serving", generic.shutdown_delay_duration)
        await asyncio.gather(self.cluster.prepare_stop(), asyncio.sleep(generic.shutdown_delay_duration))
        lifecycle.delayed.set()
        logger.info("stopping: ending watches, and waiting for requests that are under way")
        watches = self.storage.stop_serving_watches()
        await asyncio.gather(end_watches(watches, generic.shutdown_watch_termination_grace_period), self._drain())
        await self.serving.drain(_LAST_SECONDS)
        lifecycle.drained.set()
        logger.info("stopping: all requests are answered")
        await self._companions.ended()
        await self.close()
        lifecycle.closed.set()

    async def _drain(self) -> None:
        """Take no more requests, and wait for those under way, but no longer than requests may take."""
        seconds = self._options.generic.request_timeout
        if self._draining is not None and not await self._draining.drain(seconds):
            logger.warning("stopping: some requests were not answered within %g s", seconds)
        self.serving.stop_accepting()
        await self.serving.drain(_LAST_SECONDS if self._draining is not None else seconds)

    async def close(self) -> None:
        """Release everything at once, in the reverse order of the start."""
        await self._closing.close()

    async def _end_auditing(self) -> None:
        """Let the last events out, but do not wait for ever for a webhook that is away."""
        assert self._auditing is not None
        try:
            async with asyncio.timeout(_AUDIT_SECONDS):
                await self._auditing.close()
        except TimeoutError:
            logger.error("the last audit events could not be stored in time")
