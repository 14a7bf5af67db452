"""What a process lends to each cluster in it."""

from __future__ import annotations

from dataclasses import dataclass

from pilothouse.authn.outgoing import OutgoingCalls
from pilothouse.cluster.workers import ALONE, Workers
from pilothouse.controllers.runtime.clock import Clock
from pilothouse.filters.audit import Auditing
from pilothouse.filters.filter_durations import FilterDurations
from pilothouse.filters.request_metrics import RequestMetrics
from pilothouse.filters.retry_after import Draining
from pilothouse.filters.tracing import Tracer
from pilothouse.machinery.log_flushing import LogFlushing
from pilothouse.machinery.metric_registry import Registry
from pilothouse.machinery.stall_meter import StallMeter
from pilothouse.machinery.supervision import Supervisor
from pilothouse.net.dialing.egress import Egress
from pilothouse.server.lifecycle import Lifecycle
from pilothouse.storage.stack import StorageStack


@dataclass(frozen=True, slots=True, kw_only=True)
class SharedParts:
    """The parts that clusters of a process share. They belong to the process, which opens and closes them."""

    storage: StorageStack
    outgoing: OutgoingCalls
    """Everything that calls out goes through it."""
    egress: Egress
    """The ways that connections of each kind take."""
    supervisor: Supervisor
    """The parent of all background work; a cluster makes a child of its own."""
    lifecycle: Lifecycle
    hostname: str
    identity: str
    """The name of this process among the API servers of a cluster."""
    metrics: Registry
    """Shown at ``/metrics``."""
    request_metrics: RequestMetrics
    filter_durations: FilterDurations
    log_flushing: LogFlushing
    auditing: Auditing | None
    draining: Draining | None
    """Counts requests where new ones are told to come back while the process stops."""
    tracer: Tracer | None
    """Tells a collector of requests, where one is given."""
    clock: Clock
    """The time of controllers, the scheduler and simulated nodes."""
    stalls: StallMeter
    """Knows what held the event loop."""
    workers: Workers = ALONE
    """The processes that serve together with this one."""
