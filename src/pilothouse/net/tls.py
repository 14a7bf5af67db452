"""Server-side TLS: contexts from certificate files, SNI, client certificates, and reloading when files change.

Client certificates are asked for and *not* judged here: like Go's `RequestClientCert`, a certificate nobody trusts
must lead to a 401 (or to another authenticator), not to a failed handshake.  Python's ssl module cannot express
that, so OpenSSL's verification step is replaced through ctypes; `verifies_itself` tells whether that was possible.
Where it is not (a Python with OpenSSL linked in statically and its names hidden), the handshake verifies against the
client CAs instead: the same clients get in, but the others see a TLS error.
"""

import _ssl
import ctypes
import logging
import os
import ssl
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from pilothouse.net.odd_certificates import unreadable
from pilothouse.net.tls_names import GROUPS, VERSIONS, openssl_ciphers

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class SniCertificate:
    """A certificate for certain server names; without names, for those it carries itself."""

    cert_file: str
    key_file: str
    names: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class TlsFiles:
    """What a server's TLS is made of."""

    cert_file: str
    key_file: str
    client_ca_files: tuple[str, ...] = ()
    sni: tuple[SniCertificate, ...] = ()
    min_version: str = "VersionTLS12"
    cipher_suites: tuple[str, ...] = ()
    protocols: tuple[str, ...] = ("h2", "http/1.1")  # offered, best first
    groups: tuple[int, ...] = ()  # key exchanges allowed, by number; none given means OpenSSL's own choice

    def paths(self) -> list[str]:
        """Every file whose change matters."""
        extra = [path for sni in self.sni for path in (sni.cert_file, sni.key_file)]
        return [self.cert_file, self.key_file, *self.client_ca_files, *extra]


class ServerTls:
    """The current context of a server; give `context` to a Listener and call `reload_if_changed` now and then."""

    def __init__(self, files: TlsFiles) -> None:
        self._files = files
        self._stamp = _stamp(files)
        self._context = build_context(files)

    def context(self) -> ssl.SSLContext:
        """The context for the next connection."""
        return self._context

    def reload_if_changed(self) -> bool:
        """Take over changed files; a broken new state is logged and the old one kept."""
        stamp = _stamp(self._files)
        if stamp == self._stamp:
            return False
        try:
            self._context = build_context(self._files)
        except (OSError, ValueError) as error:  # ssl.SSLError is an OSError
            logger.error("serving certificates not reloaded: %s", error)
            return False
        self._stamp = stamp
        return True


def _stamp(files: TlsFiles) -> list[tuple[int, int, int] | None]:
    stamps: list[tuple[int, int, int] | None] = []
    for path in files.paths():
        try:
            status = os.stat(path)
        except OSError:
            stamps.append(None)
        else:
            stamps.append((status.st_mtime_ns, status.st_size, status.st_ino))
    return stamps


def build_context(files: TlsFiles) -> ssl.SSLContext:
    """The context for connections, with SNI wired to further contexts."""
    default = _one_context(files, files.cert_file, files.key_file)
    by_name: dict[str, ssl.SSLContext] = {}
    for sni in files.sni:
        context = _one_context(files, sni.cert_file, sni.key_file)
        for name in sni.names or _names_in(sni.cert_file):
            by_name.setdefault(name.lower(), context)
    if by_name:
        default.sni_callback = _choosing_by_name(by_name)
    return default


def _one_context(files: TlsFiles, cert_file: str, key_file: str) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = VERSIONS[files.min_version]
    context.options |= ssl.OP_NO_COMPRESSION | ssl.OP_NO_RENEGOTIATION | ssl.OP_CIPHER_SERVER_PREFERENCE
    context.load_cert_chain(cert_file, key_file)
    context.set_alpn_protocols(files.protocols)
    if ciphers := openssl_ciphers(files.cipher_suites):
        context.set_ciphers(ciphers)
    for path in files.client_ca_files:
        context.load_verify_locations(path)
    context.verify_mode = ssl.CERT_OPTIONAL
    if files.groups:
        _restrict_groups(context, files.groups)
    if not _accept_any_client_certificate(context, files.client_ca_files) and not files.client_ca_files:
        context.verify_mode = ssl.CERT_NONE
    return context


def _names_in(cert_file: str) -> list[str]:
    from cryptography import x509  # a slow import that only certificates without given names need
    from cryptography.x509.oid import NameOID

    with open(cert_file, "rb") as file:
        certificate = x509.load_pem_x509_certificate(file.read())
    names = [str(attribute.value) for attribute in certificate.subject.get_attributes_for_oid(NameOID.COMMON_NAME)]
    try:
        alternatives = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except unreadable(x509.ExtensionNotFound):
        return names
    return [*names, *alternatives.get_values_for_type(x509.DNSName)]


