from __future__ import annotations

import ssl

import pytest

from pilothouse.net.tls_names import OPENSSL_NAMES, openssl_ciphers

TWICE = ("TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305", "TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256")


@pytest.mark.parametrize(
    ("suites", "expected"),
    [
        ((), ""),
        (("TLS_AES_128_GCM_SHA256",), ""),
        (("TLS_RSA_WITH_RC4_128_SHA",), ""),
        (("TLS_AES_128_GCM_SHA256", "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256"), "ECDHE-RSA-AES128-GCM-SHA256"),
        (TWICE, "ECDHE-RSA-CHACHA20-POLY1305"),
    ],
)
def test_cipher_suites_get_their_openssl_names(suites, expected):
    assert openssl_ciphers(suites) == expected


@pytest.mark.parametrize("name", sorted({name for name in OPENSSL_NAMES.values() if name}))
def test_openssl_knows_each(name):
    ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).set_ciphers(name)
