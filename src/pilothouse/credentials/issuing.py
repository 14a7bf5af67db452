"""Issues the certificates and keys of ``pki``: what each is for, and when one on disk is still good.

Kept apart from ``pki`` because it needs ``cryptography``, whose import would cost a tenth of the time to start.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from pilothouse.credentials.pki import RENEW_BEFORE_SECONDS, Pki, UnusablePki, write_atomically

_AUTHORITY_DAYS = 3650
_LEAF_DAYS = 800
_BACKDATED = timedelta(hours=1)


@dataclass(frozen=True)
class _Pair:
    cert: x509.Certificate
    key: ec.EllipticCurvePrivateKey


def issue_all(
    pki: Pki, dns_names: Sequence[str], ip_addresses: Sequence[str], now: float, *, renew: bool = False
) -> tuple[float, float]:
    """Bring the whole folder up to date; the answer is when the last certificate begins and when the first one ends.

    With ``renew`` every certificate but those of authorities is issued again. Raises UnusablePki.
    """
    at = datetime.fromtimestamp(now, UTC)
    authority = _ensure_authority(pki.ca_cert, pki.ca_key, "pilothouse-ca", at)
    front = _ensure_authority(pki.front_proxy_ca_cert, pki.front_proxy_ca_key, "pilothouse-front-proxy-ca", at)
    alternatives = _alternatives(dns_names, ip_addresses)
    leaf = partial(_ensure_leaf, at=at, renew=renew)
    leaves = [
        leaf(pki.serving_cert, pki.serving_key, authority, _subject("kube-apiserver"), alternatives),
        leaf(pki.admin_cert, pki.admin_key, authority, _subject("kubernetes-admin", "system:masters"), None),
        leaf(pki.front_proxy_client_cert, pki.front_proxy_client_key, front, _subject("front-proxy-client"), None),
    ]
    _ensure_signing_key(pki)
    certificates = [pair.cert for pair in (authority, front, *leaves)]
    begin = max(cert.not_valid_before_utc.timestamp() for cert in certificates)
    return begin, min(cert.not_valid_after_utc.timestamp() for cert in certificates)


def issue_serving(
    pki: Pki, cert: Path, key: Path, dns_names: Sequence[str], ip_addresses: Sequence[str], now: float
) -> None:
    """One more serving certificate, signed by the folder's authority."""
    authority = _load(pki.ca_cert, pki.ca_key)
    if authority is None:
        raise OSError(f"{pki.ca_cert} and {pki.ca_key} are not a usable authority")
    at = datetime.fromtimestamp(now, UTC)
    _ensure_leaf(cert, key, authority, _subject("kube-apiserver"), _alternatives(dns_names, ip_addresses), at)


def issue_client(pki: Pki, user: str, groups: Sequence[str], seconds: float, now: float) -> tuple[bytes, bytes]:
    """A certificate and its key, both PEM, by which a client is this user in these groups. Raises OSError."""
    authority = _load(pki.ca_cert, pki.ca_key)
    if authority is None:
        raise OSError(f"{pki.ca_cert} and {pki.ca_key} are not a usable authority")
    at = datetime.fromtimestamp(now, UTC)
    pair = _issue_leaf(authority, _subject(user, *groups), None, at, timedelta(seconds=seconds))
    return pair.cert.public_bytes(serialization.Encoding.PEM), _key_pem(pair.key)


def _subject(common_name: str, *organizations: str) -> x509.Name:
    attributes = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, each) for each in organizations]
    return x509.Name([*attributes, x509.NameAttribute(NameOID.COMMON_NAME, common_name)])


def _alternatives(dns_names: Sequence[str], ip_addresses: Sequence[str]) -> x509.SubjectAlternativeName:
    names: list[x509.GeneralName] = [x509.DNSName(name) for name in dict.fromkeys(dns_names)]
    addresses = dict.fromkeys(ipaddress.ip_address(address) for address in ip_addresses)
    return x509.SubjectAlternativeName([*names, *(x509.IPAddress(address) for address in addresses)])


def _ensure_authority(cert: Path, key: Path, name: str, at: datetime) -> _Pair:
    """The authority on disk, with a new certificate for its key if the end is near, or a new one if there is none."""
    pair = _load(cert, key)
    if pair is None and (cert.exists() or key.exists()):
        raise UnusablePki(_lost(cert, key, "kubeconfigs and certificates it signed"))
    if pair is not None and _lasts(pair.cert, at):
        return pair
    private = pair.key if pair is not None else ec.generate_private_key(ec.SECP256R1())
    subject = pair.cert.subject if pair is not None else _subject(name)
    builder = _builder(subject, subject, private, at, timedelta(days=_AUTHORITY_DAYS))
    builder = builder.add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
    builder = builder.add_extension(_key_usage(authority=True), critical=True)
    identifier = x509.SubjectKeyIdentifier.from_public_key(private.public_key())
    builder = builder.add_extension(identifier, critical=False)
    pair = _Pair(builder.sign(private, hashes.SHA256()), private)
    _store(cert, key, pair)
    return pair


