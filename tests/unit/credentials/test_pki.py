import json
import os
import ssl
import stat
import subprocess
import sys
import time

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID
from cryptography.x509.verification import PolicyBuilder, Store

from pilothouse.credentials.pki import RENEW_BEFORE_SECONDS, Pki, UnusablePki, ensure_pki

DNS = ["localhost", "kubernetes.default.svc"]
IPS = ["127.0.0.1", "::1"]
DAY = 86400


def make(data_dir, dns=DNS, ips=IPS, after=0.0):
    return ensure_pki(data_dir, dns_names=dns, ip_addresses=ips, now=lambda: time.time() + after)


def contents(pki: Pki):
    return {path.name: path.read_bytes() for path in pki.files()}


def load(path):
    return x509.load_pem_x509_certificate(path.read_bytes())


def changed(before, after):
    return sorted(name for name in before if before[name] != after[name])


def test_the_serving_certificate_is_good_for_its_names(tmp_path):
    pki = make(tmp_path)
    verifier = PolicyBuilder().store(Store([load(pki.ca_cert)]))
    for name in (x509.DNSName("localhost"), x509.DNSName("kubernetes.default.svc")):
        verifier.build_server_verifier(name).verify(load(pki.serving_cert), [])


def test_the_administrator_is_a_master_and_a_client(tmp_path):
    pki = make(tmp_path)
    admin = load(pki.admin_cert)
    admin.verify_directly_issued_by(load(pki.ca_cert))
    assert admin.subject.get_attributes_for_oid(NameOID.ORGANIZATION_NAME)[0].value == "system:masters"
    assert admin.subject.get_attributes_for_oid(NameOID.COMMON_NAME)[0].value == "kubernetes-admin"
    usage = admin.extensions.get_extension_for_class(x509.ExtendedKeyUsage).value
    assert list(usage) == [ExtendedKeyUsageOID.CLIENT_AUTH]


def test_the_front_proxy_has_an_authority_of_its_own(tmp_path):
    pki = make(tmp_path)
    proxy = load(pki.front_proxy_client_cert)
    proxy.verify_directly_issued_by(load(pki.front_proxy_ca_cert))
    with pytest.raises(ValueError, match="Issuer"):
        proxy.verify_directly_issued_by(load(pki.ca_cert))


def test_keys_are_p256_and_service_account_keys_belong_together(tmp_path):
    pki = make(tmp_path)
    for path in pki.files():
        if path.suffix == ".key":
            key = serialization.load_pem_private_key(path.read_bytes(), None)
            assert isinstance(key, ec.EllipticCurvePrivateKey)
            assert key.curve.name == "secp256r1"
    private = serialization.load_pem_private_key(pki.service_account_key.read_bytes(), None)
    public = serialization.load_pem_public_key(pki.service_account_public_key.read_bytes())
    assert private.public_key() == public


def test_python_can_serve_with_it(tmp_path):
    pki = make(tmp_path)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(pki.serving_cert, pki.serving_key)
    context.load_verify_locations(pki.ca_cert)


def test_private_files_are_private(tmp_path):
    old = os.umask(0)
    try:
        pki = make(tmp_path)
    finally:
        os.umask(old)
    assert stat.S_IMODE(pki.directory.stat().st_mode) == 0o700
    for path in pki.files():
        wanted = 0o600 if path.suffix == ".key" else 0o644
        assert stat.S_IMODE(path.stat().st_mode) == wanted, path.name


def test_a_second_call_keeps_every_file(tmp_path):
    pki = make(tmp_path)
    before, record = contents(pki), pki.record.stat().st_mtime_ns
    assert make(tmp_path) == pki
    assert contents(pki) == before
    assert pki.record.stat().st_mtime_ns == record


