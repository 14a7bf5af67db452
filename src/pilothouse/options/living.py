"""Flags of what makes a cluster move, controllers, a scheduler and simulated nodes, and of the console to look into it.

``pilothouse`` has all of it, in the same process, unless a flag says otherwise; ``kube-apiserver`` is the API server
alone.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Sequence, Set
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pilothouse.controllers.manager.catalogue import CONTROLLERS, Row, UnknownController, choose
from pilothouse.options.declaring import FlagGroup, flag
from pilothouse.options.kinds import BOOL, DURATION, INT, STRING, STRINGS

if TYPE_CHECKING:
    from pilothouse.controllers.manager.context import ManagerSettings
    from pilothouse.net.dialing.dialer import Dialer
    from pilothouse.simulation.nodes.route import FindPort
    from pilothouse.simulation.nodes.simulation import Simulation

Networks = Sequence[ipaddress.IPv4Network | ipaddress.IPv6Network]


@dataclass
class LivingOptions(FlagGroup):
    """The ``Living cluster`` section."""

    section = "Living cluster"

    controllers: tuple[str, ...] = flag(
        "controllers",
        STRINGS,
        (),
        "Controllers to run, as kube-controller-manager spells them: '*' all that are on by default, 'foo' the one "
        "named foo, '-foo' not that one, '-*' none. Default: '*' for pilothouse, none for kube-apiserver. "
        f"All controllers: {', '.join(sorted(row.name for row in CONTROLLERS))}.",
    )
    scheduler: bool = flag(
        "scheduler", BOOL, False, "Schedule pods. Default: true for pilothouse, false for kube-apiserver."
    )
    scheduler_names: tuple[str, ...] = flag(
        "scheduler-names", STRINGS, ("default-scheduler",), "Names by which pods ask for the scheduler of this process."
    )
    simulate_nodes: int = flag(
        "simulate-nodes",
        INT,
        0,
        "So many nodes are simulated: pods seem to run on them. Default: 1 for pilothouse, 0 for kube-apiserver.",
    )
    node_template: str = flag(
        "simulated-node-template",
        STRING,
        "",
        "File in YAML with Nodes that simulated nodes look like, in turns, and ResourceSlices that each of them has.",
    )
    stages: str = flag(
        "simulation-stages", STRING, "", "File with rules in YAML that tell how containers on simulated nodes behave."
    )
    run_commands: bool = flag(
        "simulated-exec-runs-locally",
        BOOL,
        False,
        "Commands executed in simulated pods are processes of this machine. Only for people you trust with it.",
    )
    console: bool = flag(
        "console",
        BOOL,
        False,
        "Serve a web page to look into the cluster, below /console/. Default: true for pilothouse, false for "
        "kube-apiserver.",
    )
    run_pods: bool = flag(
        "simulated-pods-run-locally",
        BOOL,
        False,
        "Containers of simulated pods that ask for it by annotation are processes of this machine. Only for people you "
        "trust with it.",
    )
    allocate_node_cidrs: bool = flag(
        "allocate-node-cidrs", BOOL, True, "Give each node a range of pod addresses, unless network plug-ins do."
    )
    cluster_cidr: str = flag(
        "cluster-cidr", STRING, "10.244.0.0/16", "Ranges that the pod addresses of nodes are taken from."
    )
    node_mask: int = flag("node-cidr-mask-size", INT, 24, "Size of the range that each node gets of an IPv4 range.")
    node_mask_ipv4: int = flag(
        "node-cidr-mask-size-ipv4", INT, 0, "The same, where there are ranges of both families. Default: 24."
    )
    node_mask_ipv6: int = flag(
        "node-cidr-mask-size-ipv6", INT, 64, "Size of the range that each node gets of an IPv6 range."
    )
    node_monitor_period: float = flag(
        "node-monitor-period", DURATION, 5.0, "How often the health of nodes is looked at."
    )
    node_monitor_grace: float = flag(
        "node-monitor-grace-period", DURATION, 50.0, "For how long a node may say nothing before it is taken for lost."
    )
    terminated_pods: int = flag(
        "terminated-pod-gc-threshold", INT, 12500, "How many pods that have ended are kept; all if 0 or less."
    )
    autoscaler_period: float = flag(
        "horizontal-pod-autoscaler-sync-period", DURATION, 15.0, "How often autoscalers look at their metrics."
    )
    signing_duration: float = flag(
        "cluster-signing-duration", DURATION, 365 * 24 * 3600.0, "For how long signed certificates are valid at most."
    )
    signing_cert: str = flag(
        "cluster-signing-cert-file",
        STRING,
        "",
        "Certificate of the authority that signs certificates. Default: the one made at the first start.",
    )
    signing_key: str = flag("cluster-signing-key-file", STRING, "", "Private key of that authority.")
    root_ca: str = flag(
        "root-ca-file",
        STRING,
        "",
        "Certificate that is published to namespaces. Default: the authority made at the first start.",
    )

    def enliven(self, given: Set[str]) -> None:
        """Take the defaults of ``pilothouse``: everything that no flag speaks of is on."""
        if "controllers" not in given:
            self.controllers = ("*",)
        bare = "controllers" in given and not self.rows()
        if "scheduler" not in given:
            self.scheduler = not bare
        if "simulate-nodes" not in given:
            self.simulate_nodes = 0 if bare else 1
        if "console" not in given:
            self.console = not bare

    def validate(self, given: Set[str]) -> list[str]:
        """Names must be known, files readable, ranges ranges."""
        errs: list[str] = []
        try:
            choose(self.controllers)
        except UnknownController as error:
            errs.append(f"--controllers: {error}")
        if self.simulate_nodes < 0:
            errs.append("--simulate-nodes must not be negative")
        try:
            self.networks()
        except ValueError as error:
            errs.append(f"--cluster-cidr: {error}")
        for name, seconds in (
            ("node-monitor-period", self.node_monitor_period),
            ("node-monitor-grace-period", self.node_monitor_grace),
            ("horizontal-pod-autoscaler-sync-period", self.autoscaler_period),
            ("cluster-signing-duration", self.signing_duration),
        ):
            if seconds <= 0:
                errs.append(f"--{name} must be greater than zero")
        for name, read in (("simulated-node-template", self._template), ("simulation-stages", self._rules)):
            try:
                read()
            except (OSError, ValueError) as error:
                errs.append(f"--{name}: {error}")
        return errs

    @property
    def needs_node_authorizer(self) -> bool:
        """Whether kubelets act as ``system:node`` users in this process."""
        return self.simulate_nodes > 0

    def rows(self) -> list[Row]:
        """The controllers to run."""
        try:
            chosen = choose(self.controllers)
        except UnknownController:
            return []
        return [row for row in chosen if self.allocate_node_cidrs or row.name != "node-ipam-controller"]

    def networks(self) -> Networks:
        """The ranges of pod addresses."""
        return tuple(ipaddress.ip_network(each.strip()) for each in self.cluster_cidr.split(",") if each.strip())

    def manager_settings(self, service_networks: Networks, key_file: str) -> ManagerSettings:
        """What controllers are told."""
        from pilothouse.controllers.manager.context import ManagerSettings

        return ManagerSettings(
            root_ca_file=self.root_ca,
            signing_cert_file=self.signing_cert,
            signing_key_file=self.signing_key,
            service_account_key_file=key_file,
            cluster_networks=self.networks(),
            node_mask=self.node_mask_ipv4 or self.node_mask,
            node_mask_ipv6=self.node_mask_ipv6,
            node_monitor_period=self.node_monitor_period,
            node_monitor_grace=self.node_monitor_grace,
            terminated_pods=self.terminated_pods,
            autoscaler_period=self.autoscaler_period,
            signing_seconds=self.signing_duration,
            service_networks=service_networks,
        )

    def simulation(
        self, dialer: Dialer, cert_file: str, key_file: str, elsewhere: FindPort | None = None
    ) -> Simulation | None:
        """The simulated nodes, whose kubelets serve with this certificate; None without any.

        Where they are in another process, ``elsewhere`` tells where their kubelets listen.
        """
        if not self.simulate_nodes:
            return None
        from pilothouse.simulation.nodes.pool import PoolSettings
        from pilothouse.simulation.nodes.simulation import Simulation
        from pilothouse.simulation.nodes.template import Template

        template = self._template() or Template()
        settings = PoolSettings(self.simulate_nodes, template=template, rules=self._rules(), run_pods=self.run_pods)
        return Simulation(settings, dialer, cert_file, key_file, run_commands=self.run_commands, elsewhere=elsewhere)

    def _template(self) -> Any:
        if not self.node_template:
            return None
        from pilothouse.simulation.nodes.template import read_template

        return read_template(_read_yaml(self.node_template))

    def _rules(self) -> Any:
        if not self.stages:
            return ()
        from pilothouse.simulation.nodes.behaviour import read_rules

        documents = _read_yaml(self.stages)
        return read_rules(documents[0] if len(documents) == 1 else documents)


def _read_yaml(path: str) -> list[Any]:
    """All documents of a file."""
    import yaml

    try:
        return list(yaml.safe_load_all(Path(path).read_text()))
    except yaml.YAMLError as error:
        raise ValueError(f"{path}: {error}") from None
