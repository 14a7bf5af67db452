"""The flags of a server that is written with the library: those of Go's aggregated servers, in the same groups.

What is not special here is the main server's own: storage, TLS, audit, egress, logs. Authentication and authorization
are delegated to the main API server, admission knows the author's plug-ins alone.
"""

from __future__ import annotations

import os
from collections.abc import Set
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar, Final

from pilothouse import __version__
from pilothouse.authn.webhook_kubeconfig import WebhookEndpoint, read_webhook_kubeconfig
from pilothouse.machinery.go_quote import quote
from pilothouse.options.audit import AuditOptions
from pilothouse.options.declaring import FlagGroup, flag
from pilothouse.options.egress import EgressSelectorOptions
from pilothouse.options.etcd import EtcdOptions
from pilothouse.options.generic import GenericOptions
from pilothouse.options.global_flags import GlobalOptions
from pilothouse.options.kinds import BOOL, DURATION, STRING, STRINGS
from pilothouse.options.logs import LogOptions
from pilothouse.options.metrics import MetricsOptions
from pilothouse.options.option_set import OptionSet
from pilothouse.options.own import StateOptions
from pilothouse.options.secure_serving import SecureServingOptions
from pilothouse.options.traces import TracingOptions

_ACCOUNT: Final = Path("/var/run/secrets/kubernetes.io/serviceaccount")
"""Where a pod finds its token and the authority of the main API server."""


@dataclass
class MainServerOptions(FlagGroup):
    """The ``core API`` section."""

    section: ClassVar[str] = "core API"

    kubeconfig: str = flag(
        "kubeconfig",
        STRING,
        "",
        "Kubeconfig of the main API server. Default: that of the cluster the server runs in as a pod; "
        "without either it stands alone.",
    )


@dataclass
class DelegatedAuthenticationOptions(FlagGroup):
    """The ``authentication`` section."""

    section: ClassVar[str] = "authentication"

    kubeconfig: str = flag(
        "authentication-kubeconfig",
        STRING,
        "",
        "Kubeconfig of the API server that reviews tokens and says whom to trust. Default: --kubeconfig.",
    )
    skip_lookup: bool = flag(
        "authentication-skip-lookup", BOOL, False, "Do not ask the API server whom to trust: flags say it."
    )
    token_webhook_cache_ttl: float = flag(
        "authentication-token-webhook-cache-ttl", DURATION, 10.0, "How long answers about tokens are kept."
    )
    tolerate_lookup_failure: bool = flag(
        "authentication-tolerate-lookup-failure",
        BOOL,
        False,
        "Start even if the API server does not say whom to trust.",
    )
    client_ca_file: str = flag(
        "client-ca-file", STRING, "", "Authorities whose client certificates name users. Default: the API server's."
    )
    requestheader_allowed_names: tuple[str, ...] = flag(
        "requestheader-allowed-names", STRINGS, (), "Common names of front proxies; empty is any."
    )
    requestheader_client_ca_file: str = flag(
        "requestheader-client-ca-file",
        STRING,
        "",
        "Authorities of front proxies that may name the user in headers. Default: the API server's.",
    )
    requestheader_extra_headers_prefix: tuple[str, ...] = flag(
        "requestheader-extra-headers-prefix", STRINGS, ("x-remote-extra-",), "Prefix of headers with extra attributes."
    )
    requestheader_group_headers: tuple[str, ...] = flag(
        "requestheader-group-headers", STRINGS, ("x-remote-group",), "Headers with the user's groups."
    )
    requestheader_uid_headers: tuple[str, ...] = flag(
        "requestheader-uid-headers", STRINGS, (), "Headers with the user's UID."
    )
    requestheader_username_headers: tuple[str, ...] = flag(
        "requestheader-username-headers", STRINGS, ("x-remote-user",), "Headers with the user's name."
    )


@dataclass
class DelegatedAuthorizationOptions(FlagGroup):
    """The ``authorization`` section."""

    section: ClassVar[str] = "authorization"

    always_allow_paths: tuple[str, ...] = flag(
        "authorization-always-allow-paths",
        STRINGS,
        ("/healthz", "/readyz", "/livez"),
        "Paths that anybody may see; one that ends with * stands for all that begin so.",
    )
    kubeconfig: str = flag(
        "authorization-kubeconfig", STRING, "", "Kubeconfig of the API server that decides. Default: --kubeconfig."
    )
    authorized_ttl: float = flag(
        "authorization-webhook-cache-authorized-ttl", DURATION, 10.0, "How long permissions are kept."
    )
    unauthorized_ttl: float = flag(
        "authorization-webhook-cache-unauthorized-ttl", DURATION, 10.0, "How long refusals are kept."
    )

    def validate(self, given: Set[str]) -> list[str]:
        """A path may have a star at its end only."""
        wrong = (path for path in self.always_allow_paths if "*" in path[:-1])
        return [f"only trailing * allowed in {quote(path)}" for path in wrong]


