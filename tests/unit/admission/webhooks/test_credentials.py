"""Which credentials a webhook is shown."""

from __future__ import annotations

import base64
from pathlib import Path

import pytest

from pilothouse.admission.configuration import ConfigurationError
from pilothouse.admission.webhooks.credentials import CredentialBook

KUBECONFIG = """
apiVersion: v1
kind: Config
current-context: main
contexts:
- {name: main, context: {user: fallback}}
users:
- {name: "hook.ns.svc:8443", user: {token: exact}}
- {name: "*.ns.svc", user: {token: wild}}
- {name: "plain.example.com", user: {username: u, password: p}}
- {name: fallback, user: {tokenFile: token}}
"""


@pytest.fixture
def book(tmp_path: Path) -> CredentialBook:
    (tmp_path / "config").write_text(KUBECONFIG)
    (tmp_path / "token").write_text("from-file\n")
    return CredentialBook(str(tmp_path / "config"))


@pytest.mark.parametrize(
    ("target", "header"),
    [
        ("hook.ns.svc:8443", "Bearer exact"),
        ("other.ns.svc:443", "Bearer wild"),
        ("plain.example.com:443", "Basic " + base64.b64encode(b"u:p").decode()),
        ("plain.example.com:8443", "Bearer from-file"),
        ("elsewhere:443", "Bearer from-file"),
    ],
)
def test_the_nearest_name_wins(book: CredentialBook, target: str, header: str) -> None:
    assert book.find(target).headers == {"Authorization": header}


def test_nothing_without_a_kubeconfig() -> None:
    assert CredentialBook.configured(None).find("a:443").headers == {}


def test_certificates_in_place(tmp_path: Path) -> None:
    encoded = base64.b64encode(b"pem").decode()
    user = f"{{client-certificate-data: {encoded}, client-key-data: {encoded}}}"
    (tmp_path / "config").write_text(f'users:\n- {{name: "*", user: {user}}}\n')
    book = CredentialBook(str(tmp_path / "config"))
    found = book.find("a:443")
    assert Path(found.cert_file).read_bytes() == Path(found.key_file).read_bytes() == b"pem"
    book.close()
    assert not Path(found.key_file).exists()


def test_the_section_of_the_configuration(tmp_path: Path) -> None:
    raw = {
        "apiVersion": "apiserver.config.k8s.io/v1",
        "kind": "WebhookAdmissionConfiguration",
        "kubeConfigFile": str(tmp_path / "none"),
    }
    with pytest.raises(ConfigurationError, match="No such file"):
        CredentialBook.configured(raw)
    with pytest.raises(ConfigurationError, match="no kind"):
        CredentialBook.configured({"apiVersion": "v1", "kind": "Pod"})
