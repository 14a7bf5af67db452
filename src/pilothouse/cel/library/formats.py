"""Named formats: `format.dns1123Label().validate(text)` returns what is wrong with a text, if anything is."""

from __future__ import annotations

import re
from collections.abc import Callable

from pilothouse.cel.declarations import Function, Library, Overload
from pilothouse.cel.library.urls import UrlError, parse_request_uri
from pilothouse.cel.types import struct
from pilothouse.cel.values import NONE, Optional
from pilothouse.machinery import names
from pilothouse.machinery.times import TimeError, parse_time

FORMAT_TYPE = struct("kubernetes.NamedFormat")
_UUID = re.compile(r"[0-9a-f]{8}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{12}\Z", re.IGNORECASE)
_BASE64 = re.compile(r"(?:[A-Za-z0-9+/]{4})*+(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?(?<=.)\Z")
_TIME_PATTERN_LENGTH = 79
_UUID_PATTERN_LENGTH = 79
Check = Callable[[str], list[str]]


class NamedFormat:
    """A format with its name, its check and the size of pattern it is charged for."""

    __slots__ = ("check", "max_regex_size", "name")
    cel_type = FORMAT_TYPE

    def __init__(self, name: str, check: Check, max_regex_size: int) -> None:
        self.name = name
        self.check = check
        self.max_regex_size = max_regex_size

    def __eq__(self, other: object) -> bool:
        return isinstance(other, NamedFormat) and other.name == self.name

    def __hash__(self) -> int:
        return hash(self.name)


def _prefix(check: Check) -> Check:
    return lambda text: check(names.mask_trailing_dash(text))


def _uri(text: str) -> list[str]:
    try:
        parse_request_uri(text)
    except UrlError as error:
        return [str(error)]
    return []


def _matching(pattern: re.Pattern[str], complaint: str) -> Check:
    return lambda text: [] if pattern.match(text) else [complaint]


def _time(prefix: str, suffix: str, complaint: str) -> Check:
    def check(text: str) -> list[str]:
        try:
            parse_time(prefix + text + suffix)
        except TimeError:
            return [complaint]
        return []

    return check


FORMATS = {
    "dns1123Label": NamedFormat("DNS1123Label", names.check_dns1123_label, 30),
    "dns1123Subdomain": NamedFormat("DNS1123Subdomain", names.check_dns1123_subdomain, 60),
    "dns1035Label": NamedFormat("DNS1035Label", names.check_dns1035_label, 30),
    "qualifiedName": NamedFormat("QualifiedName", names.check_label_key, 60),
    "dns1123LabelPrefix": NamedFormat("DNS1123LabelPrefix", _prefix(names.check_dns1123_label), 30),
    "dns1123SubdomainPrefix": NamedFormat("DNS1123SubdomainPrefix", _prefix(names.check_dns1123_subdomain), 60),
    "dns1035LabelPrefix": NamedFormat("DNS1035LabelPrefix", _prefix(names.check_dns1035_label), 30),
    "labelValue": NamedFormat("LabelValue", names.check_label_value, 40),
    "uri": NamedFormat("URI", _uri, 1103),
    "uuid": NamedFormat("uuid", _matching(_UUID, "does not match the UUID format"), _UUID_PATTERN_LENGTH),
    "byte": NamedFormat("byte", _matching(_BASE64, "invalid base64"), 84),
    "date": NamedFormat("date", _time("", "T00:00:00Z", "invalid date"), _TIME_PATTERN_LENGTH),
    "datetime": NamedFormat("datetime", _time("", "", "invalid datetime"), _TIME_PATTERN_LENGTH),
}


def _validate(format: NamedFormat, text: str) -> Optional:
    errs = format.check(text)
    return Optional(errs) if errs else NONE


def _named(name: str) -> Optional:
    return Optional(FORMATS[name]) if name in FORMATS else NONE


def _constant(name: str) -> Function:
    value = FORMATS[name]
    return Function(f"format.{name}", [Overload(f"format.{name}", "() -> kubernetes.NamedFormat", lambda: value)])


FORMAT_LIBRARY = Library(
    (
        Function(
            "validate",
            [Overload("format-validate", "kubernetes.NamedFormat.(string) -> optional(list(string))", _validate)],
        ),
        Function("format.named", [Overload("format-named", "(string) -> optional(kubernetes.NamedFormat)", _named)]),
        *map(_constant, FORMATS),
    ),
    types=(FORMAT_TYPE,),
)