def _choosing_by_name(by_name: dict[str, ssl.SSLContext]) -> Any:
    def choose(connection: ssl.SSLObject, name: str | None, _: ssl.SSLContext) -> None:
        if not name:
            return
        name = name.lower().rstrip(".")
        found = by_name.get(name) or by_name.get("*." + name.partition(".")[2])
        if found is not None:
            connection.context = found

    return choose


# What the module ssl has no way to set

_SET_GROUPS_LIST: Final = 92

_VERIFY = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)
_accept = _VERIFY(lambda store_context, argument: 1)  # must outlive every context


def _openssl() -> ctypes.CDLL | None:
    if sys.implementation.name != "cpython" or not getattr(_ssl, "__file__", None):
        return None
    try:
        library = ctypes.CDLL(_ssl.__file__)
        library.SSL_CTX_get_verify_mode.argtypes = [ctypes.c_void_p]
        library.SSL_CTX_set_cert_verify_callback.argtypes = [ctypes.c_void_p, _VERIFY, ctypes.c_void_p]
        library.SSL_CTX_set_cert_verify_callback.restype = None
        library.SSL_load_client_CA_file.argtypes = [ctypes.c_char_p]
        library.SSL_load_client_CA_file.restype = ctypes.c_void_p
        library.SSL_add_file_cert_subjects_to_stack.argtypes = [ctypes.c_void_p, ctypes.c_char_p]
        library.SSL_CTX_set_client_CA_list.argtypes = [ctypes.c_void_p, ctypes.c_void_p]
        library.SSL_CTX_set_client_CA_list.restype = None
        library.SSL_CTX_ctrl.argtypes = [ctypes.c_void_p, ctypes.c_int, ctypes.c_long, ctypes.c_char_p]
        library.SSL_CTX_ctrl.restype = ctypes.c_long
        library.ERR_clear_error.restype = None
    except (OSError, AttributeError):
        return None
    return library


_library = _openssl()


def verifies_itself() -> bool:
    """Whether an unknown client certificate fails the handshake (True) or is passed on to the handlers (False)."""
    return _library is None


class _ContextLayout(ctypes.Structure):
    """The beginning of CPython's PySSLContext object, unchanged since Python 3.2."""

    _fields_ = (("head", ctypes.c_byte * object.__basicsize__), ("ctx", ctypes.c_void_p))


def _accept_any_client_certificate(context: ssl.SSLContext, ca_files: Sequence[str]) -> bool:
    if _library is None:
        return False
    pointer = _ContextLayout.from_address(id(context)).ctx
    if _library.SSL_CTX_get_verify_mode(pointer) != 1:  # SSL_VERIFY_PEER: we are looking at the right thing
        return False
    _library.SSL_CTX_set_cert_verify_callback(pointer, _accept, None)
    _announce_authorities(pointer, ca_files)
    return True


def _restrict_groups(context: ssl.SSLContext, numbers: Sequence[int]) -> None:
    """Allow these key exchanges alone, as far as OpenSSL has them. Raises OSError where that is none, or impossible."""
    pointer = _ContextLayout.from_address(id(context)).ctx
    if _library is None or _library.SSL_CTX_get_verify_mode(pointer) != 1:
        raise OSError("--tls-curve-preferences cannot be followed with this build of Python; leave it out")
    known = [GROUPS[number] for number in numbers if _set_groups(_library, pointer, GROUPS[number])]
    if not known:
        raise OSError(f"--tls-curve-preferences: {ssl.OPENSSL_VERSION} has none of them")
    _set_groups(_library, pointer, ":".join(known))


def _set_groups(library: ctypes.CDLL, pointer: int, names: str) -> bool:
    done: int = library.SSL_CTX_ctrl(pointer, _SET_GROUPS_LIST, 0, names.encode())
    library.ERR_clear_error()  # what OpenSSL does not know is no error of the next connection
    return done == 1


def _announce_authorities(pointer: int, ca_files: Sequence[str]) -> None:
    # A client that holds no certificate of these authorities then sends none, and is anonymous rather than refused.
    if _library is None or not ca_files:
        return
    first, *others = (path.encode() for path in ca_files)
    names = _library.SSL_load_client_CA_file(first)
    if not names:
        return
    for path in others:
        _library.SSL_add_file_cert_subjects_to_stack(names, path)
    _library.SSL_CTX_set_client_CA_list(pointer, names)
