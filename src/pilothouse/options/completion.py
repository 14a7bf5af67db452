"""Fills in what the flags left open; runs between parsing and validation and touches no file.

Addresses come from the host, the service address from its range. Where flags name no certificates, the paths of those
in ``<data-dir>/pki`` are put in their place and ``derived.pki`` is set; ``provisioning`` makes the files once the
options are known to be valid. With no authentication flag at all, our own authority authenticates clients and the
authorization mode becomes RBAC: the server is safe by default. With any of them kube-apiserver's defaults hold.
"""

from __future__ import annotations

import ipaddress
import os
import socket
from pathlib import Path

from pilothouse.credentials.pki import Pki
from pilothouse.options.server_options import Derived, IPNetwork, ServerOptions

DEFAULT_ISSUER = "https://kubernetes.default.svc"
_DEFAULT_SERVICE_RANGE = "10.0.0.0/24"
_AUTHENTICATION_FLAGS = frozenset(
    {
        "client-ca-file",
        "token-auth-file",
        "authentication-config",
        "authentication-token-webhook-config-file",
        "oidc-issuer-url",
        "requestheader-client-ca-file",
        "enable-bootstrap-token-auth",
    }
)


def complete(options: ServerOptions) -> ServerOptions:
    """Complete the options in place; also returns them. Completing twice changes nothing."""
    derived = Derived(notices=options.derived.notices)
    options.derived = derived
    _complete_services(options)
    _complete_addresses(options)
    if "audit-webhook-batch-initial-backoff" in options.given:
        options.audit.webhook_initial_backoff = options.audit.webhook_batch_initial_backoff
    pki = Pki(Path(options.own.data_dir).absolute() / "pki")
    uses = [_complete_serving(options, pki), _complete_clients(options, pki), _complete_service_accounts(options, pki)]
    if any(uses):
        derived.pki = pki
    _complete_living(options, pki)
    _complete_authorization(options)
    options.api_enablement.normalise()
    return options


def _complete_services(options: ServerOptions) -> None:
    derived = options.derived
    texts = (options.control_plane.service_cluster_ip_range or _DEFAULT_SERVICE_RANGE).split(",")
    ranges: list[IPNetwork] = []
    for index, text in enumerate(texts[:2]):
        try:
            ranges.append(ipaddress.ip_network(text, strict=False) if "/" in text else _refuse_cidr())
        except ValueError:
            what = "a valid cidr" if index == 0 else "an ip net"
            derived.problems.append(f"service-cluster-ip-range[{index}] is not {what}")
            return
    if ranges[0].num_addresses < 8:
        derived.problems.append(
            "error determining service IP ranges for primary service cidr: "
            "the service cluster IP range must be at least 8 IP addresses"
        )
        return
    if len(texts) > 2:
        derived.problems.append("--service-cluster-ip-range must not contain more than two entries")
    if len(ranges) == 2 and ranges[0].version == ranges[1].version:
        derived.problems.append(
            "--service-cluster-ip-range[0] and --service-cluster-ip-range[1] must be of different IP family"
        )
    derived.service_ranges = tuple(ranges)
    derived.service_ip = str(ranges[0][1])


def _refuse_cidr() -> IPNetwork:
    raise ValueError("not in CIDR notation")


def _complete_addresses(options: ServerOptions) -> None:
    generic, bind = options.generic, options.secure_serving.bind_address
    advertised = generic.advertise_address
    if not advertised or ipaddress.ip_address(advertised).is_unspecified:
        address = ipaddress.ip_address(bind or "0.0.0.0")
        specific = not (address.is_unspecified or address.is_loopback)
        generic.advertise_address = str(address) if specific else host_address(address.version)
    if not generic.external_hostname:
        generic.external_hostname = generic.advertise_address
    derived = options.derived
    if derived.service_ranges and options.control_plane.endpoint_reconciler_type != "none":
        primary, public = derived.service_ranges[0], ipaddress.ip_address(generic.advertise_address)
        if primary.version != public.version:
            derived.problems.append(f'service IP family "{primary}" must match public address family "{public}"')


def host_address(version: int = 4) -> str:
    """The address of the interface with the default route, or the loopback address where there is none."""
    family, target, fallback = (
        (socket.AF_INET6, "2001:db8::1", "::1") if version == 6 else (socket.AF_INET, "192.0.2.1", "127.0.0.1")
    )
    try:
        with socket.socket(family, socket.SOCK_DGRAM) as probe:
            # Connecting a datagram socket sends nothing; it only makes the kernel choose a route.
            probe.connect((target, 9))
            return str(probe.getsockname()[0])
    except OSError:
        return fallback