def _ensure_leaf(
    cert: Path,
    key: Path,
    authority: _Pair,
    subject: x509.Name,
    alternatives: x509.SubjectAlternativeName | None,
    at: datetime,
    renew: bool = False,
) -> _Pair:
    pair = None if renew else _load(cert, key)
    if pair is not None and _leaf_is_good(pair, authority, subject, alternatives, at):
        return pair
    pair = _issue_leaf(authority, subject, alternatives, at, timedelta(days=_LEAF_DAYS))
    _store(cert, key, pair)
    return pair


def _issue_leaf(
    authority: _Pair,
    subject: x509.Name,
    alternatives: x509.SubjectAlternativeName | None,
    at: datetime,
    lasting: timedelta,
) -> _Pair:
    """For a server where there are names it is reached by, for a client otherwise."""
    private = ec.generate_private_key(ec.SECP256R1())
    builder = _builder(subject, authority.cert.subject, private, at, lasting)
    builder = builder.add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
    builder = builder.add_extension(_key_usage(authority=False), critical=True)
    purpose = ExtendedKeyUsageOID.SERVER_AUTH if alternatives else ExtendedKeyUsageOID.CLIENT_AUTH
    builder = builder.add_extension(x509.ExtendedKeyUsage([purpose]), critical=False)
    issuer = x509.AuthorityKeyIdentifier.from_issuer_public_key(authority.key.public_key())
    builder = builder.add_extension(issuer, critical=False)
    if alternatives:
        builder = builder.add_extension(alternatives, critical=False)
    return _Pair(builder.sign(authority.key, hashes.SHA256()), private)


def _leaf_is_good(
    pair: _Pair,
    authority: _Pair,
    subject: x509.Name,
    alternatives: x509.SubjectAlternativeName | None,
    at: datetime,
) -> bool:
    try:
        pair.cert.verify_directly_issued_by(authority.cert)
        found = pair.cert.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except x509.ExtensionNotFound:
        found = None
    except Exception:  # any signature or encoding problem means the same: issue it again
        return False
    wanted = set(alternatives) if alternatives else set()
    return pair.cert.subject == subject and set(found or ()) == wanted and _lasts(pair.cert, at)


def _ensure_signing_key(pki: Pki) -> None:
    private = _load_key(pki.service_account_key)
    if private is None:
        if pki.service_account_key.exists() or pki.service_account_public_key.exists():
            lost = _lost(pki.service_account_public_key, pki.service_account_key, "service account tokens it signed")
            raise UnusablePki(lost)
        private = ec.generate_private_key(ec.SECP256R1())
        write_atomically(pki.service_account_key, _key_pem(private), 0o600)
    public = private.public_key().public_bytes(
        serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
    )
    if not pki.service_account_public_key.exists() or pki.service_account_public_key.read_bytes() != public:
        write_atomically(pki.service_account_public_key, public, 0o644)


def _lost(public: Path, private: Path, relied: str) -> str:
    """What to tell somebody who lost one of two files that belong together."""
    missing = [path.name for path in (public, private) if not path.exists()]
    what = f"{' and '.join(missing)} missing from" if missing else f"{public.name} and {private.name} do not fit in"
    return (
        f"{what} {private.parent}. A new pair would end all {relied}, so none is made. Put the files back from a "
        f"backup; or, to begin anew, remove {public} and {private}"
    )


def _builder(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePrivateKey, at: datetime, lasting: timedelta
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(at - _BACKDATED)
        .not_valid_after(at + lasting)
    )


def _key_usage(*, authority: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=True,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=authority,
        crl_sign=authority,
        encipher_only=False,
        decipher_only=False,
    )


def _lasts(cert: x509.Certificate, at: datetime) -> bool:
    return cert.not_valid_before_utc <= at < cert.not_valid_after_utc - timedelta(seconds=RENEW_BEFORE_SECONDS)


def _load(cert: Path, key: Path) -> _Pair | None:
    """The pair on disk, or nothing when it is missing, unreadable or does not fit together."""
    private = _load_key(key)
    try:
        certificate = x509.load_pem_x509_certificate(cert.read_bytes())
        if private is None or certificate.public_key() != private.public_key():
            return None
    except (OSError, ValueError):
        return None
    return _Pair(certificate, private)


def _load_key(path: Path) -> ec.EllipticCurvePrivateKey | None:
    try:
        key = serialization.load_pem_private_key(path.read_bytes(), password=None)
    except (OSError, ValueError, TypeError):
        return None
    return key if isinstance(key, ec.EllipticCurvePrivateKey) else None


def _store(cert: Path, key: Path, pair: _Pair) -> None:
    write_atomically(key, _key_pem(pair.key), 0o600)
    write_atomically(cert, pair.cert.public_bytes(serialization.Encoding.PEM), 0o644)


def _key_pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.TraditionalOpenSSL, serialization.NoEncryption()
    )
