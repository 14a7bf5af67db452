"""The formats of names, keys and values, with the messages kube-apiserver gives for each.

A check takes a text and returns the messages about it; none means valid. Lengths count bytes. kube-apiserver words the
length limit in two ways ("characters" in its older package, "bytes" in the newer one that label keys and declarative
validation use); ``unit`` chooses. Label keys and values come again and again, so valid ones are remembered.

Regular expressions are anchored with ``fullmatch`` and spell out ASCII classes: ``$`` and ``\\d`` of Python accept more
than those of Go.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from random import Random
from typing import Final

from pilothouse.machinery import field_errors
from pilothouse.machinery.field_errors import FieldError, Path

MAX_LABEL: Final = 63
MAX_SUBDOMAIN: Final = 253
MAX_GENERATED_BASE: Final = 58
TOKEN_VOLUME_PREFIX: Final = "kube-api-access-"
"""What admission draws the name of the token's volume with."""

_LABEL: Final = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_LABEL_UNDERSCORE: Final = "_?[a-z0-9]([-_a-z0-9]*[a-z0-9])?"
_SUBDOMAIN: Final = rf"{_LABEL}(\.{_LABEL})*"
_SUBDOMAIN_UNDERSCORE: Final = rf"{_LABEL_UNDERSCORE}(\.{_LABEL_UNDERSCORE})*"
_DNS1035: Final = "[a-z]([-a-z0-9]*[a-z0-9])?"
_WILDCARD: Final = rf"\*\.{_SUBDOMAIN}"
_KEY_NAME: Final = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"
_LABEL_VALUE: Final = f"({_KEY_NAME})?"
_C_IDENTIFIER: Final = "[A-Za-z_][A-Za-z0-9_]*"
_PERCENT: Final = "[0-9]+%"
_HEADER: Final = "[-A-Za-z0-9]+"
_CONFIG_KEY: Final = "[-._a-zA-Z0-9]+"
_HTTP_PATH: Final = r"[A-Za-z0-9/\-._~%!$&'()*+,;=:]+"

# The same languages without going back: a group that may give back takes 100 bytes and more for each time it matched.
_DASHED: Final = "[a-z0-9]++(?:-++[a-z0-9]++)*+"
_DOTTED: Final = rf"{_DASHED}(?:\.{_DASHED})*+"
_UNDERSCORED: Final = "_?[a-z0-9]++(?:[-_]++[a-z0-9]++)*+"
_is_label = re.compile(_DASHED).fullmatch
_is_subdomain = re.compile(_DOTTED).fullmatch
# Go folds the long s and the Kelvin sign to s and k.
_is_subdomain_caseless = re.compile(_DOTTED.replace("a-z", "a-zA-Z\u017f\u212a")).fullmatch
_is_subdomain_underscore = re.compile(rf"{_UNDERSCORED}(?:\.{_UNDERSCORED})*+").fullmatch
_is_dns1035 = re.compile(_DNS1035).fullmatch
_is_wildcard = re.compile(rf"\*\.{_DOTTED}").fullmatch
_is_key_name = re.compile(_KEY_NAME).fullmatch
_is_label_value = re.compile(_LABEL_VALUE).fullmatch
_is_c_identifier = re.compile(_C_IDENTIFIER).fullmatch
_is_percent = re.compile(_PERCENT).fullmatch
_is_header = re.compile(_HEADER).fullmatch
_is_relaxed_env_var = re.compile(r"[ -<>-~]*").fullmatch
_is_config_key = re.compile(_CONFIG_KEY).fullmatch
_is_http_path = re.compile(_HTTP_PATH).fullmatch
_is_port_charset = re.compile(r"[-a-z0-9]+").fullmatch
_has_letter = re.compile(r"[a-z]").search
_is_decimal = re.compile(r"0|-?[1-9][0-9]*").fullmatch

_ALPHABET: Final = "bcdfghjklmnpqrstvwxz2456789"
_PAIRS: Final = tuple(first + second for first in _ALPHABET for second in _ALPHABET)
_SUFFIXES: Final = len(_ALPHABET) ** 5
_MEMORY: Final = 4096
_valid_keys: set[str] = set()
_valid_values: set[str] = set()
_valid_config_keys: set[str] = set()

EMPTY: Final = "must be non-empty"


def max_length_message(limit: int, unit: str = "characters") -> str:
    return f"must be no more than {limit} {unit}"


def range_message(least: int, most: int) -> str:
    return f"must be between {least} and {most}, inclusive"


