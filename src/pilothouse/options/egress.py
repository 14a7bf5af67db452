"""The flag that routes outgoing connections, and the file it names."""

from __future__ import annotations

from collections.abc import Set
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

from pilothouse.machinery.field_errors import (
    FieldError,
    aggregate,
    duplicate,
    invalid,
    not_supported,
    required,
)
from pilothouse.machinery.field_errors import Path as FieldPath
from pilothouse.machinery.shapes import Struct, Text, unknown_fields
from pilothouse.machinery.yaml_codec import YamlError, load
from pilothouse.options.declaring import FlagGroup, flag
from pilothouse.options.kinds import STRING

if TYPE_CHECKING:
    from pilothouse.net.dialing import Route
    from pilothouse.net.dialing.egress import Egress

_VERSIONS: Final = ("apiserver.k8s.io/v1beta1", "apiserver.k8s.io/v1alpha1", "apiserver.config.k8s.io/v1")
_KIND: Final = "EgressSelectorConfiguration"
_NAMES: Final = ("cluster", "controlplane", "etcd")
_PROTOCOLS: Final = ("Direct", "HTTPConnect", "GRPC")
_WHERE: Final = FieldPath("service", "connection")
_TLS: Final = Struct("TLSConfig", {"caBundle": str, "clientKey": str, "clientCert": str, "tlsServerName": str})
_TRANSPORT: Final = {
    "tcp": Struct("TCPTransport", {"url": str, "tlsConfig": _TLS}),
    "uds": Struct("UDSTransport", {"udsName": str}),
}
_CONNECTION: Final = {"proxyProtocol": Text("ProtocolType"), "transport": Struct("Transport", _TRANSPORT)}
_SELECTION: Final = {"name": str, "connection": Struct("Connection", _CONNECTION)}
_SHAPE: Final = Struct(
    _KIND, {"apiVersion": str, "kind": str, "egressSelections": [Struct("EgressSelection", _SELECTION)]}
)


@dataclass
class EgressSelectorOptions(FlagGroup):
    """The ``egress selector`` section."""

    section = "egress selector"

    config_file: str = flag("egress-selector-config-file", STRING, "", "File that says how other servers are reached.")

    def validate(self, given: Set[str]) -> list[str]:
        """The file must exist and make sense."""
        if not self.config_file:
            return []
        if not Path(self.config_file).exists():
            return [f"egress-selector-config-file {self.config_file} does not exist"]
        try:
            read_selections(self.config_file)
        except ValueError as error:
            return [str(error)]
        return []

    def build(self) -> Egress:
        """The dialers for each kind of traffic; direct ones where nothing else is said."""
        from pilothouse.net.dialing import DIRECT, Dialer
        from pilothouse.net.dialing.egress import Egress

        selections = read_selections(self.config_file) if self.config_file else {}
        routes = {name: _route(connection) for name, connection in selections.items()}
        return Egress(*(Dialer(routes.get(name, DIRECT)) for name in ("cluster", "controlplane", "etcd")))


def read_selections(path: str) -> dict[str, dict[str, Any]]:
    """The connection of each named kind of traffic. Raises ValueError in kube-apiserver's words."""
    try:
        document = load(Path(path).read_bytes())
    except OSError as error:
        raise ValueError(f'unable to read egress selector configuration from "{path}" [{error.strerror}]') from None
    except YamlError as error:
        raise ValueError(f"failed to read egress selector config: {error}") from None
    if not isinstance(document, dict) or document.get("kind") != _KIND or document.get("apiVersion") not in _VERSIONS:
        raise ValueError(f"failed to read egress selector config: no kind {_KIND} of a known version in the file")
    try:
        unknown = unknown_fields(document, _SHAPE, document["apiVersion"].rpartition("/")[2])
    except ValueError as error:
        raise ValueError(f"failed to read egress selector config: {error}") from None
    if unknown:
        named = ", ".join(f'unknown field "{field}"' for field in unknown)
        raise ValueError(f"failed to read egress selector config: strict decoding error: {named}")
    selections = [each for each in document.get("egressSelections") or () if isinstance(each, dict)]
    errs = [error for each in selections for error in _connection_errors(each.get("connection") or {})]
    errs += _name_errors([str(each.get("name", "")).lower() for each in selections])
    if errs:
        raise ValueError(f"failed to validate egress selector configuration: {aggregate(map(str, errs))}")
    return {str(each["name"]).lower(): each["connection"] for each in selections}


