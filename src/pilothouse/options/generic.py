"""Flags of any API server: addresses it announces, limits, time-outs, shutdown, versions it emulates."""

from __future__ import annotations

from collections.abc import Set
from dataclasses import dataclass

from pilothouse.apis.emulation import Emulation
from pilothouse.apis.gates import enabled_gates
from pilothouse.options.declaring import FlagGroup, flag
from pilothouse.options.emulation import check_versions, read_emulation
from pilothouse.options.feature_gates import check_gates, read_gates
from pilothouse.options.kinds import BOOL, DURATION, FLOAT, INT, IP, MULTIMAP, STRING, STRINGS, Multimap

_CORS_HELP = (
    "List of allowed origins for CORS, comma separated. "
    "An allowed origin can be a regular expression to support subdomain matching. "
    "If this list is empty CORS will not be enabled. "
    "Please ensure each expression matches the entire hostname by anchoring "
    "to the start with '^' or including the '//' prefix, and by anchoring to the "
    "end with '$' or including the ':' port separator suffix. "
    "Examples of valid expressions are '//example\\.com(:|$)' and '^https://example\\.com(:|$)'"
)
_HSTS_REFUSAL = (
    "--strict-transport-security-directives invalid, allowed values: max-age=expireTime, includeSubDomains, preload. "
    "see https://tools.ietf.org/html/rfc6797#section-6.1 for more information"
)


@dataclass
class GenericOptions(FlagGroup):
    """The ``generic`` section."""

    section = "generic"

    advertise_address: str = flag(
        "advertise-address",
        IP,
        "",
        "IP address that members of the cluster reach this server at. Default: the bind "
        "address, or the host's default interface when that is unspecified.",
    )
    cors_allowed_origins: tuple[str, ...] = flag(
        "cors-allowed-origins",
        STRINGS,
        (),
        "Origins allowed by CORS, as regular expressions pinned to both ends of the host. Empty: CORS is off.",
    )
    emulated_version: tuple[str, ...] = flag(
        "emulated-version", STRINGS, (), "Version to emulate, as major.minor or component=major.minor."
    )
    emulation_forward_compatible: bool = flag(
        "emulation-forward-compatible",
        BOOL,
        False,
        "With --emulated-version: also serve newer versions of the APIs it has.",
    )
    external_hostname: str = flag("external-hostname", STRING, "", "Host name in URLs that this server hands out.")
    feature_gates: Multimap = flag(
        "feature-gates",
        MULTIMAP,
        {},
        "Features to switch, as Gate=true,Other=false or component:Gate=true.",
    )
    goaway_chance: float = flag(
        "goaway-chance", FLOAT, 0.0, "Share of HTTP/2 requests answered with GOAWAY, at most 0.02; 0 is off."
    )
    livez_grace_period: float = flag(
        "livez-grace-period",
        DURATION,
        0.0,
        "How long after the start /livez takes unfinished post-start hooks for healthy.",
    )
    max_mutating_requests_inflight: int = flag(
        "max-mutating-requests-inflight",
        INT,
        200,
        "Writes served at once; with priority and fairness, its part of the total. 0: no limit.",
    )
    max_requests_inflight: int = flag(
        "max-requests-inflight",
        INT,
        400,
        "Reads served at once; with priority and fairness, its part of the total. 0: no limit.",
    )
    min_compatibility_version: tuple[str, ...] = flag(
        "min-compatibility-version",
        STRINGS,
        (),
        "Oldest control plane version to stay compatible with, as major.minor.",
    )
    min_request_timeout: int = flag(
        "min-request-timeout",
        INT,
        1800,
        "Shortest time in seconds that a watch without a time-out of its own is kept "
        "open; the actual time is up to twice as long.",
    )
    request_timeout: float = flag(
        "request-timeout",
        DURATION,
        60.0,
        "How long a request may take; watches and other long-running requests are exempt.",
    )
    runtime_config_emulation_forward_compatible: bool = flag(
        "runtime-config-emulation-forward-compatible",
        BOOL,
        False,
        "With --emulated-version: let --runtime-config switch on newer APIs.",
    )
    shutdown_delay_duration: float = flag(
        "shutdown-delay-duration",
        DURATION,
        0.0,
        "How long to go on serving, with /readyz failing, before a graceful stop begins.",
    )
    shutdown_send_retry_after: bool = flag(
        "shutdown-send-retry-after",
        BOOL,
        False,
        "While requests drain at shutdown, answer new ones with 429 and Retry-After.",
    )
    shutdown_watch_termination_grace_period: float = flag(
        "shutdown-watch-termination-grace-period", DURATION, 0.0, "How long to let active watches drain at shutdown."
    )
    storage_initialization_timeout: float = flag(
        "storage-initialization-timeout",
        DURATION,
        60.0,
        "How long to wait for the storage before reporting ready anyway.",
    )
    strict_transport_security_directives: tuple[str, ...] = flag(
        "strict-transport-security-directives",
        STRINGS,
        (),
        "Directives of the Strict-Transport-Security header, for example max-age=31536000,includeSubDomains,preload.",
    )

    def validate(self, given: Set[str]) -> list[str]:
        """Limits, HSTS directives, CORS origins, emulated versions and feature gates."""
        errors = self._negative_errors()
        errors += _aggregate(_hsts_errors(self.strict_transport_security_directives))
        errors += _aggregate(_cors_errors(self.cors_allowed_origins))
        errors += check_versions(self.emulated_version, self.min_compatibility_version)
        if not self.emulated_version:
            if self.emulation_forward_compatible:
                errors.append(_needs_emulation("EmulationForwardCompatible"))
            if self.runtime_config_emulation_forward_compatible:
                errors.append(_needs_emulation("RuntimeConfigEmulationForwardCompatible"))
        return errors + check_gates(self.feature_gates, self.emulation())

    def emulation(self) -> Emulation:
        """The version that this server is to be taken for."""
        return read_emulation(
            self.emulated_version,
            self.min_compatibility_version,
            serves_newer=self.emulation_forward_compatible,
            switches_newer=self.runtime_config_emulation_forward_compatible,
        )

    def enabled_gates(self) -> frozenset[str]:
        """The feature gates that are on."""
        return enabled_gates(read_gates(self.feature_gates), self.emulation())

    def _negative_errors(self) -> list[str]:
        errors = []
        if self.livez_grace_period < 0:
            errors.append("--livez-grace-period can not be a negative value")
        if self.max_requests_inflight < 0:
            errors.append("--max-requests-inflight can not be negative value")
        if self.max_mutating_requests_inflight < 0:
            errors.append("--max-mutating-requests-inflight can not be negative value")
        if self.request_timeout < 0:
            errors.append("--request-timeout can not be negative value")
        if not 0 <= self.goaway_chance <= 0.02:
            errors.append("--goaway-chance can not be less than 0 or greater than 0.02")
        if self.min_request_timeout < 0:
            errors.append("--min-request-timeout can not be negative value")
        if self.storage_initialization_timeout < 0:
            errors.append("--storage-initialization-timeout can not be negative value")
        if self.shutdown_delay_duration < 0:
            errors.append("--shutdown-delay-duration can not be negative value")
        if self.shutdown_watch_termination_grace_period < 0:
            errors.append("shutdown-watch-termination-grace-period, if provided, can not be a negative value")
        return errors


