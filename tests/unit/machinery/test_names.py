from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pilothouse.machinery import names
from pilothouse.machinery.field_errors import Path

LABEL = (
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with "
    "an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is "
    "'[a-z0-9]([-a-z0-9]*[a-z0-9])?')"
)
SUBDOMAIN = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and "
    "end with an alphanumeric character (e.g. 'example.com', regex used for validation is "
    r"'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
)
NAME_PART = (
    "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric "
    "character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is "
    "'([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
)
VALUE = (
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and "
    "end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is "
    "'(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"
)


@pytest.mark.parametrize("text", ["a", "ab", "a1", "a-1", "a--1--2--b", "0", "1-a", "a" * 63])
def test_good_labels(text: str) -> None:
    assert names.check_dns1123_label(text) == []
    assert names.check_dns1123_label(text) == names.check_dns1123_subdomain(text) == []


@pytest.mark.parametrize(
    ("text", "messages"),
    [
        ("", [LABEL]),
        ("A", [LABEL]),
        ("-a", [LABEL]),
        ("a-", [LABEL]),
        ("a_b", [LABEL]),
        ("a\n", [LABEL]),
        ("é", [LABEL]),
        ("a.b", ["must not contain dots"]),
        ("a" * 64, ["must be no more than 63 characters"]),
        ("A" * 64, ["must be no more than 63 characters", LABEL]),
        ("é" * 32, ["must be no more than 63 characters", LABEL]),
        ("a." * 32 + "a", ["must be no more than 63 characters", "must not contain dots"]),
    ],
)
def test_bad_labels(text: str, messages: list[str]) -> None:
    assert names.check_dns1123_label(text) == messages


@pytest.mark.parametrize(
    ("text", "messages"),
    [
        ("a.b.c", []),
        ("0.0.0.0", []),
        ("a" * 253, []),
        ("a" * 254, ["must be no more than 253 characters"]),
        ("a..b", [SUBDOMAIN]),
        ("a.", [SUBDOMAIN]),
        (".a", [SUBDOMAIN]),
        ("a.B.c", [SUBDOMAIN]),
        ("a.-b", [SUBDOMAIN]),
        ("*.a", [SUBDOMAIN]),
        ("", [SUBDOMAIN]),
    ],
)
def test_subdomains(text: str, messages: list[str]) -> None:
    assert names.check_dns1123_subdomain(text) == messages


def test_other_dns_forms() -> None:
    assert names.check_dns1123_subdomain_caseless("Foo.Example.com") == []
    assert names.check_dns1123_subdomain_caseless("foo_") == [
        "an RFC 1123 subdomain must consist of alphanumeric characters, '-' or '.', and must start and end with an "
        "alphanumeric character (e.g. 'Example.com', regex used for validation is "
        r"'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
    ]
    assert names.check_dns1123_subdomain_caseless("\u017f\u212a") == []
    assert names.check_dns1123_subdomain_caseless("\u0130") != []
    assert names.check_dns1123_subdomain_with_underscore("_sip._tcp.a_b") == []
    assert names.check_dns1123_subdomain_with_underscore("a_") != []
    assert names.check_dns1035_label("a-1") == []
    assert names.check_dns1035_label("1a") == [
        "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic "
        "character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation "
        "is '[a-z]([-a-z0-9]*[a-z0-9])?')"
    ]
    assert names.check_wildcard_dns1123_subdomain("*.example.com") == []
    for bad in ("*.*.bar.com", "*.foo.*.com", "*bar.com", "f*.bar.com", "*"):
        assert names.check_wildcard_dns1123_subdomain(bad) == [
            "a wildcard DNS-1123 subdomain must start with '*.', followed by a valid DNS subdomain, which must consist "
            "of lower case alphanumeric characters, '-' or '.' and end with an alphanumeric character (e.g. "
            r"'*.example.com', regex used for validation is "
            r"'\*\.[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
        ]


