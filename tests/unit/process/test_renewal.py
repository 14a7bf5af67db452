"""Certificates that end are renewed while the server runs."""

from __future__ import annotations

import time
from pathlib import Path

from cryptography import x509

from pilothouse.options import complete, parse, provision
from pilothouse.process.renewal import CertificateRenewal


async def test_certificates_and_kubeconfig_are_renewed_when_due(tmp_path: Path) -> None:
    options = complete(parse([f"--data-dir={tmp_path}", "--secure-port=7443"]))
    provision(options)
    pki, kubeconfig = options.derived.pki, tmp_path / "admin.kubeconfig"
    assert pki is not None
    before = pki.serving_cert.read_bytes(), kubeconfig.read_bytes()
    passed = 0.0
    renewal = CertificateRenewal(options, lambda: time.time() + passed)
    await renewal.poll()
    assert (pki.serving_cert.read_bytes(), kubeconfig.read_bytes()) == before
    due = pki.renew_at()
    assert due is not None
    passed = due - time.time() + 60
    await renewal.poll()
    assert pki.serving_cert.read_bytes() != before[0]
    assert kubeconfig.read_bytes() != before[1]
    later = pki.renew_at()
    assert later is not None
    assert later > due


async def test_certificates_that_were_made_in_a_wrong_future_are_made_again(tmp_path: Path) -> None:
    options = complete(parse([f"--data-dir={tmp_path}", "--secure-port=7443"]))
    provision(options)
    pki, years = options.derived.pki, 3 * 365 * 86400.0
    assert pki is not None
    ahead = years
    renewal = CertificateRenewal(options, lambda: time.time() + ahead)
    await renewal.poll()
    assert pki.renew_at() > time.time() + years / 2
    ahead = 0.0
    await renewal.poll()
    certificate = x509.load_pem_x509_certificate(pki.serving_cert.read_bytes())
    assert certificate.not_valid_before_utc.timestamp() < time.time()


async def test_certificates_of_others_are_not_touched(tmp_path: Path) -> None:
    options = complete(parse([f"--data-dir={tmp_path}"]))
    options.derived.pki = None
    await CertificateRenewal(options, lambda: 1e12).poll()
    assert list(tmp_path.iterdir()) == []
