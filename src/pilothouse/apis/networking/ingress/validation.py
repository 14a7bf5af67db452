"""What makes an ingress valid."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from pilothouse.apis.core.checks import check_dns_label, check_dns_subdomain, check_old_ip, check_port, refusals
from pilothouse.machinery import addresses, names
from pilothouse.machinery.field_errors import FieldError, Path, invalid, not_supported, required
from pilothouse.machinery.objects import Object
from pilothouse.machinery.schema.emptied import as_given

CLASS_ANNOTATION: Final = "kubernetes.io/ingress.class"
_SPEC: Final = Path("spec")
_PATH_TYPES: Final = ("Exact", "ImplementationSpecific", "Prefix")
_SEQUENCES: Final = ("//", "/./", "/../", "%2f", "%2F")
_SUFFIXES: Final = ("/..", "/.")
_NOT_AN_IP: Final = "must be a DNS name, not an IP address"
NameCheck = Callable[[Path, str], list[FieldError]]


def check_dns1035_label(path: Path, value: str) -> list[FieldError]:
    """A label that begins with a letter."""
    return refusals(path, value, names.check_dns1035_label(value))


def validate_ingress(obj: Object, old: Object | None = None, *, lenient: bool = False) -> list[FieldError]:
    """Errors of an ingress; of secret names and wildcard rules they may stay where stored, or (``lenient``) anyway."""
    spec = obj.get("spec", {})
    before = (old or {}).get("spec") or {}
    errs: list[FieldError] = []
    rules, backend = spec.get("rules") or [], spec.get("defaultBackend")
    if not rules and backend is None:
        errs.append(invalid(_SPEC, as_given(spec, "rules"), "either `defaultBackend` or `rules` must be specified"))
    if backend is not None:
        errs += _check_backend(_SPEC.child("defaultBackend"), backend)
    forgiven = lenient or _has_bad_wildcard_rule(before)
    for at, rule in enumerate(rules):
        errs += _check_rule(_SPEC.child("rules").index(at), rule, lenient=forgiven)
    keep_secrets = lenient or any(_check_secret_name(_SPEC, tls) for tls in before.get("tls") or ())
    for at, tls in enumerate(spec.get("tls") or ()):
        path = _SPEC.child("tls").index(at)
        for position, host in enumerate(tls.get("hosts") or ()):
            errs += _check_host(path.child("hosts").index(position), host)
        if not keep_secrets:
            errs += _check_secret_name(path.child("secretName"), tls)
    if spec.get("ingressClassName") is not None:
        errs += check_dns_subdomain(_SPEC.child("ingressClassName"), spec["ingressClassName"])
    return errs


def check_class_annotation(obj: Object) -> list[FieldError]:
    """A new ingress may name its class both ways only if they agree."""
    annotated = (obj["metadata"].get("annotations") or {}).get(CLASS_ANNOTATION)
    name = (obj.get("spec") or {}).get("ingressClassName")
    if annotated is None or name is None or annotated == name:
        return []
    why = "must match `ingressClassName` when both are specified"
    return [invalid(Path("annotations", CLASS_ANNOTATION), annotated, why)]


def _check_secret_name(path: Path, tls: dict[str, Any]) -> list[FieldError]:
    name = tls.get("secretName")
    return check_dns_subdomain(path, name) if name else []


def _check_host(path: Path, host: str) -> list[FieldError]:
    check = names.check_wildcard_dns1123_subdomain if "*" in host else names.check_dns1123_subdomain
    return refusals(path, host, check(host))


def _has_bad_wildcard_rule(spec: dict[str, Any]) -> bool:
    """Judged as before service names were allowed to begin with a digit."""
    check = check_dns1035_label
    return any("*" in rule.get("host", "") and _check_http(_SPEC, rule, check) for rule in spec.get("rules") or ())


def _check_rule(path: Path, rule: dict[str, Any], *, lenient: bool) -> list[FieldError]:
    host = rule.get("host", "")
    errs: list[FieldError] = []
    if host:
        if addresses.parse_ip(host) is not None:
            errs.append(invalid(path.child("host"), host, _NOT_AN_IP))
        errs += _check_host(path.child("host"), host)
    return errs if lenient and "*" in host else errs + _check_http(path, rule)


def _check_http(path: Path, rule: dict[str, Any], check_name: NameCheck = check_dns_label) -> list[FieldError]:
    http = rule.get("http")
    if http is None:
        return []
    where = path.child("http", "paths")
    paths = http.get("paths") or ()
    errs = [] if paths else [required(where, "")]
    for at, each in enumerate(paths):
        errs += _check_path(where.index(at), each, check_name)
    return errs


def _check_path(path: Path, rule: dict[str, Any], check_name: NameCheck) -> list[FieldError]:
    type_, text, where = rule.get("pathType"), rule.get("path", ""), path.child("path")
    if type_ is None:
        return [required(path.child("pathType"), "pathType must be specified")]
    errs: list[FieldError] = []
    if type_ not in _PATH_TYPES:
        errs.append(not_supported(path.child("pathType"), type_, _PATH_TYPES))
    elif not text.startswith("/") and (text or type_ != "ImplementationSpecific"):
        errs.append(invalid(where, text, "must be an absolute path"))
    if type_ in ("Exact", "Prefix"):
        errs += (invalid(where, text, f"must not contain '{part}'") for part in _SEQUENCES if part in text)
        errs += (invalid(where, text, f"cannot end with '{end}'") for end in _SUFFIXES if text.endswith(end))
    return errs + _check_backend(path.child("backend"), rule.get("backend") or {}, check_name)


def _check_backend(path: Path, backend: dict[str, Any], check_name: NameCheck = check_dns_label) -> list[FieldError]:
    resource, service = backend.get("resource"), backend.get("service")
    if resource is not None and service is not None:
        return [invalid(path, "", "cannot set both resource and service backends")]
    if resource is not None:
        return check_reference(path.child("resource"), resource)
    if service is None:
        return [invalid(path, "", "resource or service backend is required")]
    name, port = service.get("name"), service.get("port") or {}
    where = path.child("service", "name")
    errs = check_name(where, name) if name else [required(where, "")]
    if port.get("name") and port.get("number"):
        errs.append(invalid(path, "", "cannot set both port name & port number"))
    elif port.get("name"):
        errs += refusals(path.child("service", "port", "name"), port["name"], names.check_port_name(port["name"]))
    elif port.get("number"):
        errs += check_port(path.child("service", "port", "number"), port["number"])
    else:
        errs.append(required(path, "port name or number is required"))
    return errs


def check_reference(path: Path, reference: dict[str, Any], *, with_missing: bool = True) -> list[FieldError]:
    """A reference to an object of any kind in the same place."""
    errs: list[FieldError] = []
    if reference.get("apiGroup") is not None:
        errs += check_dns_subdomain(path.child("apiGroup"), reference["apiGroup"])
    for key in ("kind", "name"):
        value = reference.get(key)
        where = path.child(key)
        if value:
            errs += refusals(where, value, names.check_path_segment_name(value))
        elif with_missing:
            errs.append(required(where, ""))
    return errs


def validate_ingress_status(obj: Object, old: Object, *, strict: bool = True) -> list[FieldError]:
    """Errors of what a load balancer reports."""
    known = {entry["ip"] for entry in status_entries(old) if entry.get("ip")}
    errs: list[FieldError] = []
    for at, entry in enumerate(status_entries(obj)):
        path = Path("status", "loadBalancer", "ingress").index(at)
        ip, host = entry.get("ip"), entry.get("hostname")
        if ip:
            errs += check_old_ip(path.child("ip"), ip, known, strict=strict)
        if host:
            errs += check_dns_subdomain(path.child("hostname"), host)
            if addresses.parse_ip(host) is not None:
                errs.append(invalid(path.child("hostname"), host, _NOT_AN_IP))
    return errs


def status_entries(obj: Object) -> list[dict[str, Any]]:
    """The points a load balancer reports."""
    return ((obj.get("status") or {}).get("loadBalancer") or {}).get("ingress") or []
