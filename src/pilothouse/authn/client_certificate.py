"""Client certificates: the common name is the user, the organizations are the groups.

Verification happens once a connection: the outcome is kept there until a certificate of the chain expires or the CA
file changes. Connections that show what another has shown lately share its outcome: signatures cost half a millisecond.
"""

from __future__ import annotations

import datetime
import hashlib
import math
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from pilothouse.authn.authenticator import Authenticated, InvalidCredentials
from pilothouse.authn.certificate_chain import Authorities, InvalidCertificate, verify_chain
from pilothouse.machinery.user import CREDENTIAL_ID, User
from pilothouse.machinery.watched_file import WatchedFile
from pilothouse.net.messages import Connection, Request
from pilothouse.net.odd_certificates import unreadable

if TYPE_CHECKING:
    from cryptography import x509

_USER_ID = "1.3.6.1.4.1.57683.2"


_Outcome = tuple[float, float, "x509.Certificate | None", str | None]
"""From when on and until when it holds: a clock may be set back as well. The certificate if it is good, else what is
wrong with it."""
_MOST_OUTCOMES: Final = 1024
_KEPT_BYTES: Final = 8 * 1024


class VerifiedCertificates:
    """Verifies the certificates of connections against a CA file, remembering the outcome on the connection."""

    def __init__(
        self,
        authorities: WatchedFile[Authorities],
        clock: Callable[[], float] = time.time,
        observe: Callable[[float], object] = lambda seconds: None,
    ) -> None:
        """``observe`` is told for how many more seconds a certificate is valid, once a connection."""
        self.authorities = authorities
        self._clock, self._observe = clock, observe
        self._outcomes: dict[tuple[int, bytes, tuple[bytes, ...]], _Outcome] = {}
        """Of certificates shown lately: a client opens many connections with the same."""

    def verified(self, connection: Connection) -> x509.Certificate | None:
        """The client's certificate, None if it sent none; raises InvalidCredentials if it is not one of ours."""
        der = connection.peer_certificate
        if der is None:
            return None
        now = self._clock()
        known = self._known(connection, now)
        if known is None:
            known = (self.authorities.generation, *self._outcome(der, connection, now))
            connection.state[self] = known
        if known[4] is not None:
            raise InvalidCredentials(known[4])
        certificate: x509.Certificate | None = known[3]
        return certificate

    def recall(self, connection: Connection) -> x509.Certificate | None:
        """The client's certificate, where it was found good on this connection and still is; None elsewhere."""
        known = self._known(connection, self._clock())
        return None if known is None else known[3]

    def _known(self, connection: Connection, now: float) -> Any:
        """What was found on this connection, as long as that holds."""
        known = connection.state.get(self)
        if known is None or known[0] != self.authorities.generation or not known[1] <= now <= known[2]:
            return None
        return known

    def _outcome(self, der: bytes, connection: Connection, now: float) -> _Outcome:
        others = tuple(connection.peer_chain[1:])
        key = (self.authorities.generation, der, others)
        found = self._outcomes.get(key)
        if found is None or not found[0] <= now <= found[1]:
            found = self._verify(der, others, now)
            if len(self._outcomes) >= _MOST_OUTCOMES:
                self._outcomes.clear()
            if len(der) + sum(map(len, others)) <= _KEPT_BYTES:
                self._outcomes[key] = found
        if found[2] is not None:
            self._observe(found[2].not_valid_after_utc.timestamp() - now)
        return found

    def _verify(self, der: bytes, others: tuple[bytes, ...], now: float) -> _Outcome:
        from cryptography import x509

        try:
            leaf = x509.load_der_x509_certificate(der)
            between = [x509.load_der_x509_certificate(other) for other in others]
            moment = datetime.datetime.fromtimestamp(now, datetime.UTC)
            chain = verify_chain(leaf, between, self.authorities.value, moment)
        except unreadable():
            return -math.inf, math.inf, None, "x509: malformed certificate"
        except InvalidCertificate as error:
            # A certificate may become valid later; everything else stays as it is, but asking again is cheap enough.
            return now, now + 1.0, None, f"verifying certificate {identify(leaf)} failed: {error}"
        begin = max(each.not_valid_before_utc.timestamp() for each in chain)
        return begin, min(each.not_valid_after_utc.timestamp() for each in chain), leaf, None


class ClientCertificate:
    """Authenticates by the certificate of the connection."""

    def __init__(self, certificates: VerifiedCertificates) -> None:
        self._certificates = certificates

    async def authenticate(self, request: Request) -> Authenticated | None:
        """The identity in the certificate; None without a certificate or without a common name in it."""
        connection = request.connection
        if connection.peer_certificate is None:
            return None
        leaf = self._certificates.verified(connection)
        known = connection.state.get(self)
        if known is None or known[0] is not leaf:
            known = (leaf, None if leaf is None else identity_of(leaf))
            connection.state[self] = known
        identity: Authenticated | None = known[1]
        return identity


def identity_of(certificate: x509.Certificate) -> Authenticated | None:
    """User, groups and uid that a verified certificate names. Raises InvalidCredentials for a malformed uid."""
    from cryptography.x509.oid import NameOID

    name = ""
    groups: list[str] = []
    uids: list[Any] = []
    for attribute in certificate.subject:
        if attribute.oid == NameOID.COMMON_NAME:
            name = _text(attribute.value)
        elif attribute.oid == NameOID.ORGANIZATION_NAME:
            groups.append(_text(attribute.value))
        elif attribute.oid.dotted_string == _USER_ID:
            uids.append(attribute.value)
    if not name:
        return None
    fingerprint = hashlib.sha256(_der(certificate)).hexdigest()
    extra = {CREDENTIAL_ID: (f"X509SHA256={fingerprint}",)}
    return Authenticated(User(name, _single_uid(uids), tuple(groups), extra))


def _single_uid(uids: list[Any]) -> str:
    if any(not isinstance(uid, str) for uid in uids):
        raise InvalidCredentials("unable to parse UID into a string")
    if not uids:
        return ""
    if len(uids) > 1:
        raise InvalidCredentials(f"expected 1 UID, but found multiple: [{' '.join(uids)}]")
    if not uids[0]:
        raise InvalidCredentials("UID cannot be an empty string")
    return str(uids[0])


def common_name(certificate: x509.Certificate) -> str:
    """The (last) common name of the subject."""
    from cryptography.x509.oid import NameOID

    names = certificate.subject.get_attributes_for_oid(NameOID.COMMON_NAME)
    return _text(names[-1].value) if names else ""


def identify(certificate: x509.Certificate) -> str:
    """Serial number and key ids, as the log names a certificate."""
    from cryptography import x509

    subject_key = authority_key = b""
    try:
        for extension in certificate.extensions:
            if isinstance(extension.value, x509.SubjectKeyIdentifier):
                subject_key = extension.value.digest
            elif isinstance(extension.value, x509.AuthorityKeyIdentifier):
                authority_key = extension.value.key_identifier or b""
    except unreadable():
        pass
    skid, akid = subject_key.hex(":").upper(), authority_key.hex(":").upper()
    return f"SN={certificate.serial_number}, SKID={skid}, AKID={akid}"


def _der(certificate: x509.Certificate) -> bytes:
    from cryptography.hazmat.primitives.serialization import Encoding

    return certificate.public_bytes(Encoding.DER)


def _text(value: str | bytes) -> str:
    return value if isinstance(value, str) else value.decode("utf-8", "replace")
