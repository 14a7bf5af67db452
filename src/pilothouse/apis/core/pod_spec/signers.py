"""Names of certificate signers and of the trust bundles they publish."""

from __future__ import annotations

from typing import Final

from pilothouse.machinery.field_errors import FieldError, Path, invalid, required, too_long
from pilothouse.machinery.go_quote import quote
from pilothouse.machinery.names import MAX_LABEL, MAX_SUBDOMAIN, check_dns1123_label, check_dns1123_subdomain

_MAX_NAME: Final = MAX_SUBDOMAIN + 1 + MAX_SUBDOMAIN + MAX_LABEL + 1


def is_kubernetes_signer(name: str) -> bool:
    """Whether the name belongs to the Kubernetes project."""
    host = name.partition("/")[0]
    return host == "kubernetes.io" or host.endswith(".kubernetes.io")


def validate_signer_name(name: str, path: Path, errs: list[FieldError]) -> None:
    """``example.com/signer``: a domain of two labels or more, and one segment of a path."""
    if not name:
        errs.append(required(path, ""))
        return
    if name.count("/") != 1:
        why = "must be a fully qualified domain and path of the form 'example.com/signer-name'"
        errs.append(invalid(path, name, why))
        return
    domain, _, segment = name.partition("/")
    if len(domain.encode()) > MAX_SUBDOMAIN:
        errs.append(too_long(path, "", MAX_SUBDOMAIN))
    for label in domain.split("."):
        if messages := check_dns1123_label(label):
            errs += (invalid(path, domain, f"validating label {quote(label)}: {message}") for message in messages)
            break
    if "." not in domain:
        errs.append(invalid(path, domain, "should be a domain with at least two segments separated by dots"))
    for label in segment.split("."):
        if messages := check_dns1123_subdomain(label):
            errs += (invalid(path, segment, f"validating label {quote(label)}: {message}") for message in messages)
            break
    if len(name.encode()) > _MAX_NAME:
        errs.append(too_long(path, "", _MAX_NAME))


def signer_of_trust_bundle(name: str) -> str:
    """The signer whose bundle has this name, ``example.com:signer:bundle``; empty without one."""
    before, found, _ = name.rpartition(":")
    return before.replace(":", "/") if found else ""


def check_trust_bundle_name(name: str, signer: str) -> list[str]:
    """The name of a bundle, which starts with that of its signer if it has one."""
    if not signer:
        if ":" in name:
            return ['ClusterTrustBundle without signer name must not have ":" in its name']
        return check_dns1123_subdomain(name)
    prefix = signer.replace("/", ":") + ":"
    if not name.startswith(prefix):
        return [f"ClusterTrustBundle for signerName {signer} must be named with prefix {prefix}"]
    return check_dns1123_subdomain(name.removeprefix(prefix))
