"""Replays recorded conversations against a fresh server: ``golden.py [OPTIONS] [SCENARIOS] [-- ARGS OF THE REPLAY]``.

Makes the certificates, keys and tokens that the recordings expect in a temporary folder, starts the server with the
flags they were recorded with, runs ``tests/golden/golden.py replay`` and stops the server. The exit code is the
replay's. With ``--etcd`` the server runs on an etcd that is started for it, instead of the embedded store. With
``--backend`` the aggregated server of scenarios that need one (``backend.py`` among them) runs beside it.
"""

from __future__ import annotations

import ipaddress
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from launching import free_port, running_server, stop
from pilothouse.testing.etcd_process import EtcdCluster

REPLAY = Path(__file__).parent.parent / "tests" / "golden" / "golden.py"
TOKENS = """\
admintoken,admin,admin-uid,"system:masters"
alicetoken,alice,alice-uid,"devs"
bobtoken,bob,bob-uid,"ops"
node1token,system:node:node1,node1-uid,"system:nodes"
node2token,system:node:node2,node2-uid,"system:nodes"
"""


def main() -> int:
    """Replay the scenarios named on the command line."""
    own, replay = split_words(sys.argv[1:])
    scenarios = [Path(word) for word in own if not word.startswith("--")] or [REPLAY.parent]
    if not any(path.is_file() or next(path.glob("**/*.json"), None) for path in scenarios):
        print(f"No scenarios in {', '.join(map(str, scenarios))}.")
        return 0
    with ExitStack() as stack:
        directory = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="pilothouse-golden-")))
        write_files(directory)
        port = free_port()
        words = flags(directory, port)
        if "--etcd" in own:
            words.append(f"--etcd-servers={','.join(stack.enter_context(EtcdCluster()).urls)}")
        if "--backend" in own:
            stack.enter_context(backend(scenarios))
            words.append("--enable-aggregator-routing=false")  # it is behind a service without endpoints
            replay.append("--needs")
        with running_server(words, port, "admintoken", directory / "server.log") as server:
            command = [sys.executable, str(REPLAY), "replay", server.url, *map(str, scenarios), "--jobs", "4", *replay]
            return subprocess.run(command, check=False).returncode


@contextmanager
def backend(scenarios: Sequence[Path]) -> Iterator[None]:
    """The aggregated server that stands beside the scenarios."""
    program = next(found for path in scenarios for found in path.glob("**/backend.py"))
    process = subprocess.Popen([sys.executable, str(program)], stdout=subprocess.PIPE)
    try:
        if process.stdout is not None:
            process.stdout.readline()  # it says where it listens
        yield
    finally:
        stop(process)


def split_words(words: list[str]) -> tuple[list[str], list[str]]:
    """The words before and after the first ``--``."""
    if "--" not in words:
        return words, []
    at = words.index("--")
    return words[:at], words[at + 1 :]


def flags(directory: Path, port: int) -> list[str]:
    """The flags that the recordings were made with, and a data folder."""
    return [
        f"--data-dir={directory}/data",
        f"--secure-port={port}",
        "--bind-address=127.0.0.1",
        "--advertise-address=192.0.2.2",
        f"--tls-cert-file={directory}/server.crt",
        f"--tls-private-key-file={directory}/server.key",
        f"--client-ca-file={directory}/ca.crt",
        f"--token-auth-file={directory}/tokens.csv",
        f"--service-account-key-file={directory}/sa.pub",
        f"--service-account-signing-key-file={directory}/sa.key",
        "--service-account-issuer=https://kubernetes.default.svc",
        "--authorization-mode=Node,RBAC",
        "--service-cluster-ip-range=10.0.0.0/16",
        "--allow-privileged=true",
        "--enable-admission-plugins=NodeRestriction",
        f"--requestheader-client-ca-file={directory}/ca.crt",
        "--requestheader-allowed-names=aggregator",
        "--requestheader-username-headers=X-Remote-User",
        "--requestheader-group-headers=X-Remote-Group",
        "--requestheader-extra-headers-prefix=X-Remote-Extra-",
        f"--proxy-client-cert-file={directory}/proxy.crt",
        f"--proxy-client-key-file={directory}/proxy.key",
        "--enable-aggregator-routing=true",
    ]


def write_files(directory: Path) -> None:
    """One authority, three certificates, the service account keys and the tokens."""
    authority = rsa.generate_private_key(65537, 2048)
    issuer = name("ca")
    constraints = x509.BasicConstraints(ca=True, path_length=None)
    write_pair(directory / "ca", sign(issuer, issuer, authority, authority, (constraints,)), authority)
    addresses = [x509.IPAddress(ipaddress.ip_address(text)) for text in ("127.0.0.1", "10.0.0.1")]
    names = [x509.DNSName(text) for text in ("localhost", "kubernetes.default.svc")]
    client = x509.ExtendedKeyUsage([ExtendedKeyUsageOID.CLIENT_AUTH])
    wanted: list[tuple[str, x509.Name, x509.ExtensionType]] = [
        ("server", name("kube-apiserver"), x509.SubjectAlternativeName([*addresses, *names])),
        ("admin", name("admin", "system:masters"), client),
        ("proxy", name("aggregator"), client),
    ]
    for stem, subject, extension in wanted:
        key = rsa.generate_private_key(65537, 2048)
        write_pair(directory / stem, sign(subject, issuer, key, authority, (extension,)), key)
    signing = rsa.generate_private_key(65537, 2048)
    write_key(directory / "sa.key", signing)
    public = signing.public_key().public_bytes(
        serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
    )
    (directory / "sa.pub").write_bytes(public)
    (directory / "tokens.csv").write_text(TOKENS)


def name(common_name: str, organization: str = "") -> x509.Name:
    """A subject."""
    attributes = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, organization)] if organization else []
    return x509.Name([*attributes, x509.NameAttribute(NameOID.COMMON_NAME, common_name)])


def sign(
    subject: x509.Name,
    issuer: x509.Name,
    key: rsa.RSAPrivateKey,
    signer: rsa.RSAPrivateKey,
    extensions: tuple[x509.ExtensionType, ...],
) -> x509.Certificate:
    """A certificate that is good for a day."""
    now = datetime.now(UTC)
    builder = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(hours=1))
        .not_valid_after(now + timedelta(days=1))
    )
    for extension in extensions:
        builder = builder.add_extension(extension, critical=isinstance(extension, x509.BasicConstraints))
    return builder.sign(signer, hashes.SHA256())


def write_pair(stem: Path, certificate: x509.Certificate, key: rsa.RSAPrivateKey) -> None:
    """Write ``stem.crt`` and ``stem.key``."""
    stem.with_suffix(".crt").write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    write_key(stem.with_suffix(".key"), key)


def write_key(path: Path, key: rsa.RSAPrivateKey) -> None:
    """Write a private key for its owner only."""
    pem = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.TraditionalOpenSSL, serialization.NoEncryption()
    )
    path.touch(mode=0o600)
    path.write_bytes(pem)


if __name__ == "__main__":
    sys.exit(main())