def pattern_message(message: str, pattern: str, *examples: str) -> str:
    """What is said of a text that fails a pattern."""
    if not examples:
        return f"{message} (regex used for validation is '{pattern}')"
    listed = " or ".join(f"'{example}', " for example in examples)
    return f"{message} (e.g. {listed}regex used for validation is '{pattern}')"


_LABEL_MESSAGE: Final = pattern_message(
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with"
    " an alphanumeric character",
    _LABEL,
    "my-name",
    "123-abc",
)
_SUBDOMAIN_MESSAGE: Final = pattern_message(
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and"
    " end with an alphanumeric character",
    _SUBDOMAIN,
    "example.com",
)
_CASELESS_MESSAGE: Final = pattern_message(
    "an RFC 1123 subdomain must consist of alphanumeric characters, '-' or '.', and must start and end with an"
    " alphanumeric character",
    _SUBDOMAIN,
    "Example.com",
)
_UNDERSCORE_MESSAGE: Final = pattern_message(
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '_', '-' or '.', and must start"
    " and end with an alphanumeric character",
    _SUBDOMAIN_UNDERSCORE,
    "example.com",
)
_DNS1035_MESSAGE: Final = pattern_message(
    "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character,"
    " and end with an alphanumeric character",
    _DNS1035,
    "my-name",
    "abc-123",
)
_WILDCARD_MESSAGE: Final = pattern_message(
    "a wildcard DNS-1123 subdomain must start with '*.', followed by a valid DNS subdomain, which must consist of lower"
    " case alphanumeric characters, '-' or '.' and end with an alphanumeric character",
    _WILDCARD,
    "*.example.com",
)
_KEY_NAME_MESSAGE: Final = pattern_message(
    "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character",
    _KEY_NAME,
    "MyName",
    "my.name",
    "123-abc",
)
_NAME_PART_MESSAGE: Final = f"name part {_KEY_NAME_MESSAGE}"  # one text for all: there may be very many errors
_LABEL_VALUE_MESSAGE: Final = pattern_message(
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and"
    " end with an alphanumeric character",
    _LABEL_VALUE,
    "MyValue",
    "my_value",
    "12345",
)
_C_IDENTIFIER_MESSAGE: Final = pattern_message(
    "a valid C identifier must start with alphabetic character or '_', followed by a string of alphanumeric characters"
    " or '_'",
    _C_IDENTIFIER,
    "my_name",
    "MY_NAME",
    "MyName",
)
_PERCENT_MESSAGE: Final = pattern_message(
    "a valid percent string must be a numeric string followed by an ending '%'", _PERCENT, "1%", "93%"
)
_HEADER_MESSAGE: Final = pattern_message(
    "a valid HTTP header must consist of alphanumeric characters or '-'", _HEADER, "X-Header-Name"
)
_CONFIG_KEY_MESSAGE: Final = pattern_message(
    "a valid config key must consist of alphanumeric characters, '-', '_' or '.'",
    _CONFIG_KEY,
    "key.name",
    "KEY_NAME",
    "key-name",
)


def _exceeds(text: str, limit: int) -> bool:
    return len(text) > limit or (not text.isascii() and len(text.encode("utf-8", "surrogatepass")) > limit)


def check_dns1123_label(text: str, unit: str = "characters") -> list[str]:
    """Names of namespaces, containers and volumes."""
    if _is_label(text) and len(text) <= MAX_LABEL:
        return []
    messages = [max_length_message(MAX_LABEL, unit)] if _exceeds(text, MAX_LABEL) else []
    if not _is_label(text):
        messages.append("must not contain dots" if _is_subdomain(text) else _LABEL_MESSAGE)
    return messages


def check_dns1123_subdomain(text: str, unit: str = "characters") -> list[str]:
    """Names of most objects."""
    if _is_subdomain(text) and len(text) <= MAX_SUBDOMAIN:
        return []
    messages = [max_length_message(MAX_SUBDOMAIN, unit)] if _exceeds(text, MAX_SUBDOMAIN) else []
    if not _is_subdomain(text):
        messages.append(_SUBDOMAIN_MESSAGE)
    return messages


def check_dns1123_subdomain_caseless(text: str) -> list[str]:
    """Driver names, which may have capital letters."""
    messages = [max_length_message(MAX_SUBDOMAIN, "bytes")] if _exceeds(text, MAX_SUBDOMAIN) else []
    if not _is_subdomain_caseless(text):
        messages.append(_CASELESS_MESSAGE)
    return messages


def check_dns1123_subdomain_with_underscore(text: str) -> list[str]:
    """Search domains of a pod's DNS configuration."""
    messages = [max_length_message(MAX_SUBDOMAIN)] if _exceeds(text, MAX_SUBDOMAIN) else []
    if not _is_subdomain_underscore(text):
        messages.append(_UNDERSCORE_MESSAGE)
    return messages


