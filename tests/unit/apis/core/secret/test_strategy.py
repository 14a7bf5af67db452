"""Secrets."""

from __future__ import annotations

import base64
from typing import Any

import pytest


def b64(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


def test_string_data_is_folded_in(kind: Any) -> None:
    secret = kind("v1", "secrets").create({"data": {"a": b64("1"), "b": b64("2")}, "stringData": {"b": "ü"}})
    assert secret["data"] == {"a": b64("1"), "b": b64("ü")}
    assert "stringData" not in secret
    assert secret["type"] == "Opaque"


@pytest.mark.parametrize(
    ("body", "wanted"),
    [
        ({"type": "kubernetes.io/dockerconfigjson"}, ["data[.dockerconfigjson]: Required value"]),
        (
            {"type": "kubernetes.io/dockercfg", "stringData": {".dockercfg": "[]"}},
            [
                'data[.dockercfg]: Invalid value: "<secret contents redacted>": '
                "json: cannot unmarshal array into Go value of type map[string]interface {}"
            ],
        ),
        (
            {"type": "kubernetes.io/dockercfg", "stringData": {".dockercfg": "{x"}},
            [
                'data[.dockercfg]: Invalid value: "<secret contents redacted>": '
                "invalid character 'x' looking for beginning of object key string"
            ],
        ),
        ({"type": "kubernetes.io/dockercfg", "stringData": {".dockercfg": "{}"}}, []),
        (
            {"type": "kubernetes.io/basic-auth"},
            ["data[username]: Required value", "data[password]: Required value"],
        ),
        ({"type": "kubernetes.io/basic-auth", "stringData": {"password": ""}}, []),
        ({"type": "kubernetes.io/ssh-auth", "data": {"ssh-privatekey": ""}}, ["data[ssh-privatekey]: Required value"]),
        ({"type": "kubernetes.io/tls", "data": {"tls.crt": ""}}, ["data[tls.key]: Required value"]),
        (
            {"type": "kubernetes.io/service-account-token"},
            ["metadata.annotations[kubernetes.io/service-account.name]: Required value"],
        ),
        ({"type": "golden.invalid/x"}, []),
    ],
)
def test_secret_types(kind: Any, body: dict[str, Any], wanted: list[str]) -> None:
    assert kind("v1", "secrets").errors(body) == wanted


def test_secret_type_stays(kind: Any) -> None:
    secrets = kind("v1", "secrets")
    stored = secrets.create({"type": "a/b"})
    assert secrets.errors({"type": "c/d"}, stored) == ['type: Invalid value: "c/d": field is immutable']
    assert secrets.strategy.fields(stored) == {"type": "a/b"}
    assert secrets.strategy.convert_field("type", "x") == ("type", "x")


@pytest.mark.parametrize(
    ("certificate", "key", "why"),
    [
        ("", "", "tls: failed to find any PEM data in certificate input"),
        (
            "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n",
            "",
            "tls: failed to find certificate PEM data in certificate input, but did find a private key; "
            "PEM inputs may have been switched",
        ),
        (
            "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n",
            "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n",
            "tls: found a certificate rather than a key in the PEM for the private key",
        ),
    ],
)
def test_tls_secrets_warn(kind: Any, certificate: str, key: str, why: str) -> None:
    secrets = kind("v1", "secrets")
    secrets.create({"type": "kubernetes.io/tls", "stringData": {"tls.crt": certificate, "tls.key": key}})
    assert secrets.warnings == [why]
