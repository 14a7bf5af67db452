"""What every controller is made with."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from ipaddress import IPv4Network, IPv6Network

from pilothouse.admission.versions import ServedVersions
from pilothouse.controllers.runtime.client import Client, LoopbackClients
from pilothouse.controllers.runtime.clock import SYSTEM, Clock
from pilothouse.controllers.runtime.events import EventBroadcaster, EventRecorder
from pilothouse.controllers.runtime.informers import InformerFactory
from pilothouse.machinery.supervision import Supervisor


@dataclass(frozen=True, slots=True)
class ManagerSettings:
    """What flags of kube-controller-manager set elsewhere; the defaults are its own."""

    root_ca_file: str = ""
    signing_cert_file: str = ""
    signing_key_file: str = ""
    signing_seconds: float = 365 * 24 * 3600.0
    service_account_key_file: str = ""
    cluster_networks: Sequence[IPv4Network | IPv6Network] = (IPv4Network("10.244.0.0/16"),)
    node_mask: int = 24
    node_mask_ipv6: int = 64
    service_networks: Sequence[IPv4Network | IPv6Network] = ()
    node_monitor_period: float = 5.0
    node_monitor_grace: float = 50.0
    terminated_pods: int = 12500
    autoscaler_period: float = 15.0


@dataclass(frozen=True, slots=True)
class ControllerContext:
    """The world of one controller. Objects from informers are shared: nobody changes them."""

    informers: InformerFactory
    clients: LoopbackClients
    supervisor: Supervisor
    """Owns what the controller runs; closed when the lead is lost or the server stops."""
    clock: Clock = SYSTEM
    settings: ManagerSettings = field(default_factory=ManagerSettings)
    rng: Callable[[], float] = random.random
    served: ServedVersions | None = None
    """What the server serves, for the controller that checks the types of policies."""

    def client(self, service_account: str) -> Client:
        """The API as the controller's own service account in kube-system sees it."""
        return self.clients.controller(service_account)

    def recorder(self, component: str, service_account: str) -> EventRecorder:
        """Records events as a component, written by a service account."""
        return EventBroadcaster(self.client(service_account), self.supervisor, self.clock).recorder(component)
