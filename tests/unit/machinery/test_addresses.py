from __future__ import annotations

import ipaddress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pilothouse.machinery import addresses

NO_IP = "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)"
NO_CIDR = "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)"
NO_INTERFACE = "must be a valid address in CIDR form, (e.g. 10.9.8.7/24 or 2001:db8::1/64)"
ZEROS = "must not have leading 0s"
MAPPED = "must not be an IPv4-mapped IPv6 address"


@pytest.mark.parametrize(
    "text",
    ["1.2.3.4", "0.0.0.0", "255.255.255.255", "1234::abcd", "::", "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", "1::"],
)
def test_good_addresses(text: str) -> None:
    assert addresses.check_ip(text) == addresses.check_legacy_ip(text) == addresses.warn_about_ip("f", text) == []


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        ("0:0:0:0:0:0:0:0", "::"),
        ("0001:002:03:4::", "1:2:3:4::"),
        ("1234::ABCD", "1234::abcd"),
        ("1:0:0:2:0:0:0:3", "1:0:0:2::3"),
        ("1:2:3:4:5:6:0:7", "1:2:3:4:5:6:0:7"),
        ("64:ff9b::1.2.3.4", "64:ff9b::102:304"),
        ("1:0:0:2:0:0:3:4", "1::2:0:0:3:4"),
    ],
)
def test_forms_that_are_not_canonical(text: str, canonical: str) -> None:
    assert addresses.check_legacy_ip(text) == []
    expected = [] if text == canonical else [f'must be in canonical form ("{canonical}")']
    assert addresses.check_ip(text) == expected
    warning = f'f: IPv6 address "{text}" should be in RFC 5952 canonical format ("{canonical}")'
    assert addresses.warn_about_ip("f", text) == ([] if text == canonical else [warning])


@pytest.mark.parametrize(
    ("text", "message", "canonical"),
    [
        ("1.1.1.01", ZEROS, "1.1.1.1"),
        ("192.012.2.2", ZEROS, "192.12.2.2"),
        ("::ffff:1.1.1.01", ZEROS, "1.1.1.1"),
        ("1::00001", ZEROS, "1::1"),
        ("::ffff:192.12.2.2", MAPPED, "192.12.2.2"),
        ("::ffff:0102:0304", MAPPED, "1.2.3.4"),
    ],
)
def test_forms_for_older_fields_only(text: str, message: str, canonical: str) -> None:
    assert addresses.check_ip(text) == addresses.check_legacy_ip(text) == [message]
    assert addresses.check_legacy_ip(text, strict=False) == []
    assert addresses.warn_about_ip("spec.ip", text) == [
        f'spec.ip: non-standard IP address "{text}" is invalid: use "{canonical}"'
    ]


@pytest.mark.parametrize(
    "text",
    [
        "", "aaaaaaa", "myhost.mydomain", "1.2.3.0/24", "1.2.3.400", "-1.0.0.0", "2001:db8::10005", "1.2.3.4:80",
        "[2001:db8::1]", "[2001:db8::1]:80", "example.com:80", "1234::abcd%eth0", "169.254.0.0%eth0", "1.2.3", "1:2",
        "1::2::3", ":::", "1:2:3:4:5:6:7:8:9", "1:2:3:4:5:6:7::8:9", "1.2.3.4\n", "::1.2.3", "1:2.3.4.5", "١.1.1.1",
    ],
)  # fmt: skip
def test_texts_that_are_no_address(text: str) -> None:
    assert addresses.check_ip(text) == addresses.check_legacy_ip(text, strict=False) == [NO_IP]
    assert addresses.warn_about_ip("f", text) == []


