"""All options of the server: one attribute for every flag group, in the order of ``--help``.

``given`` names the flags on the command line, ``derived`` holds what completion worked out. A program that embeds the
server can make ``ServerOptions()`` and set attributes; ``complete`` and ``validate`` treat it like a parsed one.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from ipaddress import IPv4Network, IPv6Network

from pilothouse.credentials.pki import Pki
from pilothouse.options.admission import AdmissionOptions
from pilothouse.options.api_enablement import APIEnablementOptions
from pilothouse.options.audit import AuditOptions
from pilothouse.options.authentication import AuthenticationOptions
from pilothouse.options.authorization import AuthorizationOptions
from pilothouse.options.control_plane import ControlPlaneOptions
from pilothouse.options.declaring import Flag, FlagGroup
from pilothouse.options.egress import EgressSelectorOptions
from pilothouse.options.etcd import EtcdOptions
from pilothouse.options.features import FeatureOptions
from pilothouse.options.generic import GenericOptions
from pilothouse.options.global_flags import GlobalOptions
from pilothouse.options.idle_flags import IDLE_FLAGS
from pilothouse.options.living import LivingOptions
from pilothouse.options.logs import LogOptions
from pilothouse.options.metrics import MetricsOptions
from pilothouse.options.option_set import OptionSet, flags_of, groups_of
from pilothouse.options.own import OwnOptions
from pilothouse.options.secure_serving import SecureServingOptions
from pilothouse.options.traces import TracingOptions

IPNetwork = IPv4Network | IPv6Network


@dataclass
class Derived:
    """What completion works out from the flags."""

    service_ranges: tuple[IPNetwork, ...] = ()
    service_ip: str = ""
    pki: Pki | None = None
    """The certificates the server makes itself; ``None`` when flags name all it needs."""
    admin_kubeconfig: str = ""
    """Where the administrator's kubeconfig is written; empty when our own authority does not authenticate clients."""
    greeting: str = ""
    """What to tell the user once the server is ready: where it listens and what to try next."""
    problems: list[str] = field(default_factory=list)
    """Errors found on the way, for ``validate`` to report with the others."""
    notices: list[str] = field(default_factory=list)
    """What the user should know: worth a warning, no error."""


@dataclass
class ServerOptions(OptionSet):
    """Every option of the server."""

    own: OwnOptions = field(default_factory=OwnOptions)
    living: LivingOptions = field(default_factory=LivingOptions)
    generic: GenericOptions = field(default_factory=GenericOptions)
    etcd: EtcdOptions = field(default_factory=EtcdOptions)
    secure_serving: SecureServingOptions = field(default_factory=SecureServingOptions)
    audit: AuditOptions = field(default_factory=AuditOptions)
    features: FeatureOptions = field(default_factory=FeatureOptions)
    authentication: AuthenticationOptions = field(default_factory=AuthenticationOptions)
    authorization: AuthorizationOptions = field(default_factory=AuthorizationOptions)
    api_enablement: APIEnablementOptions = field(default_factory=APIEnablementOptions)
    egress: EgressSelectorOptions = field(default_factory=EgressSelectorOptions)
    admission: AdmissionOptions = field(default_factory=AdmissionOptions)
    metrics: MetricsOptions = field(default_factory=MetricsOptions)
    logs: LogOptions = field(default_factory=LogOptions)
    traces: TracingOptions = field(default_factory=TracingOptions)
    control_plane: ControlPlaneOptions = field(default_factory=ControlPlaneOptions)
    global_flags: GlobalOptions = field(default_factory=GlobalOptions)

    derived: Derived = field(default_factory=Derived)

    def notice(self, text: str) -> None:
        self.derived.notices.append(text)

    def greeting(self) -> str:
        """What to tell the user once the server is ready."""
        return self.derived.greeting

    def client_authorities(self) -> tuple[str, ...]:
        """The files with the authorities of clients and of front proxies."""
        return self.authentication.client_authorities()

    def idle(self) -> list[str]:
        """The flags on the command line that have no effect yet, sorted."""
        return sorted(self.given & IDLE_FLAGS)


def flag_groups() -> dict[str, type[FlagGroup]]:
    """Attribute name → group class, in the order of ``--help``."""
    return groups_of(ServerOptions)


def declared_flags() -> dict[str, tuple[str, Flag]]:
    """Flag name → (attribute of its group, declaration)."""
    return flags_of(ServerOptions)
