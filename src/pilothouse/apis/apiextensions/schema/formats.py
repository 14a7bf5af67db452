"""String formats of custom schemas, as kube-openapi's ``strfmt`` reads them: each is a function from text to bool.

Names are compared without dashes (``date-time`` is ``datetime``). Formats that are not supported mean nothing.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache
from typing import Any, Final

import re2

from pilothouse.machinery import addresses
from pilothouse.machinery.times import parse_duration

Checker = Callable[[str], bool]


@cache
def _compiled(pattern: str) -> Any:
    """Character classes of Unicode take long to compile: only what a schema really uses is compiled."""
    return re2.compile(pattern)


_LETTERS: Final = r"[a-zA-Z\p{L}]+"
_LABEL: Final = r"[a-zA-Z0-9\p{S}\p{L}]+"
"""Without dashes. The whole of kube-openapi's pattern repeats these classes sixty times: 250,000 instructions."""
_CARD: Final = re.compile(
    r"(?:4[0-9]{12}(?:[0-9]{3})?|5[1-5][0-9]{14}|6(?:011|5[0-9][0-9])[0-9]{12}|3[47][0-9]{13}"
    r"|3(?:0[0-5]|[68][0-9])[0-9]{11}|(?:2131|1800|35\d{3})\d{11})",
    re.ASCII,
)
_DATE: Final = re.compile(r"([0-9]{4})-([0-9]{2})-([0-9]{2})")
_TIME: Final = re.compile(r"([0-9]{2}):([0-9]{2}):([0-9]{2})(.[0-9]+)?(z|([+-][0-9]{2}:[0-9]{2}))")
_SCALA: Final = r"(\d+)\s*([A-Za-zµ]+)"
_UNITS: Final = (
    ("ns", "nano"), ("us", "µs", "micro"), ("ms", "milli"), ("s", "sec"), ("m", "min"), ("h", "hr", "hour"),
    ("d", "day"), ("w", "wk", "week"),
)  # fmt: skip
_COLOUR_PART: Final = r"\s*(0|[1-9]\d?|1\d\d?|2[0-4]\d|25[0-5])\s*"
_SCHEME: Final = re.compile(r"[a-zA-Z][a-zA-Z0-9+.-]*")
_BAD_ESCAPE: Final = re.compile(r"%(?![0-9a-fA-F]{2})")
_HOST_PORT: Final = re.compile(r"(?:\[[^\]]*\]|[^:]*)(?::[0-9]*)?")
_MAIL_ATOM: Final = re.compile(r"[^\x00-\x20()<>\[\]:;@\\,\".\x7f]+(?:\.[^\x00-\x20()<>\[\]:;@\\,\".\x7f]++)*+")


def _matching(pattern: str) -> Checker:
    fullmatch = re.compile(pattern, re.ASCII).fullmatch
    return lambda text: fullmatch(text) is not None


def is_date(text: str) -> bool:
    """A day that exists."""
    found = _DATE.fullmatch(text)
    if found is None:
        return False
    year, month, day = map(int, found.groups())
    if not 1 <= month <= 12:
        return False
    leap = year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)
    longest = 29 if month == 2 and leap else (31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)[month - 1]
    return 1 <= day <= longest


def is_datetime(text: str) -> bool:
    """RFC 3339, in either case."""
    parts = text.lower().split("t")
    if len(text) < 4 or len(parts) < 2 or not is_date(parts[0]):
        return False
    found = _TIME.fullmatch(parts[1])
    return found is not None and found[1] <= "23" and found[2] <= "59" and found[3] <= "59"


def is_duration(text: str) -> bool:
    """Go's notation, or a number with a unit as Scala has it anywhere in the text."""
    try:
        parse_duration(text)
    except ValueError:
        pass
    else:
        return True
    fits = False
    for number, unit in _compiled(_SCALA).findall(text):
        if int(number) >= 1 << 63:
            return False
        unit = unit.lower()
        fits = fits or any(unit in names or unit.startswith(names[-1]) for names in _UNITS)
    return fits


def is_hostname(text: str) -> bool:
    if len(text.encode()) > 255:
        return False
    *labels, last = text.split(".")
    if not all(len(label.encode()) <= 63 for label in (*labels, last)):
        return False
    if not labels:
        rest = last[1:].removeprefix("-")
        return last[:1] != "-" and _is_label(last[:1] + rest)
    is_top = len(last) > 1 and _compiled(_LETTERS).fullmatch(last) is not None
    return is_top and all(map(_is_dashed_label, labels))


def _is_dashed_label(text: str) -> bool:
    return text[:1] != "-" and text[-1:] != "-" and _is_label(text.replace("-", ""))


def _is_label(text: str) -> bool:
    return _compiled(_LABEL).fullmatch(text) is not None


def is_uri(text: str) -> bool:
    """What Go's ``url.ParseRequestURI`` takes: an absolute URI or an absolute path."""
    if not text or any(char < " " or char == "\x7f" for char in text):
        return False
    if text == "*":
        return True
    scheme, colon, rest = text.partition(":")
    if not colon or not _SCHEME.fullmatch(scheme):
        if colon and not text.startswith("/"):
            return False
        scheme, rest = "", text
    path = rest.partition("?")[0]
    if not path.startswith("/"):
        return bool(scheme)
    if scheme and path.startswith("//"):
        authority, _, path = path[2:].partition("/")
        if not _is_authority(authority):
            return False
    return _BAD_ESCAPE.search(path) is None