@pytest.mark.parametrize(
    ("text", "messages"),
    [
        ("simple", []),
        ("now-with-dashes", []),
        ("1-starts-with-num", []),
        ("1234/5678", []),
        ("1.2.3.4/5678", []),
        ("Uppercase_Is_OK_123", []),
        ("example.com/Uppercase_Is_OK_123", []),
        ("a" * 63, []),
        (("a" * 253) + "/" + ("b" * 63), []),
        ("nospecialchars%^=@", [NAME_PART]),
        ("cantendwithadash-", [NAME_PART]),
        ("a" * 64, ["name part must be no more than 63 bytes"]),
        ("/foo", ["prefix part must be non-empty"]),
        ("foo/", ["name part must be non-empty", NAME_PART]),
        ("Ex_/a", [f"prefix part {SUBDOMAIN}"]),
        (("a" * 254) + "/a", ["prefix part must be no more than 253 bytes"]),
        (
            "only/one/slash",
            [
                "a valid label key "
                + NAME_PART.removeprefix("name part ")
                + " with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"
            ],
        ),
        ("a\n", [NAME_PART]),
    ],
)
def test_label_keys(text: str, messages: list[str]) -> None:
    assert names.check_label_key(text) == messages
    assert names.check_label_key(text) == messages
    assert names.check_qualified_name(text) == messages


@pytest.mark.parametrize(
    ("text", "messages"),
    [
        ("", []),
        ("simple", []),
        ("UppercaseIsOK_123.4-5", []),
        ("a" * 63, []),
        ("a" * 64, ["must be no more than 63 bytes"]),
        ("-a", [VALUE]),
        ("a ", [VALUE]),
        ("a\n", [VALUE]),
        ("../", [VALUE]),
    ],
)
def test_label_values(text: str, messages: list[str]) -> None:
    assert names.check_label_value(text) == messages
    assert names.check_label_value(text) == messages


def test_remembered_keys_are_bounded() -> None:
    for number in range(names._MEMORY + 10):
        names.check_label_key(f"k{number}")
    assert len(names._valid_keys) <= names._MEMORY


CHARSET = "must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)"


@pytest.mark.parametrize(
    ("text", "messages"),
    [
        ("http", []),
        ("web-1", []),
        ("a", []),
        ("", [CHARSET, "must contain at least one letter (a-z)"]),
        ("123", ["must contain at least one letter (a-z)"]),
        ("a--b", ["must not contain consecutive hyphens"]),
        ("-a", ["must not begin or end with a hyphen"]),
        ("a-", ["must not begin or end with a hyphen"]),
        ("a" * 16, ["must be no more than 15 characters"]),
        ("hTTP", [CHARSET]),
    ],
)  # fmt: skip
def test_port_names(text: str, messages: list[str]) -> None:
    assert names.check_port_name(text) == messages


CONFIG = (
    "a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  or 'KEY_NAME',  or "
    "'key-name', regex used for validation is '[-._a-zA-Z0-9]+')"
)


@pytest.mark.parametrize(
    ("check", "text", "messages"),
    [
        (names.check_relaxed_env_var_name, "1 x!~", []),
        (names.check_relaxed_env_var_name, "", ["environment variable name must be non-empty"]),
        (
            names.check_relaxed_env_var_name,
            "a=b",
            ["a valid environment variable name must consist only of printable ASCII characters other than '='"],
        ),
        (names.check_config_map_key, "a.good-KEY_1", []),
        (names.check_config_map_key, "..data", ["must not start with '..'"]),
        (names.check_config_map_key, "..", ["must not be '..'"]),
        (names.check_config_map_key, "bad key", [CONFIG]),
        (names.check_config_map_key, "a" * 254, ["must be no more than 253 characters"]),
        (
            names.check_c_identifier,
            "1a",
            [
                "a valid C identifier must start with alphabetic character or '_', followed by a string of "
                "alphanumeric characters or '_' (e.g. 'my_name',  or 'MY_NAME',  or 'MyName', regex used for "
                "validation is '[A-Za-z_][A-Za-z0-9_]*')"
            ],
        ),
        (names.check_c_identifier, "_a1", []),
        (names.check_percent, "10%", []),
        (
            names.check_percent,
            "10",
            [
                "a valid percent string must be a numeric string followed by an ending '%' (e.g. '1%',  or '93%', "
                "regex used for validation is '[0-9]+%')"
            ],
        ),
        (names.check_http_header_name, "X-Foo", []),
        (
            names.check_http_header_name,
            "X_Foo",
            [
                "a valid HTTP header must consist of alphanumeric characters or '-' (e.g. 'X-Header-Name', regex used "
                "for validation is '[-A-Za-z0-9]+')"
            ],
        ),
        (names.check_path_segment_name, "sys:tem", []),
        (names.check_path_segment_name, "..", ["may not be '..'"]),
        (names.check_path_segment_name, "a/b%", ["may not contain '/'", "may not contain '%'"]),
        (names.check_path_segment_prefix, "..", []),
        (names.check_prefixed_label_key, "key", ["must include a prefix (e.g. 'example.com/key')"]),
        (names.check_prefixed_label_key, "a.b/key", []),
        (names.check_decimal_integer, "-12", []),
        (names.check_decimal_integer, "012", ["must be a valid decimal integer in canonical form"]),
        (names.check_decimal_integer, "-0", ["must be a valid decimal integer in canonical form"]),
    ],
)
def test_other_formats(check, text: str, messages: list[str]) -> None:  # type: ignore[no-untyped-def]
    assert check(text) == messages


