"""The certificates and keys of a server that was given none, made once and kept in ``<data-dir>/pki``.

    ca.crt, ca.key                  our authority: signs the serving certificate and the administrator's
    apiserver.crt, .key             the serving certificate, for every name and address clients use
    admin.crt, .key                 O=system:masters, CN=kubernetes-admin
    sa.key, sa.pub                  sign and check service account tokens
    front-proxy-ca.*, -client.*     what aggregated servers trust, and what we show them

All keys are ECDSA P-256. The folder is 0700, keys are 0600, every file appears whole or not at all, and one process
works here at a time. A certificate is issued again when its end is near (``renew_at`` in ``pki.json``; setting that to
0 forces it), when it misses a name, or when it does not fit its key or its authority; everything else is kept.
Authorities are renewed with the keys they have, so that what they signed stays good; an authority or signing key that
is lost or damaged is never replaced, as every kubeconfig and token would die of it. ``pki.json`` records what was made,
so that a restart with nothing to do needs neither ``cryptography`` nor any parsing.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

RENEW_BEFORE_SECONDS = 90 * 86400


class UnusablePki(Exception):
    """What cannot be replaced without breaking others is lost or damaged; the message says what to do."""


@dataclass(frozen=True)
class Pki:
    """Where each file is."""

    directory: Path

    @property
    def ca_cert(self) -> Path:
        return self.directory / "ca.crt"

    @property
    def ca_key(self) -> Path:
        return self.directory / "ca.key"

    @property
    def serving_cert(self) -> Path:
        return self.directory / "apiserver.crt"

    @property
    def serving_key(self) -> Path:
        return self.directory / "apiserver.key"

    @property
    def admin_cert(self) -> Path:
        return self.directory / "admin.crt"

    @property
    def admin_key(self) -> Path:
        return self.directory / "admin.key"

    @property
    def service_account_key(self) -> Path:
        return self.directory / "sa.key"

    @property
    def service_account_public_key(self) -> Path:
        return self.directory / "sa.pub"

    @property
    def front_proxy_ca_cert(self) -> Path:
        return self.directory / "front-proxy-ca.crt"

    @property
    def front_proxy_ca_key(self) -> Path:
        return self.directory / "front-proxy-ca.key"

    @property
    def front_proxy_client_cert(self) -> Path:
        return self.directory / "front-proxy-client.crt"

    @property
    def front_proxy_client_key(self) -> Path:
        return self.directory / "front-proxy-client.key"

    @property
    def record(self) -> Path:
        return self.directory / "pki.json"

    def renew_at(self) -> float | None:
        """When certificates are to be issued again, in seconds since 1970, as far as that was recorded."""
        lasting = self.lasting()
        return None if lasting is None else lasting[1]

    def lasting(self) -> tuple[float, float] | None:
        """From when on certificates are good, and when they are to be issued again, as far as that was recorded.

        Those that were made while the clock was wrong begin in the future once it is right.
        """
        try:
            record = json.loads(self.record.read_bytes())
            return float(record.get("good_from", 0.0)), float(record["renew_at"])
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            return None

    def files(self) -> list[Path]:
        """Every file a complete folder has, beside the record."""
        return [
            self.ca_cert,
            self.ca_key,
            self.serving_cert,
            self.serving_key,
            self.admin_cert,
            self.admin_key,
            self.service_account_key,
            self.service_account_public_key,
            self.front_proxy_ca_cert,
            self.front_proxy_ca_key,
            self.front_proxy_client_cert,
            self.front_proxy_client_key,
        ]


def ensure_pki(
    data_dir: Path,
    *,
    dns_names: Sequence[str],
    ip_addresses: Sequence[str],
    now: Callable[[], float] = time.time,
    meanwhile: Callable[[], None] | None = None,
) -> Pki:
    """Make what is missing, about to expire or no longer right; the names are those of the serving certificate.

    Raises UnusablePki instead of replacing an authority or a signing key that others rely on. ``meanwhile`` comes from
    who has no threads yet and something else to do: if there is something to make, a process of its own makes it while
    that is done, and what it imports for it is no burden to this one.
    """
    pki = Pki(Path(data_dir).absolute() / "pki")
    pki.directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    pki.directory.chmod(0o700)
    names = sorted({*dns_names, *ip_addresses})
    with _locked(pki.directory / ".lock"):
        _close_keys(pki)
        if _record_holds(pki, names, now()):
            return pki

        def issue() -> None:
            from pilothouse.credentials.issuing import issue_all  # imports cryptography, which a restart does not need

            due = pki.renew_at()
            begin, end = issue_all(pki, dns_names, ip_addresses, now(), renew=due is not None and due <= now())
            _write_record(pki, names, begin, end)

        # Whatever went wrong aside goes wrong here again, and is told.
        if meanwhile is None or not _done_aside(issue, meanwhile):
            issue()
    return pki


def _done_aside(work: Callable[[], None], meanwhile: Callable[[], None]) -> bool:
    """Do something in a process of its own, and something else in this one; whether the former went well."""
    if threading.active_count() > 1 or not hasattr(os, "fork"):
        return False
    child = os.fork()
    if not child:
        code = 1
        try:
            work()
            code = 0
        finally:
            os._exit(code)  # nothing else that this process was to do at its end is the child's to do
    try:
        meanwhile()
    finally:
        _, status = os.waitpid(child, 0)
    return status == 0


def ensure_serving_pair(pki: Pki, cert: Path, key: Path, dns_names: Sequence[str], ip_addresses: Sequence[str]) -> None:
    """A serving certificate outside our folder (``--cert-dir``): made when missing, never touched when there."""
    if cert.exists() and key.exists():
        return
    cert.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    from pilothouse.credentials.issuing import issue_serving  # imports cryptography

    issue_serving(pki, cert, key, dns_names, ip_addresses, time.time())


def write_atomically(path: Path, data: bytes, mode: int) -> None:
    """Replace a file whole: its new content is on disk before it takes the name."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, mode)
    try:
        with os.fdopen(descriptor, "wb") as file:
            os.fchmod(file.fileno(), mode)
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def _close_keys(pki: Pki) -> None:
    for path in pki.files():
        if path.suffix == ".key" and path.exists():
            path.chmod(0o600)


def _record_holds(pki: Pki, names: list[str], now: float) -> bool:
    """Whether the files are those we made, for these names, and not near their end."""
    try:
        record: dict[str, Any] = json.loads(pki.record.read_bytes())
        kept = record["names"] == names and record["files"] == _digests(pki)
        return bool(kept and record.get("good_from", 0.0) <= now < record["renew_at"])
    except (OSError, ValueError, KeyError, TypeError):
        return False


def _digests(pki: Pki) -> dict[str, str]:
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in pki.files()}


def _write_record(pki: Pki, names: list[str], begin: float, end: float) -> None:
    record = {
        "names": names,
        "good_from": begin,
        "renew_at": end - RENEW_BEFORE_SECONDS,
        "files": _digests(pki),
    }
    write_atomically(pki.record, json.dumps(record, indent=1).encode() + b"\n", 0o600)
