"""The flag that sends traces somewhere, and the file it names (``TracingConfiguration``)."""

from __future__ import annotations

from collections.abc import Set
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from pilothouse.authn.configuration_file import load_configuration
from pilothouse.machinery.field_errors import FieldError, aggregate, invalid
from pilothouse.machinery.field_errors import Path as FieldPath
from pilothouse.machinery.shapes import Struct
from pilothouse.options.declaring import FlagGroup, flag
from pilothouse.options.kinds import STRING

if TYPE_CHECKING:
    from pilothouse.net.dialing import Dialer
    from pilothouse.net.grpc import Channel
    from pilothouse.server.trace_export import TraceExport

_KIND: Final = "TracingConfiguration"
_VERSIONS: Final = ("v1", "v1beta1", "v1alpha1")
_SHAPE: Final = Struct("TracingConfiguration.TracingConfiguration", {"endpoint": str, "samplingRatePerMillion": int})
"""One type of that name embeds another."""
_DEFAULT_ENDPOINT: Final = "localhost:4317"
_PORT: Final = 443
_MOST_RATE: Final = 1_000_000
_SCHEMES: Final = ("dns", "unix", "unix-abstract")


@dataclass(frozen=True, slots=True)
class TracingConfiguration:
    """Where traces go, and which."""

    endpoint: str = _DEFAULT_ENDPOINT
    sampling_rate_per_million: int = 0


@dataclass
class TracingOptions(FlagGroup):
    """The ``traces`` section."""

    section = "traces"

    config_file: str = flag("tracing-config-file", STRING, "", "File that says where traces are sent.")

    def validate(self, given: Set[str]) -> list[str]:
        """The file must exist."""
        if self.config_file and not Path(self.config_file).exists():
            return [f"tracing-config-file {self.config_file} does not exist"]
        return []

    def build(self, dialer: Dialer, identity: str) -> TraceExport | None:
        """What sends traces, None where nobody wants them. Raises ValueError."""
        if not self.config_file:
            return None
        configuration = read_configuration(self.config_file)
        try:
            from pilothouse.server.trace_export import TraceExport
        except ImportError as error:
            why = f"--tracing-config-file needs the OpenTelemetry SDK (pip install 'pilothouse[tracing]'): {error}"
            raise ValueError(why) from None
        channel = _channel(configuration.endpoint, dialer)
        return TraceExport(channel, configuration.sampling_rate_per_million, identity)


def read_configuration(path: str) -> TracingConfiguration:
    """What a file says; an empty one says what is usual. Raises ValueError in kube-apiserver's words."""
    try:
        data = Path(path).read_bytes()
    except OSError as error:
        why = (error.strerror or str(error)).lower()
        raise ValueError(
            f'failed to read tracing config: unable to read tracing configuration from "{path}": open {path}: {why}'
        ) from None
    try:
        document = load_configuration(data, _KIND, _VERSIONS, _SHAPE) if data.strip() else {}
    except ValueError as error:
        raise ValueError(
            f"failed to read tracing config: unable to decode tracing configuration data: {error}"
        ) from None
    errs = _errors(document.get("samplingRatePerMillion"), document.get("endpoint"))
    if errs:
        raise ValueError(f"failed to validate tracing configuration: {aggregate(map(str, errs))}")
    return TracingConfiguration(document.get("endpoint", _DEFAULT_ENDPOINT), document.get("samplingRatePerMillion", 0))


def _errors(rate: int | None, endpoint: str | None) -> list[FieldError]:
    errs: list[FieldError] = []
    where = FieldPath("samplingRatePerMillion")
    if rate is not None and rate < 0:
        errs.append(invalid(where, rate, "sampling rate must be positive"))
    if rate is not None and rate > _MOST_RATE:
        errs.append(invalid(where, rate, "sampling rate per million must be less than or equal to one million"))
    if endpoint is not None:
        url = endpoint if "//" in endpoint else f"dns://{endpoint}"
        scheme = urlsplit(url).scheme
        if scheme not in _SCHEMES:
            why = (
                f"unsupported scheme: {scheme}.  Options are none, dns, unix, or unix-abstract.  "
                "See https://github.com/grpc/grpc/blob/master/doc/naming.md"
            )
            errs.append(invalid(FieldPath("endpoint"), url, why))
    return errs


def _channel(endpoint: str, dialer: Dialer) -> Channel:
    """The way to a collector, by an address as gRPC writes them: ``host:port``, ``dns:///host:port``, ``unix:path``."""
    from pilothouse.net.dialing import Target
    from pilothouse.net.grpc import Channel

    for scheme, mark in (("unix-abstract:", "\0"), ("unix:", "")):
        if endpoint.startswith(scheme):
            path = endpoint.removeprefix(scheme)
            return Channel(Target("localhost", 0, None), dialer, mark + path.removeprefix("//"))
    address = endpoint.removeprefix("dns:").removeprefix("//").rpartition("/")[2]
    host, _, port = address.rpartition(":") if ":" in address else (address, "", "")
    if not port.isdecimal():
        host, port = address, str(_PORT)
    return Channel(Target(host.strip("[]"), int(port), None), dialer)