def test_numbers() -> None:
    assert names.check_port_number(0) == ["must be between 1 and 65535, inclusive"]
    assert names.check_port_number(65535) == []


def test_domain_forms_as_field_errors() -> None:
    path = Path("spec", "x")
    assert [str(e) for e in names.check_fully_qualified_name(path, "")] == ["spec.x: Required value"]
    assert [str(e) for e in names.check_fully_qualified_name(path, "a.b")] == [
        'spec.x: Invalid value: "a.b": should be a domain with at least three segments separated by dots'
    ]
    assert names.check_fully_qualified_name(path, "a.b.c") == []
    assert names.check_fully_qualified_domain_name(path, "a.b.") == []
    assert [e.value for e in names.check_fully_qualified_domain_name(path, "a." + "b" * 64)] == ["b" * 64]
    assert names.check_domain_prefixed_path(path, "acme.io/foo") == []
    assert [str(e) for e in names.check_domain_prefixed_path(path, "acme.io")] == [
        'spec.x: Invalid value: "acme.io": must be a domain-prefixed path (such as "acme.io/foo")'
    ]
    assert [e.detail for e in names.check_domain_prefixed_path(path, "acme.io/a b")] == [
        r"Invalid path (regex used for validation is '[A-Za-z0-9/\-._~%!$&'()*+,;=:]+')"
    ]
    assert [e.detail for e in names.check_domain_prefixed_key(path, "foo")] == [
        'must be a domain-prefixed key (such as "acme.io/foo")'
    ]


def test_generated_names() -> None:
    rng = random.Random(7)
    name = names.generate_name("web-", rng)
    assert name.startswith("web-") and len(name) == 9
    assert set(name[4:]) <= set("bcdfghjklmnpqrstvwxz2456789")
    assert names.generate_name("x" * 100, rng)[:58] == "x" * 58
    assert len(names.generate_name("x" * 100, rng)) == 63
    assert names.mask_trailing_dash("web-") == "wea"
    assert names.mask_trailing_dash("-") == "-"


@given(st.from_regex(r"[a-z0-9]([-a-z0-9]{0,20}[a-z0-9])?(\.[a-z0-9]([-a-z0-9]{0,20}[a-z0-9])?){0,3}", fullmatch=True))
def test_generated_names_of_valid_bases_are_valid(base: str) -> None:
    if "." not in base[:58] or not base[:58].endswith("."):
        assert names.check_dns1123_subdomain(names.generate_name(base, random.Random(1))) == []


@given(st.text(max_size=300))
def test_checks_never_fail(text: str) -> None:
    for check in (names.check_dns1123_label, names.check_dns1123_subdomain, names.check_label_key,
                  names.check_label_value, names.check_port_name, names.check_config_map_key):  # fmt: skip
        assert all(isinstance(message, str) for message in check(text))
