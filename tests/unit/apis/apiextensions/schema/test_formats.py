"""String formats, as strfmt reads them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pilothouse.apis.apiextensions.schema import formats

EXAMPLES = {
    "date": (["2024-02-29", "2025-12-31"], ["2025-02-29", "2025-13-01", "25-01-01", "2025-1-1"]),
    "date-time": (
        ["2024-01-02T03:04:05Z", "2024-01-02t03:04:05.5+01:00"],
        ["2024-01-02 03:04:05Z", "2024-01-02T24:00:00Z", "x"],
    ),
    "duration": (["1h30m", "5s", "3 days", "2 weeks"], ["", "x", "5"]),
    "ipv4": (["1.2.3.4", "01.2.3.4"], ["1.2.3", "::1", "1.2.3.256"]),
    "ipv6": (["::1", "fe80::1"], ["1.2.3.4", "::g"]),
    "cidr": (["10.0.0.0/8", "fd00::/8"], ["10.0.0.0", "10.0.0.0/33"]),
    "mac": (["01:23:45:67:89:ab", "0123.4567.89ab", "01-23-45-67-89-AB"], ["01:23:45:67:89", "01:23:45:67:89:zz"]),
    "uuid": (["123e4567-e89b-12d3-a456-426614174000", "123E4567E89B12D3A456426614174000"], ["123e4567"]),
    "uuid4": (["123e4567-e89b-42d3-a456-426614174000"], ["123e4567-e89b-12d3-a456-426614174000"]),
    "hostname": (["example.com", "a", "a-b.example.org"], ["-a", "a_b", "x" * 300]),
    "email": (["a@b.example", "Ann <ann@example.org>"], ["a", "a@", "@b", "a b@c"]),
    "uri": (["https://example.com/x?y=1", "/path", "mailto:a@b"], ["", "example.com", "http://[::1", "/%zz"]),
    "byte": (["YWJj", "YQ=="], ["YWJ", "Y W"]),
    "isbn": (["0321751043", "978-0321751041"], ["0321751044", "12"]),
    "isbn10": (["0321751043"], ["978-0321751041"]),
    "creditcard": (["4111 1111 1111 1111"], ["4111 1111 1111 1112"]),
    "ssn": (["123-45-6789"], ["123456789", "12-345-6789"]),
    "hexcolor": (["#FFFFFF", "fff"], ["#ffff"]),
    "rgbcolor": (["rgb(0, 128,255)"], ["rgb(0,0,256)"]),
    "bsonobjectid": (["507f1f77bcf86cd799439011"], ["507f"]),
    "password": (["anything"], []),
    "k8s-short-name": (["a-b"], ["A", "-a", "a" * 64]),
    "k8s-long-name": (["a.b-c"], ["a..b", "A.b"]),
}
CASES = [
    (name, text, good)
    for name, (yes, no) in EXAMPLES.items()
    for good, texts in ((True, yes), (False, no))
    for text in texts
]


@pytest.mark.parametrize(("name", "text", "good"), CASES)
def test_examples(name, text, good):
    assert formats.checker(name)(text) is good


def test_unknown_formats():
    assert not formats.is_known("postcode")
    assert formats.is_known("date-time")


@given(st.sampled_from(sorted(formats.SUPPORTED)), st.text(max_size=40))
def test_no_text_is_too_strange(name, text):
    assert formats.checker(name)(text) in (True, False)
