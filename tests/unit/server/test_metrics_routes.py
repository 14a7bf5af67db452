"""Which form of metrics a client gets."""

from __future__ import annotations

import pytest

from pilothouse.server.metrics_routes import negotiated, takes_gzip

TEXT = "text/plain; version=0.0.4; charset=utf-8; escaping="
PROTO = "application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding="
MESSAGES = "application/vnd.google.protobuf; proto=io.prometheus.client.MetricFamily; encoding="


@pytest.mark.parametrize(
    ("accept", "expected"),
    [
        ("", f"{TEXT}underscores"),
        ("application/json", f"{TEXT}underscores"),
        ("*/*;escaping=dots", f"{TEXT}dots"),
        ("text/plain;escaping=allow-utf-8", f"{TEXT}allow-utf-8"),
        ("text/plain;escaping=none", f"{TEXT}underscores"),
        ("application/openmetrics-text;version=1.0.0", f"{TEXT}underscores"),
        (f"{PROTO}delimited", f"{MESSAGES}delimited; escaping=underscores"),
        (f"{PROTO}delimited;escaping=values", f"{MESSAGES}delimited; escaping=values"),
        (f"{PROTO}text", f"{MESSAGES}text; escaping=underscores"),
        (f"{PROTO}compact-text", f"{MESSAGES}compact-text; escaping=underscores"),
        (f"{PROTO}other", f"{TEXT}underscores"),
        ("application/vnd.google.protobuf;proto=other;encoding=delimited", f"{TEXT}underscores"),
        (f"text/plain;q=0.4,{PROTO}delimited;q=0.5", f"{MESSAGES}delimited; escaping=underscores"),
        (f"text/plain;q=0.6,{PROTO}delimited;q=0.5", f"{TEXT}underscores"),
        (f"text/plain;version=1.0.0;q=0.6,{PROTO}delimited;q=0.5", f"{MESSAGES}delimited; escaping=underscores"),
        ("a;escaping==dots,b;escaping,;,", f"{TEXT}underscores"),
        ("text/plain," * 100_000, f"{TEXT}underscores"),
    ],
)
def test_accepted_forms(accept: str, expected: str) -> None:
    assert negotiated(accept).content_type.decode() == expected


@pytest.mark.parametrize(
    ("accepted", "expected"),
    [
        ("", False),
        ("gzip", True),
        ("gzip, deflate", True),
        ("gzip;q=0", False),
        ("gzip, identity", False),
        ("identity;q=0.5, gzip", True),
        ("*", False),
        ("zstd", False),
        ("gzip;q=x", False),
    ],
)
def test_compression(accepted: str, expected: bool) -> None:
    assert takes_gzip(accepted) is expected