def check_dns1035_label(text: str) -> list[str]:
    """Names of CRD kinds and short names, formerly of services."""
    messages = [max_length_message(MAX_LABEL)] if _exceeds(text, MAX_LABEL) else []
    if not _is_dns1035(text):
        messages.append(_DNS1035_MESSAGE)
    return messages


def check_wildcard_dns1123_subdomain(text: str) -> list[str]:
    """Ingress hosts like ``*.example.com``."""
    messages = [max_length_message(MAX_SUBDOMAIN)] if _exceeds(text, MAX_SUBDOMAIN) else []
    if not _is_wildcard(text):
        messages.append(_WILDCARD_MESSAGE)
    return messages


def check_label_key(text: str) -> list[str]:
    """Label and annotation keys and other qualified names: ``[prefix/]name``."""
    if text in _valid_keys:
        return []
    messages = _check_label_key(text)
    if not messages:
        if len(_valid_keys) >= _MEMORY:
            _valid_keys.clear()
        _valid_keys.add(text)
    return messages


def are_known_labels(labels: Mapping[str, str]) -> bool:
    """Whether all keys and values of labels were found to be right lately. Others may be right as well."""
    return _valid_keys.issuperset(labels) and _valid_values.issuperset(labels.values())


def _check_label_key(text: str) -> list[str]:
    parts = text.split("/", 2)
    if len(parts) > 2:
        suffix = " with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"
        return [f"a valid label key {_KEY_NAME_MESSAGE}{suffix}"]
    messages: list[str] = []
    if len(parts) == 2:
        errs = check_dns1123_subdomain(parts[0], "bytes") if parts[0] else [EMPTY]
        messages.extend(f"prefix part {error}" for error in errs)
    name = parts[-1]
    if not name:
        messages.append(f"name part {EMPTY}")
    elif _exceeds(name, MAX_LABEL):
        messages.append(f"name part {max_length_message(MAX_LABEL, 'bytes')}")
    if not _is_key_name(name):
        messages.append(_NAME_PART_MESSAGE)
    return messages


check_qualified_name = check_label_key


def check_prefixed_label_key(text: str) -> list[str]:
    """A label key whose prefix is not optional."""
    messages = check_label_key(text)
    return messages or ([] if "/" in text else ["must include a prefix (e.g. 'example.com/key')"])


def check_label_value(text: str) -> list[str]:
    """Values of labels."""
    if text in _valid_values:
        return []
    messages = [max_length_message(MAX_LABEL, "bytes")] if _exceeds(text, MAX_LABEL) else []
    if not _is_label_value(text):
        messages.append(_LABEL_VALUE_MESSAGE)
    elif not messages:
        if len(_valid_values) >= _MEMORY:
            _valid_values.clear()
        _valid_values.add(text)
    return messages


def check_c_identifier(text: str) -> list[str]:
    """Identifiers of C."""
    return [] if _is_c_identifier(text) else [_C_IDENTIFIER_MESSAGE]


def check_port_name(text: str) -> list[str]:
    """Names of container ports: IANA service names."""
    messages = [max_length_message(15)] if _exceeds(text, 15) else []
    if not _is_port_charset(text):
        messages.append("must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)")
    if not _has_letter(text):
        messages.append("must contain at least one letter (a-z)")
    if "--" in text:
        messages.append("must not contain consecutive hyphens")
    if text.startswith("-") or text.endswith("-"):
        messages.append("must not begin or end with a hyphen")
    return messages


def check_in_range(value: int, least: int, most: int) -> list[str]:
    """Numbers with both limits allowed."""
    return [] if least <= value <= most else [range_message(least, most)]


def check_port_number(value: int) -> list[str]:
    """Ports other than 0."""
    return check_in_range(value, 1, 65535)


def check_percent(text: str) -> list[str]:
    """Texts like ``25%``."""
    return [] if _is_percent(text) else [_PERCENT_MESSAGE]


def check_http_header_name(text: str) -> list[str]:
    """Header names of probes."""
    return [] if _is_header(text) else [_HEADER_MESSAGE]


def check_relaxed_env_var_name(text: str) -> list[str]:
    """Names of environment variables, the way that is on by default."""
    if not text:
        return [f"environment variable name {EMPTY}"]
    if _is_relaxed_env_var(text):
        return []
    return ["a valid environment variable name must consist only of printable ASCII characters other than '='"]