@pytest.mark.parametrize(
    ("text", "strict", "lenient"),
    [
        ("1.0.0.0/8", [], []),
        ("0.0.0.0/0", [], []),
        ("1.1.1.1/32", [], []),
        ("2001:4860:4860::/48", [], []),
        ("::/0", [], []),
        ("::1/128", [], []),
        ("1.1.01.0/24", ["must not have leading 0s in IP or prefix length"], []),
        ("192.168.0.0/016", ["must not have leading 0s in IP or prefix length"], []),
        ("::ffff:1.1.1.0/24", ["must not have an IPv4-mapped IPv6 address"], []),
        ("::ffff:1.1.1.0/120", ["must not have an IPv4-mapped IPv6 address"], []),
        ("1.2.3.4/24", ["must not have bits set beyond the prefix length"], []),
        ("2001:db8::1/64", ["must not have bits set beyond the prefix length"], []),
        *((text, [NO_CIDR], [NO_CIDR]) for text in ("", "junk", "1.2.3.4", "192.168.0.1/healthz", "192.168.0.1/0/99",
          "192.168.0.0/-16", "192.168.0.0/+16", "1.2.3.0/33", "::/129", "1.2.3.0/")),
    ],
)  # fmt: skip
def test_blocks(text: str, strict: list[str], lenient: list[str]) -> None:
    assert addresses.check_cidr(text) == addresses.check_legacy_cidr(text) == strict
    assert addresses.check_legacy_cidr(text, strict=False) == lenient


def test_blocks_in_canonical_form() -> None:
    assert addresses.check_cidr("2001:DB8:0::/64") == ['must be in canonical form ("2001:db8::/64")']
    assert addresses.check_legacy_cidr("2001:DB8:0::/64") == []
    assert str(addresses.parse_cidr("::ffff:1.1.1.0/120")) == "1.1.1.0/24"
    assert str(addresses.parse_cidr("::ffff:1.1.1.0/24")) == "::/24"


@pytest.mark.parametrize(
    ("text", "warnings"),
    [
        ("192.12.2.0/24", []),
        ("2001:db8::/32", []),
        ("192.012.2.0/24", ['f: non-standard CIDR value "192.012.2.0/24" is invalid: use "192.12.2.0/24"']),
        ("192.12.2.0/024", ['f: non-standard CIDR value "192.12.2.0/024" is invalid: use "192.12.2.0/24"']),
        ("::ffff:1.2.3.0/120", ['f: non-standard CIDR value "::ffff:1.2.3.0/120" is invalid: use "1.2.3.0/24"']),
        (
            "1.2.3.8/24",
            ['f: CIDR value "1.2.3.8/24" is ambiguous in this context (should be "1.2.3.0/24" or "1.2.3.8/32"?)'],
        ),
        (
            "192.012.2.8/24",
            [
                'f: CIDR value "192.012.2.8/24" is ambiguous in this context '
                '(should be "192.12.2.0/24" or "192.12.2.8/32"?)',
                'f: non-standard CIDR value "192.012.2.8/24" is invalid: use "192.12.2.0/24"',
            ],
        ),
        (
            "2001:db8:0:0::/64",
            ['f: IPv6 CIDR value "2001:db8:0:0::/64" should be in RFC 5952 canonical format ("2001:db8::/64")'],
        ),
    ],
)
def test_block_warnings(text: str, warnings: list[str]) -> None:
    assert addresses.warn_about_cidr("f", text) == warnings


@pytest.mark.parametrize(
    ("text", "messages"),
    [
        ("1.2.3.4/24", []),
        ("2001:4860:4860::1/48", []),
        ("1.2.3.4", [NO_INTERFACE]),
        ("1.1.01.002/24", ['must be in canonical form ("1.1.1.2/24")']),
        ("2001:0:0:0::0BCD/64", ['must be in canonical form ("2001::bcd/64")']),
        ("::ffff:1.1.1.1/24", ['must be in canonical form ("1.1.1.1/24")']),
        ("::ffff:1.1.1.1/120", ['must be in canonical form ("1.1.1.1/24")']),
        ("192.168.0.5/016", ['must be in canonical form ("192.168.0.5/16")']),
    ],
)
def test_interface_addresses(text: str, messages: list[str]) -> None:
    assert addresses.check_interface_address(text) == messages


@given(st.ip_addresses(v=6))
def test_ipv6_text_agrees_with_the_standard_library(address: ipaddress.IPv6Address) -> None:
    parsed = addresses.parse_ip(address.exploded)
    assert parsed is not None and parsed.number == int(address)
    if not parsed.mapped:
        assert str(parsed) == address.compressed


@given(st.text(alphabet="0123456789abcdefF:./%", max_size=40))
def test_strict_acceptance_agrees_with_the_standard_library(text: str) -> None:
    try:
        known = int(ipaddress.ip_address(text))
    except ValueError:
        assert addresses.check_ip(text) != []
        return
    parsed = addresses.parse_ip(text)
    if "%" not in text:
        assert parsed is not None and parsed.number == known
