"""What a signing request asks for, and whether its signer may give it."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any, Final

from cryptography import x509
from cryptography.x509.oid import NameOID

from pilothouse.apis.certificates.pem import blocks
from pilothouse.apis.certificates.x509 import read_request
from pilothouse.machinery import base64_text
from pilothouse.machinery.objects import Object
from pilothouse.net.odd_certificates import unreadable

CLIENT: Final = "kubernetes.io/kube-apiserver-client"
KUBELET_CLIENT: Final = "kubernetes.io/kube-apiserver-client-kubelet"
KUBELET_SERVING: Final = "kubernetes.io/kubelet-serving"
LEGACY_UNKNOWN: Final = "kubernetes.io/legacy-unknown"
SIGNERS: Final = (CLIENT, KUBELET_CLIENT, KUBELET_SERVING, LEGACY_UNKNOWN)

_NODES: Final = "system:nodes"
_NODE: Final = "system:node:"
_CLIENT_USAGES: Final = ("client auth", "digital signature", "key encipherment")
_SERVING_USAGES: Final = ("digital signature", "key encipherment", "server auth")


class BadRequest(ValueError):
    """What a request asks for is not for its signer to give; the message says why."""


@dataclass(frozen=True, slots=True)
class Requested:
    """A request as it was signed."""

    pkcs10: x509.CertificateSigningRequest
    usages: frozenset[str]

    @property
    def common_name(self) -> str:
        """The name of the subject."""
        return "".join(self._subject(NameOID.COMMON_NAME)[:1])

    @property
    def organizations(self) -> list[str]:
        """The groups of the subject."""
        return self._subject(NameOID.ORGANIZATION_NAME)

    def alternatives(self, kind: type[Any]) -> list[Any]:
        """The alternative names of a kind."""
        try:
            names = self.pkcs10.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
        except unreadable(x509.ExtensionNotFound):
            return []
        return list(names.get_values_for_type(kind))

    def _subject(self, oid: x509.ObjectIdentifier) -> list[str]:
        return [str(each.value) for each in self.pkcs10.subject.get_attributes_for_oid(oid)]


def read(request: Object) -> Requested:
    """What a CertificateSigningRequest asks for. Raises BadRequest."""
    block = next(blocks(base64_text.decode(request["spec"]["request"])), None)
    pkcs10 = None if block is None or block.label != "CERTIFICATE REQUEST" else read_request(block.content)
    if pkcs10 is None:
        raise BadRequest("PEM block type must be CERTIFICATE REQUEST")
    return Requested(pkcs10, frozenset(request["spec"].get("usages") or ()))


def check(requested: Requested, signer: str) -> None:
    """Raises BadRequest where a signer must not sign."""
    if signer == CLIENT:
        _check_client(requested)
    elif signer == KUBELET_CLIENT:
        _check_kubelet_client(requested)
    elif signer == KUBELET_SERVING:
        _check_kubelet_serving(requested)


def is_kubelet_client(requested: Requested) -> bool:
    """Whether this is what a kubelet asks for to be a client."""
    try:
        _check_kubelet_client(requested)
    except BadRequest:
        return False
    return True


def _check_client(requested: Requested) -> None:
    for usage in sorted(requested.usages):
        if usage not in _CLIENT_USAGES:
            raise BadRequest(f"invalid usage for client certificate: {usage}")
    if "client auth" not in requested.usages:
        raise BadRequest("missing required usage for client certificate: client auth")


def _check_kubelet_client(requested: Requested) -> None:
    _check_organization(requested)
    for kind, name in ((x509.DNSName, "DNS"), (x509.RFC822Name, "Email"), (x509.IPAddress, "IP")):
        if requested.alternatives(kind):
            raise BadRequest(f"{name} subjectAltNames are not allowed")
    _refuse_uris(requested)
    _check_name(requested)
    _check_usages(requested, _CLIENT_USAGES)


def _check_kubelet_serving(requested: Requested) -> None:
    _check_organization(requested)
    if not requested.alternatives(x509.DNSName) and not requested.alternatives(x509.IPAddress):
        raise BadRequest("DNS or IP subjectAltName is required")
    if requested.alternatives(x509.RFC822Name):
        raise BadRequest("Email subjectAltNames are not allowed")
    _refuse_uris(requested)
    _check_usages(requested, _SERVING_USAGES)
    _check_name(requested)


def _refuse_uris(requested: Requested) -> None:
    if requested.alternatives(x509.UniformResourceIdentifier):
        raise BadRequest("URI subjectAltNames are not allowed")


def _check_organization(requested: Requested) -> None:
    if requested.organizations != [_NODES]:
        raise BadRequest("subject organization is not system:nodes")


def _check_name(requested: Requested) -> None:
    if not requested.common_name.startswith(_NODE):
        raise BadRequest("subject common name does not begin with system:node:")


def _check_usages(requested: Requested, wanted: Collection[str]) -> None:
    """Keys that cannot encipher need not say that they do."""
    if requested.usages not in (frozenset(wanted), frozenset(wanted) - {"key encipherment"}):
        raise BadRequest(f"usages did not match [{' '.join(wanted)}]")
