"""Why bytes are no signing request."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pilothouse.apis.certificates.asn1 import describe_error

REST = (
    "{optional:false explicit:false application:false private:false defaultValue:<nil> tag:<nil> stringType:0 "
    "timeType:0 set:false omitEmpty:false}"
)


@pytest.mark.parametrize(
    ("data", "error"),
    [
        (b"", "asn1: syntax error: sequence truncated"),
        (b"\x30", "asn1: syntax error: truncated tag or length"),
        (b"\x30\x00", "asn1: syntax error: sequence truncated"),
        (b"\x30\x05\x30", "asn1: syntax error: data truncated"),
        (b"\x30\x80", "asn1: syntax error: indefinite length found (not DER)"),
        (b"\x30\x81\x05", "asn1: structure error: non-minimal length"),
        (b"\x30\x82\x00\x85", "asn1: structure error: superfluous leading zeros in length"),
        (b"\x30\x84\x80\x00\x00\x00", "asn1: structure error: length too large"),
        (
            b"not a request",
            "asn1: structure error: tags don't match (16 vs {class:1 tag:14 length:111 isCompound:true}) "
            f"{REST} certificateRequest @2",
        ),
        (
            b"\x30\x02\x02\x00",
            "asn1: structure error: tags don't match (16 vs {class:0 tag:2 length:0 isCompound:false}) "
            f"{REST} tbsCertificateRequest @2",
        ),
        (
            # How a certificate begins.
            b"\x30\x07\x30\x05\xa0\x03\x02\x01\x02",
            f"asn1: structure error: tags don't match (2 vs {{class:2 tag:0 length:3 isCompound:true}}) {REST} int @2",
        ),
        (b"\x30\x05\x30\x03\x02\x01\x00\x00", "asn1: syntax error: trailing data"),
        (b"\x30\x03\x30\x01\x02", "asn1: syntax error: truncated tag or length"),
        (b"\x3f\x80\x01\x00", "asn1: syntax error: integer is not minimally encoded"),
        (b"\x3f\x1e\x00", "asn1: syntax error: non-minimal tag"),
        (b"\x3f\xff", "asn1: syntax error: truncated base 128 integer"),
        (b"\x3f\xff\xff\xff\xff\xff\x00", "asn1: structure error: base 128 integer too large"),
    ],
)
def test_errors(data: bytes, error: str) -> None:
    assert describe_error(data) == error


@given(st.binary())
def test_there_is_a_reason_for_everything(data: bytes) -> None:
    assert describe_error(data).startswith("asn1: s")