def test_a_restart_does_not_need_cryptography(tmp_path):
    make(tmp_path)
    program = (
        "import sys, pathlib; from pilothouse.credentials.pki import ensure_pki; "
        f"ensure_pki(pathlib.Path({str(tmp_path)!r}), dns_names={DNS!r}, ip_addresses={IPS!r}); "
        "sys.exit('cryptography' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0


def test_new_names_renew_only_the_serving_certificate(tmp_path):
    before = contents(make(tmp_path))
    pki = make(tmp_path, dns=[*DNS, "api.example.com"])
    assert changed(before, contents(pki)) == ["apiserver.crt", "apiserver.key"]


def test_certificates_are_renewed_before_they_end(tmp_path):
    pki = make(tmp_path)
    before = contents(pki)
    left = load(pki.serving_cert).not_valid_after_utc.timestamp() - time.time()
    assert changed(before, contents(make(tmp_path, after=left - RENEW_BEFORE_SECONDS - DAY))) == []
    after = contents(make(tmp_path, after=left - RENEW_BEFORE_SECONDS + DAY))
    assert changed(before, after) == [
        "admin.crt", "admin.key", "apiserver.crt", "apiserver.key", "front-proxy-client.crt", "front-proxy-client.key",
    ]  # fmt: skip


def test_authorities_are_renewed_with_their_keys_so_that_what_they_signed_stays_good(tmp_path):
    pki = make(tmp_path)
    before, old_admin = contents(pki), load(pki.admin_cert)
    after = contents(make(tmp_path, after=3650 * DAY))
    assert set(before) - set(changed(before, after)) == {"sa.key", "sa.pub", "ca.key", "front-proxy-ca.key"}
    old_admin.verify_directly_issued_by(load(pki.ca_cert))


def test_renewal_can_be_forced_in_the_record(tmp_path):
    pki = make(tmp_path)
    before = contents(pki)
    pki.record.write_text(json.dumps({**json.loads(pki.record.read_text()), "renew_at": 0}))
    assert changed(before, contents(make(tmp_path))) == [
        "admin.crt", "admin.key", "apiserver.crt", "apiserver.key", "front-proxy-client.crt", "front-proxy-client.key",
    ]  # fmt: skip
    assert pki.renew_at() > time.time()


@pytest.mark.parametrize(
    ("name", "damage", "said"),
    [
        ("ca.key", None, r"ca\.key missing from .*pki.*kubeconfigs"),
        ("ca.key", b"not a key", r"ca\.crt and ca\.key do not fit"),
        ("ca.crt", None, r"ca\.crt missing"),
        ("front-proxy-ca.key", None, r"front-proxy-ca\.key missing"),
        ("sa.key", b"not a key", r"sa\.pub and sa\.key do not fit.*service account tokens"),
        ("sa.key", None, r"sa\.key missing"),
    ],
)
def test_what_others_rely_on_is_never_replaced(tmp_path, name, damage, said):
    pki = make(tmp_path)
    if damage is None:
        (pki.directory / name).unlink()
    else:
        (pki.directory / name).write_bytes(damage)
    left = {path.name: path.read_bytes() for path in pki.files() if path.exists()}
    with pytest.raises(UnusablePki, match=said) as refusal:
        make(tmp_path)
    assert "Put the files back from a backup" in str(refusal.value)
    assert {path.name: path.read_bytes() for path in pki.files() if path.exists()} == left


@pytest.mark.parametrize(
    ("name", "damage", "renewed"),
    [
        ("apiserver.key", b"not a key", ["apiserver.crt", "apiserver.key"]),
        ("apiserver.crt", b"", ["apiserver.crt", "apiserver.key"]),
        ("sa.pub", b"other", []),
        ("admin.crt", None, ["admin.crt", "admin.key"]),
    ],
)
def test_damage_is_repaired(tmp_path, name, damage, renewed):
    pki = make(tmp_path)
    before = contents(pki)
    if damage is None:
        (pki.directory / name).unlink()
    else:
        (pki.directory / name).write_bytes(damage)
    assert changed(before, contents(make(tmp_path))) == renewed


def test_another_authority_on_disk_signs_the_rest_again(tmp_path):
    pki, other = make(tmp_path / "a"), make(tmp_path / "b")
    pki.ca_cert.write_bytes(other.ca_cert.read_bytes())
    pki.ca_key.write_bytes(other.ca_key.read_bytes())
    make(tmp_path / "a")
    load(pki.serving_cert).verify_directly_issued_by(load(other.ca_cert))


@pytest.mark.parametrize("record", [b"", b"[]", b"{}", b'{"names": 1}'])
def test_a_broken_record_is_only_slower(tmp_path, record):
    pki = make(tmp_path)
    before = contents(pki)
    pki.record.write_bytes(record)
    make(tmp_path)
    assert contents(pki) == before
    assert json.loads(pki.record.read_bytes())["names"] == sorted([*DNS, *IPS])


def test_a_key_that_others_can_read_is_closed_again(tmp_path):
    pki = make(tmp_path)
    for path in (pki.serving_key, pki.ca_key, pki.service_account_key):
        path.chmod(0o644)
    make(tmp_path)
    for path in (pki.serving_key, pki.ca_key, pki.service_account_key):
        assert stat.S_IMODE(path.stat().st_mode) == 0o600, path.name


def test_two_processes_at_once_agree(tmp_path):
    program = (
        "import pathlib; from pilothouse.credentials.pki import ensure_pki; "
        f"ensure_pki(pathlib.Path({str(tmp_path)!r}), dns_names={DNS!r}, ip_addresses={IPS!r})"
    )
    processes = [subprocess.Popen([sys.executable, "-c", program]) for _ in range(3)]
    assert [process.wait() for process in processes] == [0, 0, 0]
    pki = Pki(tmp_path / "pki")
    load(pki.serving_cert).verify_directly_issued_by(load(pki.ca_cert))
    assert not list(pki.directory.glob(".*.[0-9]*"))


def run_alone(code, folder):
    """In a process without threads, as the command begins."""
    done = subprocess.run([sys.executable, "-c", code, str(folder)], check=True, capture_output=True, text=True)
    return done.stdout


ASIDE = """
import sys
from pathlib import Path
from pilothouse.credentials.pki import UnusablePki, ensure_pki
try:
    ensure_pki(Path(sys.argv[1]), dns_names=["localhost"], ip_addresses=[], meanwhile=lambda: print("meanwhile"))
except UnusablePki as problem:
    print(problem)
print("cryptography" in sys.modules)
"""


def test_who_has_something_else_to_do_meanwhile_imports_nothing_for_it(tmp_path):
    assert run_alone(ASIDE, tmp_path) == "meanwhile\nFalse\n"
    pki = Pki(tmp_path / "pki")
    load(pki.serving_cert).verify_directly_issued_by(load(pki.ca_cert))
    made = contents(pki)
    assert run_alone(ASIDE, tmp_path) == "False\n"
    assert contents(pki) == made


def test_what_goes_wrong_meanwhile_is_told(tmp_path):
    make(tmp_path)
    (tmp_path / "pki" / "ca.key").unlink()
    assert "ca.key missing from" in run_alone(ASIDE, tmp_path)
