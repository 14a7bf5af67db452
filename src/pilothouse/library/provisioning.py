"""Makes what the flags of a library server leave open: certificates and, where it stands alone, an administrator.

The data folder belongs to one server at a time, as that of the main server does.
"""

from __future__ import annotations

import ipaddress
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pilothouse.credentials.folder_claim import FolderTaken, Holder, claimed
from pilothouse.credentials.kubeconfig import write_kubeconfig
from pilothouse.credentials.pki import UnusablePki, ensure_pki, ensure_serving_pair
from pilothouse.credentials.private_folder import make_private_folder
from pilothouse.library.options import LibraryOptions
from pilothouse.options.completion import host_address


class StartError(Exception):
    """The options are valid but the server cannot start with them; the message is for the user."""


@contextmanager
def provisioned(options: LibraryOptions) -> Iterator[None]:
    """``--data-dir`` is this server's within the block, with all certificates in it. Raises ``StartError``."""
    folder = Path(options.own.data_dir).absolute()
    url = f"https://127.0.0.1:{options.secure_serving.secure_port}"
    try:
        make_private_folder(folder)
        with claimed(folder, Holder(os.getpid(), url, time.time())):
            _make_certificates(options, folder, url)
            yield
    except (FolderTaken, UnusablePki, ValueError) as problem:
        raise StartError(str(problem)) from None
    except OSError as problem:
        raise StartError(options.explain(problem)) from problem


def _make_certificates(options: LibraryOptions, folder: Path, url: str) -> None:
    serving = options.secure_serving
    alone = options.endpoint(options.authentication.kubeconfig) is None
    if serving.tls_cert_file and not alone:
        return
    names, addresses = _serving_names(options)
    pki = ensure_pki(folder, dns_names=names, ip_addresses=addresses)
    if not serving.tls_cert_file and "cert-dir" in options.given:
        serving.tls_cert_file, serving.tls_private_key_file = (
            os.path.join(serving.cert_dir, f"apiserver.{ending}") for ending in ("crt", "key")
        )
        pair = (Path(serving.tls_cert_file), Path(serving.tls_private_key_file))
        ensure_serving_pair(pki, *pair, names, addresses)
    elif not serving.tls_cert_file:
        serving.tls_cert_file, serving.tls_private_key_file = str(pki.serving_cert), str(pki.serving_key)
    if alone:
        options.authorities = (str(pki.ca_cert),)
        write_kubeconfig(folder / "admin.kubeconfig", url, pki.ca_cert, pki.admin_cert, pki.admin_key)


def _serving_names(options: LibraryOptions) -> tuple[list[str], list[str]]:
    """The DNS names and the IP addresses that the serving certificate must be good for."""
    names, addresses = ["localhost"], ["127.0.0.1", "::1", host_address()]
    bind, external = options.secure_serving.bind_address, options.generic.external_hostname
    if bind and not ipaddress.ip_address(bind).is_unspecified:
        addresses.append(bind)
    try:
        addresses.append(str(ipaddress.ip_address(external)))
    except ValueError:
        names.append(external)
    return names, list(dict.fromkeys(addresses))
