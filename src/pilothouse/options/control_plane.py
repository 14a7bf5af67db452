"""Flags of the control plane that belong to no other section: services, kubelets, aggregation, events, leases."""

from __future__ import annotations

import re
from collections.abc import Sequence, Set
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from pilothouse.apis.gates import ALLOW_PRIVILEGED
from pilothouse.machinery.go_quote import quote
from pilothouse.machinery.gvk import GroupVersionResource
from pilothouse.options.declaring import FlagGroup, flag
from pilothouse.options.kinds import BOOL, DURATION, INT, PORT_RANGE, STRING, STRINGS, UINT, PortRange

if TYPE_CHECKING:
    from pilothouse.aggregator.peers.proxy import FindEndpoint
    from pilothouse.aggregator.peers.routing import Peers
    from pilothouse.aggregator.proxy import AggregationProxy
    from pilothouse.controllers.runtime.leader_lease import LeaseTimes
    from pilothouse.controlplane.allocation.services import ServiceAllocations
    from pilothouse.endpoints.subresources.links import Links
    from pilothouse.net.client import HttpClient
    from pilothouse.registry.service_routing import ServiceResolver
    from pilothouse.registry.storage import StorageFactory
    from pilothouse.storage.backends.contract import Backend

PEER_GATE: Final = "UnknownVersionInteroperabilityProxy"
_ABSTRACT_SOCKET = re.compile(r"@([a-zA-Z0-9_-]+\.)*[a-zA-Z0-9_-]+")
_ADDRESS_TYPES = ("Hostname", "InternalDNS", "InternalIP", "ExternalDNS", "ExternalIP")