def check_config_map_key(text: str) -> list[str]:
    """Keys of ConfigMaps and Secrets."""
    if text in _valid_config_keys:
        return []
    if _is_config_key(text) and len(text) <= MAX_SUBDOMAIN and text[0] != ".":
        if len(_valid_config_keys) >= _MEMORY:
            _valid_config_keys.clear()
        _valid_config_keys.add(text)
        return []
    messages = [max_length_message(MAX_SUBDOMAIN)] if _exceeds(text, MAX_SUBDOMAIN) else []
    if not _is_config_key(text):
        messages.append(_CONFIG_KEY_MESSAGE)
    return messages + _check_directory_change(text)


def are_known_config_map_keys(keys: Iterable[str]) -> bool:
    """Whether all of them were found to be right lately. Others may be right as well."""
    return _valid_config_keys.issuperset(keys)


def _check_directory_change(text: str) -> list[str]:
    if not text.startswith("."):
        return []
    if text in (".", ".."):
        return [f"must not be '{text}'"]
    return ["must not start with '..'"] if text.startswith("..") else []


def check_decimal_integer(text: str) -> list[str]:
    """Integers as people write them."""
    if not text:
        return [EMPTY]
    return [] if _is_decimal(text) else ["must be a valid decimal integer in canonical form"]


def check_path_segment_name(text: str) -> list[str]:
    """Names that only have to fit into a URL path."""
    if text in (".", ".."):
        return [f"may not be '{text}'"]
    return check_path_segment_prefix(text)


def check_path_segment_prefix(text: str) -> list[str]:
    """Beginnings of names that only have to fit into a URL path."""
    if "/" not in text and "%" not in text:
        return []
    return [f"may not contain '{char}'" for char in "/%" if char in text]


def mask_trailing_dash(base: str) -> str:
    """A generateName as kube-apiserver checks it: a final dash and the character before it become an ``a``."""
    return base[:-2] + "a" if len(base) > 1 and base.endswith("-") else base


def generate_name(base: str, rng: Random) -> str:
    """A name from a generateName: at most 58 bytes of it and five random characters."""
    if _exceeds(base, MAX_GENERATED_BASE):
        base = base.encode("utf-8", "surrogatepass")[:MAX_GENERATED_BASE].decode("utf-8", "replace")
    left, pair = divmod(int(rng.random() * _SUFFIXES), len(_PAIRS))
    single, other = divmod(left, len(_PAIRS))
    return f"{base}{_PAIRS[pair]}{_PAIRS[other]}{_ALPHABET[single]}"


def check_fully_qualified_name(path: Path, text: str) -> list[FieldError]:
    """Domain names of three segments or more, such as signer and finalizer names."""
    if not text:
        return [field_errors.required(path, "")]
    if messages := check_dns1123_subdomain(text):
        return [field_errors.invalid(path, text, ",".join(messages))]
    if text.count(".") < 2:
        detail = "should be a domain with at least three segments separated by dots"
        return [field_errors.invalid(path, text, detail)]
    return []


def check_fully_qualified_domain_name(path: Path, text: str) -> list[FieldError]:
    """Domain names of two segments or more; a final dot is allowed."""
    if not text:
        return [field_errors.required(path, "")]
    text = text.removesuffix(".")
    if messages := check_dns1123_subdomain(text):
        return [field_errors.invalid(path, text, ",".join(messages))]
    labels = text.split(".")
    if len(labels) < 2:
        detail = "should be a domain with at least two segments separated by dots"
        return [field_errors.invalid(path, text, detail)]
    for label in labels:
        if messages := check_dns1123_label(label):
            return [field_errors.invalid(path, label, ",".join(messages))]
    return []


def check_domain_prefixed_path(path: Path, text: str) -> list[FieldError]:
    """Texts like ``acme.io/foo`` with any HTTP path behind the domain."""
    if not text:
        return [field_errors.required(path, "")]
    host, _, rest = text.partition("/")
    if not host or not rest:
        return [field_errors.invalid(path, text, 'must be a domain-prefixed path (such as "acme.io/foo")')]
    errors = [field_errors.invalid(path, host, message) for message in check_dns1123_subdomain(host)]
    if not _is_http_path(rest):
        errors.append(field_errors.invalid(path, rest, pattern_message("Invalid path", _HTTP_PATH)))
    return errors


def check_domain_prefixed_key(path: Path, text: str) -> list[FieldError]:
    """Label keys whose prefix is not optional."""
    if not text:
        return [field_errors.required(path, "")]
    if messages := check_label_key(text):
        return [field_errors.invalid(path, text, message) for message in messages]
    if "/" not in text:
        return [field_errors.invalid(path, text, 'must be a domain-prefixed key (such as "acme.io/foo")')]
    return []