@dataclass
class PluginOptions(FlagGroup):
    """The ``admission`` section."""

    section: ClassVar[str] = "admission"

    enable: tuple[str, ...] = flag("enable-admission-plugins", STRINGS, (), "Plug-ins to run beside the default ones.")
    disable: tuple[str, ...] = flag("disable-admission-plugins", STRINGS, (), "Default plug-ins not to run.")
    config_file: str = flag(
        "admission-control-config-file", STRING, "", "File with a section of configuration for each plug-in."
    )


@dataclass
class PagesOptions(FlagGroup):
    """The ``features`` section."""

    section: ClassVar[str] = "features"

    contention_profiling: bool = flag("contention-profiling", BOOL, False, "Profile what holds the event loop, too.")
    profiling: bool = flag("profiling", BOOL, True, "Serve profiling under /debug/pprof/.")
    enable_priority_and_fairness: bool = flag(
        "enable-priority-and-fairness",
        BOOL,
        False,
        "Accepted for the sake of manifests: requests are limited by --max-requests-inflight and its like.",
    )


@dataclass
class LibraryOptions(OptionSet):
    """Every option of such a server."""

    own: StateOptions = field(default_factory=StateOptions)
    main: MainServerOptions = field(default_factory=MainServerOptions)
    generic: GenericOptions = field(default_factory=GenericOptions)
    etcd: EtcdOptions = field(default_factory=EtcdOptions)
    secure_serving: SecureServingOptions = field(default_factory=SecureServingOptions)
    authentication: DelegatedAuthenticationOptions = field(default_factory=DelegatedAuthenticationOptions)
    authorization: DelegatedAuthorizationOptions = field(default_factory=DelegatedAuthorizationOptions)
    audit: AuditOptions = field(default_factory=AuditOptions)
    features: PagesOptions = field(default_factory=PagesOptions)
    admission: PluginOptions = field(default_factory=PluginOptions)
    egress: EgressSelectorOptions = field(default_factory=EgressSelectorOptions)
    logs: LogOptions = field(default_factory=LogOptions)
    metrics: MetricsOptions = field(default_factory=MetricsOptions)
    traces: TracingOptions = field(default_factory=TracingOptions)
    global_flags: GlobalOptions = field(default_factory=GlobalOptions)

    notices: list[str] = field(default_factory=list)
    program: str = "API server"
    authorities: tuple[str, ...] = ()
    """Our own, where the server stands alone."""

    def notice(self, text: str) -> None:
        self.notices.append(text)

    @property
    def trust_folder(self) -> Path:
        """Where the authorities are kept that the main API server names."""
        return Path(self.own.data_dir) / "trust"

    def client_authorities(self) -> tuple[str, ...]:
        """The files with the authorities of clients and of front proxies, as they are when sockets are opened."""
        flags = self.authentication
        named = (flags.client_ca_file, flags.requestheader_client_ca_file, *self.authorities)
        kept = sorted(str(path) for path in self.trust_folder.glob("*.crt"))
        return tuple(dict.fromkeys(path for path in (*named, *kept) if path))

    def greeting(self) -> str:
        """What to tell the user once the server is ready."""
        where = f"{self.secure_serving.bind_address}:{self.secure_serving.secure_port}"
        return f"{self.program} (Pilothouse {__version__}) is ready on {where}."

    def endpoint(self, kubeconfig: str) -> WebhookEndpoint | None:
        """The main API server by a flag, ``--kubeconfig``, or the pod's account. Raises OSError and ValueError."""
        path = kubeconfig or self.main.kubeconfig
        return read_webhook_kubeconfig(path) if path else in_cluster()

    def errors(self) -> list[str]:
        """Everything wrong with the values."""
        groups = (
            self.own,
            self.generic,
            self.etcd,
            self.secure_serving,
            self.authentication,
            self.authorization,
            self.audit,
            self.egress,
            self.logs,
        )
        return [error for group in groups for error in group.validate(self.given)]


def in_cluster() -> WebhookEndpoint | None:
    """The API server of the cluster that this process is a pod of."""
    host, port = os.environ.get("KUBERNETES_SERVICE_HOST"), os.environ.get("KUBERNETES_SERVICE_PORT")
    if not host or not port or not (_ACCOUNT / "token").exists():
        return None
    host = f"[{host}]" if ":" in host else host
    authority = (_ACCOUNT / "ca.crt").read_bytes()
    return WebhookEndpoint(f"https://{host}:{port}", authority, token_file=str(_ACCOUNT / "token"))
