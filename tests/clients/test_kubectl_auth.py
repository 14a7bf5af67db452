"""The real kubectl and who may do what: questions, tokens, impersonation, certificates."""

from __future__ import annotations

import base64
import json
import subprocess

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID


@pytest.fixture
def namespace(server, request):
    return server.namespace(f"kubectl-auth-{abs(hash(request.node.name)) % 100_000}")


def test_whoami(kubectl):
    shown = kubectl("auth", "whoami")
    assert "kubernetes-admin" in shown
    assert "[system:masters system:authenticated]" in shown


def test_can_i(kubectl, namespace):
    assert kubectl("auth", "can-i", "delete", "nodes").strip().endswith("yes")
    kubectl("-n", namespace, "create", "role", "reader", "--verb=get,list", "--resource=pods")
    kubectl("-n", namespace, "create", "rolebinding", "reader", "--role=reader", "--user=jane")
    assert kubectl("-n", namespace, "auth", "can-i", "list", "pods", "--as", "jane").strip() == "yes"
    words = [kubectl.path, "--kubeconfig", str(kubectl.kubeconfig), "-n", namespace, "--as", "jane"]
    denied = subprocess.run([*words, "auth", "can-i", "create", "pods"], capture_output=True, text=True, check=False)
    assert (denied.returncode, denied.stdout.strip()) == (1, "no")
    listed = kubectl("-n", namespace, "auth", "can-i", "--list", "--as", "jane")
    assert [line.split() for line in listed.splitlines() if line.startswith("pods ")] == [
        ["pods", "[]", "[]", "[get", "list]"]
    ]
    assert "selfsubjectaccessreviews.authorization.k8s.io" in listed


def test_as_group(kubectl):
    assert "forbidden" in kubectl("get", "nodes", "--as", "jane", fails=True)
    assert kubectl("get", "nodes", "-o", "name", "--as", "jane", "--as-group", "system:masters") == ""
    assert "jane" in kubectl("auth", "whoami", "--as", "jane", "--as-uid", "7", "--as-group", "devs")


def test_create_token_and_use_it(kubectl, server, namespace):
    token = kubectl("-n", namespace, "create", "token", "default", "--duration=20m").strip()
    claims = json.loads(base64.urlsafe_b64decode(token.split(".")[1] + "=="))
    assert claims["sub"] == f"system:serviceaccount:{namespace}:default"
    assert claims["exp"] - claims["iat"] == 1200
    words = [kubectl.path, "--server", server.url, "--certificate-authority", str(server.data / "pki" / "ca.crt")]
    words += [
        "--token",
        token,
        "--kubeconfig",
        "/dev/null",
        "auth",
        "whoami",
        "-o",
        "jsonpath={.status.userInfo.username}",
    ]
    shown = subprocess.run(words, capture_output=True, text=True, check=False)
    assert shown.stdout == f"system:serviceaccount:{namespace}:default", shown.stderr


def test_approve_and_deny_certificate_requests(kubectl, tmp_path):
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "jane")])
    request = x509.CertificateSigningRequestBuilder().subject_name(subject).sign(key, hashes.SHA256())
    pem = base64.b64encode(request.public_bytes(serialization.Encoding.PEM)).decode()
    for name, word, state in (("to-approve", "approve", "Approved"), ("to-deny", "deny", "Denied")):
        manifest = {
            "apiVersion": "certificates.k8s.io/v1",
            "kind": "CertificateSigningRequest",
            "metadata": {"name": name},
            "spec": {"request": pem, "signerName": "example.com/test", "usages": ["client auth"]},
        }
        kubectl("apply", "-f", "-", stdin=json.dumps(manifest))
        kubectl("certificate", word, name)
        assert f" {state}" in kubectl("get", "csr", name, "--no-headers")
    refused = kubectl("certificate", "approve", "to-approve", "--as", "jane", fails=True)
    assert "forbidden" in refused


def test_reconcile_roles(kubectl, namespace):
    manifest = {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "Role",
        "metadata": {"name": "made", "namespace": namespace},
        "rules": [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}],
    }
    assert "reconciled" in kubectl("auth", "reconcile", "-f", "-", stdin=json.dumps(manifest))
