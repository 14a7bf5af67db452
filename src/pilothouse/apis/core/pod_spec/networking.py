"""A pod's names and name resolution: host names, aliases, DNS."""

from __future__ import annotations

from typing import Final

from pilothouse.apis.validation import one_of_required, well_formed
from pilothouse.machinery.addresses import check_legacy_ip
from pilothouse.machinery.field_errors import FieldError, Path, forbidden, invalid, required, too_long
from pilothouse.machinery.names import (
    check_dns1123_label,
    check_dns1123_subdomain,
    check_dns1123_subdomain_with_underscore,
)
from pilothouse.machinery.objects import Object

_DNS_POLICIES: Final = ("ClusterFirstWithHostNet", "ClusterFirst", "Default", "None")
_MAX_NAMESERVERS: Final = 3
_MAX_SEARCHES: Final = 32
_MAX_SEARCH_CHARACTERS: Final = 2048
_MAX_HOSTNAME: Final = 64


def validate_dns(spec: Object, path: Path, errs: list[FieldError], *, strict: bool) -> None:
    """The DNS configuration, which the policy ``None`` makes mandatory. ``path`` is the spec's."""
    config = spec.get("dnsConfig")
    if spec.get("dnsPolicy") == "None":
        if config is None:
            errs.append(required(path.child("dnsConfig"), "must provide `dnsConfig` when `dnsPolicy` is None"))
            return
        if not config.get("nameservers"):
            why = "must provide at least one DNS nameserver when `dnsPolicy` is None"
            errs.append(required(path.child("dnsConfig", "nameservers"), why))
            return
    if config:
        _validate_config(config, path.child("dnsConfig"), errs, strict)


def _validate_config(config: Object, path: Path, errs: list[FieldError], strict: bool) -> None:
    servers, searches = config.get("nameservers") or [], config.get("searches") or []
    if len(servers) > _MAX_NAMESERVERS:
        why = f"must not have more than {_MAX_NAMESERVERS} nameservers"
        errs.append(invalid(path.child("nameservers"), servers, why))
    for position, server in enumerate(servers):
        where = path.child("nameservers").index(position)
        errs += (invalid(where, server, message) for message in check_legacy_ip(server, strict))
    if len(searches) > _MAX_SEARCHES:
        errs.append(invalid(path.child("searches"), searches, f"must not have more than {_MAX_SEARCHES} search paths"))
    if len(" ".join(searches).encode()) > _MAX_SEARCH_CHARACTERS:
        why = f"must not have more than {_MAX_SEARCH_CHARACTERS} characters (including spaces) in the search list"
        errs.append(invalid(path.child("searches"), searches, why))
    for position, search in enumerate(searches):
        if search != ".":
            domain, where = search.removesuffix("."), path.child("searches").index(position)
            errs += (invalid(where, domain, message) for message in check_dns1123_subdomain_with_underscore(domain))
    for position, option in enumerate(config.get("options") or ()):
        if not option.get("name"):
            errs.append(required(path.child("options").index(position), "must not be empty"))


def validate_dns_policy(spec: Object, path: Path, errs: list[FieldError]) -> None:
    one_of_required(spec.get("dnsPolicy", ""), _DNS_POLICIES, path, "dnsPolicy", errs)


def validate_host_aliases(aliases: list[Object], path: Path, errs: list[FieldError], *, strict: bool) -> None:
    """Entries for the pod's hosts file; ``path`` is the list's."""
    for position, alias in enumerate(aliases):
        where = path.index(position)
        ip = alias.get("ip", "")
        errs += (invalid(where.child("ip"), ip, message) for message in check_legacy_ip(ip, strict))
        for at, name in enumerate(alias.get("hostnames") or ()):
            shown = where.child("hostnames").index(at)
            errs += (invalid(shown, name, message) for message in check_dns1123_subdomain(name))


def validate_hostname_override(spec: Object, path: Path, errs: list[FieldError]) -> None:
    """A host name of any form, where the pod's name is not to be used. ``path`` is the spec's."""
    name, where = spec["hostnameOverride"], path.child("hostnameOverride")
    if spec.get("setHostnameAsFQDN"):
        errs.append(forbidden(where, "may not be specified when setHostnameAsFQDN is true"))
    if spec.get("hostNetwork"):
        errs.append(forbidden(where, "may not be specified when hostNetwork is true"))
    if len(name.encode()) > _MAX_HOSTNAME:
        errs.append(too_long(where, "", _MAX_HOSTNAME))
    errs += (invalid(where, name, message) for message in check_dns1123_subdomain(name))


def validate_hostnames(spec: Object, path: Path, errs: list[FieldError]) -> None:
    """``hostname`` and ``subdomain``. ``path`` is the spec's."""
    for field in ("hostname", "subdomain"):
        if spec.get(field):
            well_formed(spec[field], check_dns1123_label, path, field, errs)


def validate_host_network_ports(spec: Object, path: Path, errs: list[FieldError], *, is_pod: bool) -> None:
    """On the host's network a port is the host's. Templates may leave it open: the pod will get it."""
    for at, container in enumerate(spec.get("containers") or ()):
        for position, port in enumerate(container.get("ports") or ()):
            host = port.get("hostPort", 0)
            if (is_pod or host) and host != port.get("containerPort", 0):
                where = path.child("containers").index(at).child("ports").index(position).child("hostPort")
                errs.append(invalid(where, host, "must match `containerPort` when `hostNetwork` is true"))
