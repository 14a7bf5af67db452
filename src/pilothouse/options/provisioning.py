"""Makes the files that valid options promise: certificates and keys, and the administrator's kubeconfig.

Runs after validation, right before the server starts, so that a wrong command line leaves nothing behind.
"""

from __future__ import annotations

import ipaddress
import os
import re
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from pilothouse.credentials.folder_claim import FolderTaken, Holder, claimed
from pilothouse.credentials.kubeconfig import write_kubeconfig
from pilothouse.credentials.pki import UnusablePki, ensure_pki, ensure_serving_pair
from pilothouse.credentials.private_folder import make_private_folder
from pilothouse.options.greeting import greeting, server_url
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


@contextmanager
def claimed_folder(options: ServerOptions) -> Iterator[None]:
    """``--data-dir`` is this server's within the block; raises ``StartError`` if it is another's.

    A server whose flags name an etcd and all certificates has nothing there, and needs no claim.
    """
    if options.etcd.etcd_servers and options.derived.pki is None:
        yield
        return
    folder = Path(options.own.data_dir).absolute()
    with ExitStack() as stack:
        try:
            make_private_folder(folder)
            holder = Holder(os.getpid(), server_url(options), time.time(), options.own.worker_count())
            stack.enter_context(claimed(folder, holder))
        except FolderTaken as refusal:
            raise StartError(str(refusal)) from None
        except OSError as problem:
            raise StartError(options.explain(problem)) from problem
        yield


def provision(
    options: ServerOptions, now: Callable[[], float] = time.time, meanwhile: Callable[[], None] | None = None
) -> None:
    """Make whatever is missing or about to expire. Raises ``StartError``.

    ``meanwhile`` may be called while certificates are made; see ``ensure_pki``.
    """
    derived = options.derived
    try:
        make_private_folder(Path(options.own.data_dir))
        if derived.pki is not None:
            names, addresses = serving_names(options)
            ensure_pki(
                derived.pki.directory.parent, dns_names=names, ip_addresses=addresses, now=now, meanwhile=meanwhile
            )
            serving = options.secure_serving
            if serving.tls_cert_file != str(derived.pki.serving_cert) and "cert-dir" in options.given:
                ensure_serving_pair(
                    derived.pki, Path(serving.tls_cert_file), Path(serving.tls_private_key_file), names, addresses
                )
        if derived.admin_kubeconfig and derived.pki is not None:
            _write_admin_kubeconfig(options)
    except UnusablePki as problem:
        raise StartError(str(problem)) from None
    except OSError as problem:
        raise StartError(f"cannot prepare certificates and kubeconfig: {options.explain(problem)}") from problem
    derived.greeting = greeting(options)


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