def _complete_serving(options: ServerOptions, pki: Pki) -> bool:
    serving = options.secure_serving
    if serving.tls_cert_file or serving.tls_private_key_file:
        return serving.tls_cert_file == str(pki.serving_cert)
    if "cert-dir" in options.given and serving.cert_dir:
        serving.tls_cert_file = os.path.join(serving.cert_dir, "apiserver.crt")
        serving.tls_private_key_file = os.path.join(serving.cert_dir, "apiserver.key")
        return True
    serving.tls_cert_file, serving.tls_private_key_file = str(pki.serving_cert), str(pki.serving_key)
    return True


def _complete_clients(options: ServerOptions, pki: Pki) -> bool:
    """Our own authorities for clients and front proxies, where no flag names any way to authenticate."""
    clients, control_plane = options.authentication, options.control_plane
    ours = str(pki.ca_cert)
    if clients.client_ca_file not in ("", ours) or _AUTHENTICATION_FLAGS & options.given:
        return False
    if clients.token_auth_file or clients.authentication_config or clients.oidc_issuer_url:
        return False
    clients.client_ca_file = ours
    options.derived.admin_kubeconfig = options.own.write_kubeconfig or str(pki.directory.parent / "admin.kubeconfig")
    clients.requestheader_client_ca_file = str(pki.front_proxy_ca_cert)
    clients.requestheader_allowed_names = clients.requestheader_allowed_names or ("front-proxy-client",)
    clients.requestheader_username_headers = clients.requestheader_username_headers or ("X-Remote-User",)
    clients.requestheader_group_headers = clients.requestheader_group_headers or ("X-Remote-Group",)
    clients.requestheader_extra_headers_prefix = clients.requestheader_extra_headers_prefix or ("X-Remote-Extra-",)
    if not control_plane.proxy_client_cert_file and not control_plane.proxy_client_key_file:
        control_plane.proxy_client_cert_file = str(pki.front_proxy_client_cert)
        control_plane.proxy_client_key_file = str(pki.front_proxy_client_key)
    return True


def _complete_service_accounts(options: ServerOptions, pki: Pki) -> bool:
    accounts, control_plane = options.authentication, options.control_plane
    ours = (str(pki.service_account_public_key),)
    if accounts.service_account_key_file not in ((), ours) or control_plane.service_account_signing_endpoint:
        return False
    if control_plane.service_account_signing_key_file not in ("", str(pki.service_account_key)):
        return False
    accounts.service_account_key_file = ours
    control_plane.service_account_signing_key_file = str(pki.service_account_key)
    accounts.service_account_issuer = accounts.service_account_issuer or (DEFAULT_ISSUER,)
    return True


def _complete_living(options: ServerOptions, pki: Pki) -> None:
    """Controllers sign and publish with our own authority where flags name no other and it is ours that serves."""
    living = options.living
    if options.derived.pki is None:
        return
    if not living.signing_cert and not living.signing_key and options.derived.admin_kubeconfig:
        living.signing_cert, living.signing_key = str(pki.ca_cert), str(pki.ca_key)
    if not living.root_ca and options.secure_serving.tls_cert_file == str(pki.serving_cert):
        living.root_ca = str(pki.ca_cert)


def _complete_authorization(options: ServerOptions) -> None:
    authorization = options.authorization
    if not authorization.mode and not authorization.config:
        own = ("Node", "RBAC") if options.living.needs_node_authorizer else ("RBAC",)
        authorization.mode = own if options.derived.admin_kubeconfig else ("AlwaysAllow",)
        if "AlwaysAllow" in authorization.mode:
            options.derived.notices.append(
                "--authorization-mode is not given, and with authentication flags its default is AlwaysAllow: EVERY "
                "AUTHENTICATED USER MAY DO EVERYTHING. Give --authorization-mode=Node,RBAC unless that is wanted"
            )
    lacks_nodes = not authorization.config and not {"Node", "AlwaysAllow"} & {*authorization.mode}
    if options.living.needs_node_authorizer and lacks_nodes:
        options.derived.problems.append(
            "--simulate-nodes needs Node in --authorization-mode: add it there, or give --simulate-nodes=0"
        )
    if "AlwaysAllow" in authorization.mode and options.authentication.anonymous_auth:
        options.authentication.anonymous_auth = False
        options.derived.notices.append(
            "AnonymousAuth is not allowed with the AlwaysAllow authorizer. Resetting AnonymousAuth to false. "
            "You should use a different authorizer"
        )