@dataclass
class ControlPlaneOptions(FlagGroup):
    """The ``misc`` section."""

    section = "misc"

    aggregator_reject_forwarding_redirect: bool = flag(
        "aggregator-reject-forwarding-redirect",
        BOOL,
        True,
        "Do not pass redirects of aggregated servers on to clients.",
    )
    allow_privileged: bool = flag("allow-privileged", BOOL, False, "Allow privileged containers.")
    apiserver_count: int = flag(
        "apiserver-count",
        INT,
        1,
        "Number of API servers in the cluster, for --endpoint-reconciler-type=master-count.",
        hidden=True,
        deprecated="apiserver-count is deprecated and will be removed in a future version.",
    )
    coordinated_leadership_lease_duration: float = flag(
        "coordinated-leadership-lease-duration", DURATION, 15.0, "How long a coordinated leader election lease lasts."
    )
    coordinated_leadership_renew_deadline: float = flag(
        "coordinated-leadership-renew-deadline", DURATION, 10.0, "How long renewing such a lease may take."
    )
    coordinated_leadership_retry_period: float = flag(
        "coordinated-leadership-retry-period", DURATION, 2.0, "Wait between attempts to renew such a lease."
    )
    enable_aggregator_routing: bool = flag(
        "enable-aggregator-routing", BOOL, False, "Reach aggregated servers at their endpoints, not at the cluster IP."
    )
    enable_logs_handler: bool = flag("enable-logs-handler", BOOL, False, "Serve the host's log files under /logs.")
    endpoint_reconciler_type: str = flag(
        "endpoint-reconciler-type",
        STRING,
        "lease",
        "How the endpoints of the kubernetes service are kept: lease, master-count, none.",
    )
    event_ttl: float = flag("event-ttl", DURATION, 3600.0, "How long events are kept.")
    kubelet_certificate_authority: str = flag(
        "kubelet-certificate-authority", STRING, "", "Authority that kubelets' certificates are checked with."
    )
    kubelet_client_certificate: str = flag(
        "kubelet-client-certificate", STRING, "", "Client certificate shown to kubelets."
    )
    kubelet_client_key: str = flag("kubelet-client-key", STRING, "", "Key of --kubelet-client-certificate.")
    kubelet_port: int = flag(
        "kubelet-port",
        UINT,
        10250,
        "Port of kubelets.",
        hidden=True,
        deprecated="kubelet-port is deprecated and will be removed.",
    )
    kubelet_preferred_address_types: tuple[str, ...] = flag(
        "kubelet-preferred-address-types",
        STRINGS,
        _ADDRESS_TYPES,
        "Which of a node's addresses to reach its kubelet at, best first.",
    )
    kubelet_read_only_port: int = flag(
        "kubelet-read-only-port",
        UINT,
        10255,
        "Read-only port of kubelets.",
        hidden=True,
        deprecated="kubelet-read-only-port is deprecated and will be removed.",
        moot="kube-apiserver does not read it",
    )
    kubelet_timeout: float = flag(
        "kubelet-timeout", DURATION, 5.0, "Time-out of requests to kubelets.", moot="kube-apiserver does not read it"
    )
    kubernetes_service_node_port: int = flag(
        "kubernetes-service-node-port",
        INT,
        0,
        "Node port of the kubernetes service; 0 makes it a ClusterIP service.",
    )
    max_connection_bytes_per_sec: int = flag(
        "max-connection-bytes-per-sec",
        INT,
        0,
        "Limit on the bytes a second of exec, attach, port-forward and upgraded proxies, each way; 0 is none.",
    )
    peer_advertise_ip: str = flag(
        "peer-advertise-ip",
        STRING,
        "",
        "IP address that peer API servers reach this one at.",
    )
    peer_advertise_port: str = flag("peer-advertise-port", STRING, "", "Port that peer API servers reach this one at.")
    peer_ca_file: str = flag(
        "peer-ca-file",
        STRING,
        "",
        "Authority that peer API servers' certificates are checked with. Given, what only they serve is asked of them.",
    )
    proxy_client_cert_file: str = flag(
        "proxy-client-cert-file", STRING, "", "Client certificate shown to aggregated servers and webhooks."
    )
    proxy_client_key_file: str = flag("proxy-client-key-file", STRING, "", "Key of --proxy-client-cert-file.")
    service_account_signing_endpoint: str = flag(
        "service-account-signing-endpoint",
        STRING,
        "",
        "Socket of an external signer of service account tokens.",
    )
    service_account_signing_key_file: str = flag(
        "service-account-signing-key-file",
        STRING,
        "",
        "Private key that service account tokens are signed with.",
    )
    service_cluster_ip_range: str = flag(
        "service-cluster-ip-range",
        STRING,
        "",
        "Addresses for services in CIDR notation; two, comma separated, for dual stack. Default: 10.0.0.0/24.",
    )
    service_node_port_range: PortRange = flag(
        "service-node-port-range",
        PORT_RANGE,
        PortRange(30000, 2768),
        "Ports for services of type NodePort.",
    )

    def coordinated_leadership(self) -> LeaseTimes:
        """How the server that holds elections among leaders is chosen itself."""
        from pilothouse.controllers.runtime.leader_lease import LeaseTimes

        return LeaseTimes(
            round(self.coordinated_leadership_lease_duration),
            self.coordinated_leadership_renew_deadline,
            self.coordinated_leadership_retry_period,
        )

    def permissions(self) -> frozenset[str]:
        """What the cluster allows beyond its feature gates, for rules to ask in the same way."""
        return frozenset({ALLOW_PRIVILEGED} if self.allow_privileged else ())

    def allocate_in(self, storage: StorageFactory, backend: Backend, families: Sequence[str]) -> ServiceAllocations:
        """What gives services of these families of addresses their addresses and ports."""
        from pilothouse.controlplane.allocation.cluster_ips import ClusterIPs
        from pilothouse.controlplane.allocation.metrics import AllocationMetrics
        from pilothouse.controlplane.allocation.node_ports import NodePorts, StoredLedger
        from pilothouse.controlplane.allocation.ranges import PortRange
        from pilothouse.controlplane.allocation.services import ServiceAllocations
        from pilothouse.controlplane.allocation.stored_addresses import StoredAddresses

        addresses = StoredAddresses(
            storage.store("networking.k8s.io", "v1", "ipaddresses"),
            storage.store("networking.k8s.io", "v1", "servicecidrs"),
        )
        metrics, wanted = AllocationMetrics(addresses), self.service_node_port_range
        ledger = StoredLedger(backend, storage.root, storage.media)
        ports = NodePorts(PortRange(wanted.base, wanted.size), ledger, metrics=metrics)
        return ServiceAllocations(families, ClusterIPs(addresses, metrics=metrics), ports)

    def aggregation(self, resolver: ServiceResolver, client: HttpClient, gates: Set[str]) -> AggregationProxy:
        """What passes requests on to aggregated servers."""
        from pilothouse.aggregator.proxy import AggregationProxy

        return AggregationProxy(
            client,
            resolver,
            cert_file=self.proxy_client_cert_file,
            key_file=self.proxy_client_key_file,
            refuse_redirects=self.aggregator_reject_forwarding_redirect,
            tells_uid="RemoteRequestHeaderUID" in gates,
        )

    def peers(
        self,
        client: HttpClient,
        find_endpoint: FindEndpoint,
        identity: str,
        local: Set[GroupVersionResource],
        gates: Set[str],
    ) -> Peers | None:
        """The other servers on the same store, where it is said how they are believed. Raises ValueError.

        ``local`` is what this server, which has the ``identity``, serves itself.
        """
        if not self.peer_ca_file or PEER_GATE not in gates:
            return None
        for name, file in (("cert", self.proxy_client_cert_file), ("key", self.proxy_client_key_file)):
            if not file:
                raise ValueError(f"error building peer proxy handler, proxy-{name}-file not specified")
        from pilothouse.aggregator.peers.apis import PeerApis
        from pilothouse.aggregator.peers.metrics import PeerMetrics
        from pilothouse.aggregator.peers.proxy import PeerProxy
        from pilothouse.aggregator.peers.routing import Peers

        metrics = PeerMetrics()
        proxy = PeerProxy(
            client,
            find_endpoint,
            metrics,
            authorities_file=self.peer_ca_file,
            cert_file=self.proxy_client_cert_file,
            key_file=self.proxy_client_key_file,
        )
        return Peers(PeerApis(identity, local, metrics), proxy)

    def links(self, client: HttpClient) -> Links:
        """How kubelets, pods and services are reached. Kubelets that no authority is given for are not checked."""
        from pilothouse.endpoints.subresources.links import Links
        from pilothouse.net.dialing import Tls

        authority = self.kubelet_certificate_authority
        tls = Tls(
            authorities_file=authority,
            cert_file=self.kubelet_client_certificate,
            key_file=self.kubelet_client_key,
            insecure=not authority,
        )
        return Links(
            client,
            tls,
            self.kubelet_port,
            self.kubelet_preferred_address_types,
            max_bytes_per_second=self.max_connection_bytes_per_sec,
        )

    def validate(self, given: Set[str]) -> list[str]:
        """Signing endpoint, leader election times, node port and reconciler."""
        errors = self._signing_errors(given)
        if self.coordinated_leadership_lease_duration <= self.coordinated_leadership_renew_deadline:
            errors.append(
                "--coordinated-leadership-lease-duration must be greater than --coordinated-leadership-renew-deadline"
            )
        if self.coordinated_leadership_renew_deadline <= self.coordinated_leadership_retry_period:
            errors.append(
                "--coordinated-leadership-renew-deadline must be greater than --coordinated-leadership-retry-period"
            )
        port = self.kubernetes_service_node_port
        if not 0 <= port <= 65535:
            errors.append(
                f"--kubernetes-service-node-port {port} must be between 0 and 65535, inclusive. If 0, the Kubernetes "
                "master service will be of type ClusterIP"
            )
        if port > 0 and port not in self.service_node_port_range:
            errors.append(f"kubernetes service node port range {self.service_node_port_range} doesn't contain {port}")
        if self.endpoint_reconciler_type not in ("", "lease", "master-count", "none"):
            errors.append(f"Reconciler not implemented: {self.endpoint_reconciler_type}")
        if self.apiserver_count <= 0:
            errors.append(f"--apiserver-count should be a positive number, but value '{self.apiserver_count}' provided")
        return errors

    def _signing_errors(self, given: Set[str]) -> list[str]:
        endpoint = self.service_account_signing_endpoint
        if not endpoint:
            return []
        errors = []
        if {"service-account-signing-key-file", "service-account-key-file"} & given:
            errors.append(
                "can't set `--service-account-signing-key-file` and/or `--service-account-key-file` with "
                "`--service-account-signing-endpoint` (They are mutually exclusive)"
            )
        if endpoint.startswith("@") and not _ABSTRACT_SOCKET.fullmatch(endpoint):
            errors.append(
                f"invalid value {quote(endpoint)} passed for `--service-account-signing-endpoint`, when prefixed "
                "with @ must be a valid abstract socket name"
            )
        return errors