def _is_authority(text: str) -> bool:
    host = text.rpartition("@")[2]
    return _HOST_PORT.fullmatch(host) is not None and not any(char in host for char in ' "<>\\^`{|}')


def is_email(text: str) -> bool:
    """An address as RFC 5322 has it, with or without a display name."""
    text = text.strip(" \t")
    if text.endswith(">"):
        display, angle, text = text[:-1].rpartition("<")
        if not angle or any(char in display for char in "<>@,;:\\"):
            return False
    local, at, domain = text.rpartition("@")
    if not at:
        return False
    quoted = len(local) >= 2 and local[0] == local[-1] == '"' and '"' not in local[1:-1]
    if not quoted and _MAIL_ATOM.fullmatch(local) is None:
        return False
    return _MAIL_ATOM.fullmatch(domain) is not None


def is_ipv4(text: str) -> bool:
    return "." in text and addresses.parse_ip(text) is not None


def is_ipv6(text: str) -> bool:
    address = addresses.parse_ip(text) if ":" in text else None
    return address is not None and not address.lenient


def is_mac(text: str) -> bool:
    """EUI-48, EUI-64 or 20-octet addresses, with colons, dashes or dots."""
    for separator, width, counts in ((":", 2, (6, 8, 20)), ("-", 2, (6, 8, 20)), (".", 4, (3, 4, 10))):
        if separator in text:
            parts = text.split(separator)
            digits = frozenset("0123456789abcdefABCDEF")
            return len(parts) in counts and all(len(part) == width and digits.issuperset(part) for part in parts)
    return False


def is_credit_card(text: str) -> bool:
    digits = re.sub("[^0-9]+", "", text)
    if _CARD.fullmatch(digits) is None:
        return False
    doubled = [sum(divmod(2 * int(digit), 10)) for digit in digits[-2::-2]]
    return (sum(map(int, digits[::-2])) + sum(doubled)) % 10 == 0


def is_isbn10(text: str) -> bool:
    digits = re.sub(r"[\s-]+", "", text)
    if re.fullmatch("(?:[0-9]{9}X|[0-9]{10})", digits) is None:
        return False
    values = [10 if digit == "X" else int(digit) for digit in digits]
    return sum((at + 1) * value for at, value in enumerate(values)) % 11 == 0


def is_isbn13(text: str) -> bool:
    digits = re.sub(r"[\s-]+", "", text)
    if re.fullmatch("[0-9]{13}", digits) is None:
        return False
    checksum = sum((1, 3)[at % 2] * int(digit) for at, digit in enumerate(digits[:12]))
    return int(digits[12]) == (10 - checksum % 10) % 10


_ISSN: Final = _matching(r"\d{3}[- ]?\d{2}[- ]?\d{4}")
_LONG_NAME: Final = _matching(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_SHORT_NAME: Final = _matching(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?")
_HEX: Final = "[0-9a-fA-F]"
_CHECKERS: Final[dict[str, Checker]] = {
    "bsonobjectid": _matching(f"{_HEX}{{24}}"),
    "uri": is_uri,
    "email": is_email,
    "hostname": is_hostname,
    "ipv4": is_ipv4,
    "ipv6": is_ipv6,
    "cidr": lambda text: addresses.parse_cidr(text) is not None,
    "mac": is_mac,
    "uuid": _matching(f"{_HEX}{{8}}-?{_HEX}{{4}}-?{_HEX}{{4}}-?{_HEX}{{4}}-?{_HEX}{{12}}"),
    "uuid3": _matching(f"{_HEX}{{8}}-?{_HEX}{{4}}-?3{_HEX}{{3}}-?{_HEX}{{4}}-?{_HEX}{{12}}"),
    "uuid4": _matching(f"{_HEX}{{8}}-?{_HEX}{{4}}-?4{_HEX}{{3}}-?[89abAB]{_HEX}{{3}}-?{_HEX}{{12}}"),
    "uuid5": _matching(f"{_HEX}{{8}}-?{_HEX}{{4}}-?5{_HEX}{{3}}-?[89abAB]{_HEX}{{3}}-?{_HEX}{{12}}"),
    "isbn": lambda text: is_isbn10(text) or is_isbn13(text),
    "isbn10": is_isbn10,
    "isbn13": is_isbn13,
    "creditcard": is_credit_card,
    "ssn": lambda text: len(text) == 11 and _ISSN(text),
    "hexcolor": _matching(f"#?({_HEX}{{3}}|{_HEX}{{6}})"),
    "rgbcolor": _matching(rf"rgb\({_COLOUR_PART},{_COLOUR_PART},{_COLOUR_PART}\)"),
    "byte": _matching(r"(?:[A-Za-z0-9+/]{4})*+(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?(?<=.)"),
    "password": lambda text: True,
    "date": is_date,
    "duration": is_duration,
    "datetime": is_datetime,
    "k8sshortname": lambda text: len(text) <= 63 and _SHORT_NAME(text),
    "k8slongname": lambda text: len(text) <= 253 and _LONG_NAME(text),
}
SUPPORTED: Final = frozenset(_CHECKERS)


def normalize(name: str) -> str:
    """A format's name as it is compared."""
    return name.replace("-", "")


def is_known(name: str) -> bool:
    """Whether the format means anything for strings."""
    return normalize(name) in SUPPORTED


def checker(name: str) -> Checker:
    """The function that checks a text."""
    return _CHECKERS[normalize(name)]