def _name_errors(names: list[str]) -> list[FieldError]:
    errs: list[FieldError] = []
    for index, name in enumerate(names):
        if name in names[:index]:
            errs.append(duplicate(_WHERE.index(index), name))
        elif name not in _NAMES:
            errs.append(not_supported(_WHERE, name, sorted(_NAMES)))
    return errs


def _connection_errors(connection: dict[str, Any]) -> list[FieldError]:
    protocol, transport = connection.get("proxyProtocol", ""), connection.get("transport")
    if protocol == "Direct":
        absent = "config must be absent for direct connect"
        return [] if transport is None else [invalid(_WHERE.child("transport"), "direct", absent)]
    if protocol not in _PROTOCOLS:
        return [not_supported(_WHERE.child("protocol"), protocol, list(_PROTOCOLS))]
    if transport is None:
        return [required(_WHERE.child("transport"), f"transport must be set for {protocol}")]
    tcp, uds = transport.get("tcp"), transport.get("uds")
    if protocol == "GRPC":
        return [required(_WHERE.child("uds"), "UDS must be set with GRPC")] if uds is None else _uds_errors(uds)
    if tcp is not None and uds is not None:
        return [invalid(_WHERE.child("tcp"), tcp, "TCP and UDS cannot both be set")]
    if tcp is None and uds is None:
        return [required(_WHERE.child("tcp"), "One of TCP or UDS must be set")]
    return _uds_errors(uds) if tcp is None else _tcp_errors(tcp)


def _uds_errors(uds: dict[str, Any]) -> list[FieldError]:
    return (
        [] if uds.get("udsName") else [invalid(_WHERE.child("udsName"), "nil", "must be present for UDS connections")]
    )


def _tcp_errors(tcp: dict[str, Any]) -> list[FieldError]:
    url, tls = tcp.get("url", ""), tcp.get("tlsConfig")
    if url.startswith("http://"):
        present = "config must not be present when using HTTP"
        return [] if tls is None else [invalid(_WHERE.child("tlsConfig"), "nil", present)]
    if not url.startswith("https://"):
        return [invalid(_WHERE.child("url"), url, "supported connection protocols are http:// and https://")]
    where = _WHERE.child("tlsConfig")
    if tls is None:
        return [required(where, "TLSConfig must be present when using HTTPS")]
    errs: list[FieldError] = []
    if tls.get("caBundle") and not Path(tls["caBundle"]).exists():
        errs.append(invalid(where.child("caBundle"), tls["caBundle"], "TLS config ca bundle does not exist"))
    for name, missing, words in (
        ("clientCert", "Using TLS requires clientCert", "TLS client cert does not exist"),
        ("clientKey", "Using TLS requires requires clientKey", "TLS client key does not exist"),
    ):
        if not tls.get(name):
            errs.append(invalid(where.child(name), "nil", missing))
        elif not Path(tls[name]).exists():
            errs.append(invalid(where.child(name), tls[name], words))
    return errs


def _route(connection: dict[str, Any]) -> Route:
    from pilothouse.net.dialing import DIRECT, Tls
    from pilothouse.net.dialing.konnectivity import KonnectivityRoute
    from pilothouse.net.dialing.tunnels import HttpConnectRoute, HttpProxy

    transport = connection.get("transport") or {}
    path = (transport.get("uds") or {}).get("udsName", "")
    if connection["proxyProtocol"] == "Direct":
        return DIRECT
    if connection["proxyProtocol"] == "GRPC":
        return KonnectivityRoute(path)
    if path:
        return HttpConnectRoute(HttpProxy(path=path))
    tcp = transport["tcp"]
    url, files = urlsplit(tcp["url"]), tcp.get("tlsConfig")
    tls = None
    if files is not None:
        tls = Tls(
            authorities_file=files.get("caBundle", ""),
            cert_file=files["clientCert"],
            key_file=files["clientKey"],
            server_name=files.get("tlsServerName", ""),
        )
    return HttpConnectRoute(HttpProxy(url.hostname or "", url.port or (443 if tls else 80), tls))
