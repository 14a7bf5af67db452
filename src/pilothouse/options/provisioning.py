"""Makes the files that valid options promise: certificates and keys, and the administrator's kubeconfig.

Runs after validation, right before the server starts, so that a wrong command line leaves nothing behind.
"""

from __future__ import annotations

import ipaddress
import re
import shlex
import socket
from pathlib import Path

from pilothouse import KUBERNETES_VERSION, __version__
from pilothouse.app.kubeconfig import write_kubeconfig
from pilothouse.app.pki import ensure_pki, ensure_serving_pair
from pilothouse.options.server_options import ServerOptions

_DNS_NAME = re.compile(r"[A-Za-z0-9]([A-Za-z0-9_.-]{0,251}[A-Za-z0-9])?")
_SERVICE_NAMES = (
    "kubernetes",
    "kubernetes.default",
    "kubernetes.default.svc",
    "kubernetes.default.svc.cluster.local",
)


class StartError(Exception):
    """The options are valid but this server cannot start with them; the message is for the user."""


def provision(options: ServerOptions) -> None:
    """Make whatever is missing or about to expire; raises ``StartError``."""
    if options.etcd.etcd_servers:
        raise StartError(
            "--etcd-servers: etcd is not supported yet; leave it out to use the embedded store in --data-dir"
        )
    derived = options.derived
    derived.greeting = _greeting(options)
    try:
        if derived.pki is not None:
            names, addresses = serving_names(options)
            ensure_pki(derived.pki.directory.parent, dns_names=names, ip_addresses=addresses)
            serving = options.secure_serving
            if serving.tls_cert_file != str(derived.pki.serving_cert) and "cert-dir" in options.given:
                ensure_serving_pair(
                    derived.pki, Path(serving.tls_cert_file), Path(serving.tls_private_key_file), names, addresses
                )
        if derived.admin_kubeconfig and derived.pki is not None:
            _write_admin_kubeconfig(options)
    except OSError as problem:
        raise StartError(f"cannot prepare certificates and kubeconfig: {problem}") from problem


def _write_admin_kubeconfig(options: ServerOptions) -> None:
    pki, serving = options.derived.pki, options.secure_serving
    assert pki is not None
    own_serving = serving.tls_cert_file == str(pki.serving_cert) or "cert-dir" in options.given
    write_kubeconfig(
        Path(options.derived.admin_kubeconfig),
        server_url(options),
        pki.ca_cert if own_serving else Path(serving.tls_cert_file),
        pki.admin_cert,
        pki.admin_key,
    )


def _greeting(options: ServerOptions) -> str:
    lines = [
        f"Pilothouse {__version__} (Kubernetes v{KUBERNETES_VERSION}.0) is ready.",
        f"  Listening on  {server_url(options)}",
        f"  Data in       {Path(options.own.data_dir).absolute()}",
    ]
    if options.derived.admin_kubeconfig:
        path = shlex.quote(str(Path(options.derived.admin_kubeconfig).absolute()))
        lines.append(f"  Try           kubectl --kubeconfig {path} get namespaces")
    return "\n".join(lines)


def server_url(options: ServerOptions) -> str:
    """Where a client on this machine reaches the server."""
    address = ipaddress.ip_address(options.secure_serving.bind_address or "0.0.0.0")
    if address.is_unspecified:
        address = ipaddress.ip_address("127.0.0.1")
    host = f"[{address}]" if address.version == 6 else str(address)
    return f"https://{host}:{options.secure_serving.secure_port}"


def serving_names(options: ServerOptions) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The DNS names and the IP addresses that the serving certificate must be good for."""
    names = ["localhost", *_SERVICE_NAMES]
    addresses = ["127.0.0.1", "::1", options.derived.service_ip, options.generic.advertise_address]
    bind = options.secure_serving.bind_address
    if bind and not ipaddress.ip_address(bind).is_unspecified:
        addresses.append(bind)
    for name in (socket.gethostname(), options.generic.external_hostname):
        try:
            addresses.append(str(ipaddress.ip_address(name)))
        except ValueError:
            if _DNS_NAME.fullmatch(name):
                names.append(name)
    return _unique(names), _unique(addresses)


def _unique(values: list[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(value for value in values if value))
