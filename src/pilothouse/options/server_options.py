"""All options of the server: one attribute for every flag group, in the order of ``--help``.

``given`` names the flags on the command line, ``derived`` holds what completion worked out. A program that embeds the
server can make ``ServerOptions()`` and set attributes; ``complete`` and ``validate`` treat it like a parsed one.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from functools import cache
from ipaddress import IPv4Network, IPv6Network
from typing import Any

from pilothouse.app.pki import Pki
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
from pilothouse.options.kinds import STRING_ARRAY, STRINGS
from pilothouse.options.logs import LogOptions
from pilothouse.options.metrics import MetricsOptions
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
    """Faults found on the way, for ``validate`` to report with the others."""
    notices: list[str] = field(default_factory=list)
    """What the user should know: worth a warning, no fault."""


@dataclass
class ServerOptions:
    """Every option of the server."""

    own: OwnOptions = field(default_factory=OwnOptions)
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

    given: frozenset[str] = frozenset()
    derived: Derived = field(default_factory=Derived)

    def group(self, name: str) -> FlagGroup:
        """The group behind an attribute's name."""
        found = getattr(self, name)
        assert isinstance(found, FlagGroup)
        return found

    def shown(self) -> dict[str, str]:
        """Every flag and its present value as text."""
        values = {f.name: (f, getattr(self.group(group), f.attribute)) for group, f in declared_flags().values()}
        return {name: _shown(f, value) for name, (f, value) in values.items()}

    def ineffective(self) -> list[str]:
        """The flags on the command line that have no effect yet, sorted."""
        flags = declared_flags()
        return sorted(name for name in self.given if not flags[name][1].effective)


def _shown(declared: Flag, value: Any) -> str:
    if isinstance(value, str):
        return value
    return declared.kind.show(value) or ("[]" if declared.kind in (STRINGS, STRING_ARRAY) else "")


@cache
def flag_groups() -> dict[str, type[FlagGroup]]:
    """Attribute name → group class, in the order of ``--help``."""
    groups: dict[str, type[FlagGroup]] = {}
    for each in fields(ServerOptions):
        factory: Any = each.default_factory
        if isinstance(factory, type) and issubclass(factory, FlagGroup):
            groups[each.name] = factory
    return groups


@cache
def declared_flags() -> dict[str, tuple[str, Flag]]:
    """Flag name → (attribute of its group, declaration)."""
    return {flag.name: (name, flag) for name, group in flag_groups().items() for flag in group.flags()}
