"""The process of the main server: one cluster in it."""

from __future__ import annotations

from pilothouse.cluster.cluster import Cluster
from pilothouse.controllers.runtime.clock import SYSTEM, Clock
from pilothouse.options import ServerOptions
from pilothouse.process.companions import NO_COMPANIONS, Companions
from pilothouse.process.hosting import HostingProcess
from pilothouse.process.renewal import CertificateRenewal


class Process(HostingProcess[Cluster]):
    """A server that can be started and stopped once. To be made on the event loop; nothing is opened yet."""

    def __init__(self, options: ServerOptions, clock: Clock = SYSTEM, companions: Companions = NO_COMPANIONS) -> None:
        self.options = options
        super().__init__(
            options,
            lambda shared: Cluster(options, options.etcd.root, shared),
            clock,
            {"renewal of certificates": CertificateRenewal(options).poll} if companions.workers.acts else {},
            companions,
        )