def _needs_emulation(option: str) -> str:
    return f"ServerRunOptions.{option} cannot be set to true if the emulation version is the same as the binary version"


def _aggregate(errors: list[str]) -> list[str]:
    """Several errors about one flag count as one, in brackets, each message once."""
    unique = list(dict.fromkeys(errors))
    if len(unique) < 2:
        return unique
    return ["[" + ", ".join(unique) + "]"]


def _hsts_errors(directives: tuple[str, ...]) -> list[str]:
    errors = []
    for directive in directives:
        if not directive.strip():
            errors.append("empty value in strict-transport-security-directives")
        elif directive not in ("includeSubDomains", "preload"):
            parts = directive.split("=")
            if len(parts) != 2 or parts[0] != "max-age":
                errors.append(_HSTS_REFUSAL)
    return errors


def _cors_errors(origins: tuple[str, ...]) -> list[str]:
    errors = []
    for origin in origins:
        if not origin:
            errors.append(f"empty value in --cors-allowed-origins, help: {_CORS_HELP}")
        elif refusal := _origin_refusal(origin):
            errors.append(f"--cors-allowed-origins has an invalid regular expression: {refusal}, help: {_CORS_HELP}")
    return errors


def _origin_refusal(origin: str) -> str:
    import re2  # loads a native library: only servers with CORS need it

    quiet = re2.Options()
    quiet.log_errors = False
    try:
        re2.compile(origin, quiet)
    except re2.error as problem:
        return f"error parsing regexp: {problem}"
    pinned = ("^" in origin or "//" in origin) and ("$" in origin or ":" in origin)
    return "" if pinned else "regular expression does not pin to start/end of host in the origin header"
