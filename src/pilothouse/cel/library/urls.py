"""URLs: `url()`, `isURL()` and the parts of a URL, read as Go's net/url reads them."""

from __future__ import annotations

import re
from typing import NamedTuple
from urllib.parse import quote_from_bytes, unquote_to_bytes

from pilothouse.cel.declarations import Function, Library, Overload
from pilothouse.cel.types import struct
from pilothouse.cel.values import fail
from pilothouse.machinery import go_quote

URL_TYPE = struct("kubernetes.URL")
_CONTROL = re.compile("[\x00-\x1f\x7f]")
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*(?=:)")
_ESCAPE = re.compile(r"%([0-9A-Fa-f]{2})?")
_PORT = re.compile(r"(?::[0-9]*)?\Z")
_USER = re.compile(r"[A-Za-z0-9\-._:~!$&'()*+,;=%@]*\Z")
_BAD_HOST = re.compile(r"[\x00-\x20\\^`{|}/?#@]")
_GOOD_PATH = re.compile(r"(?:[A-Za-z0-9\-._~!$&'()*+,;=:@\[\]/]++|%[0-9A-Fa-f]{2})*+\Z")
_KEPT_IN_PATH = "-_.~$&+,/:;=@"


class UrlError(Exception):
    """The text is no URL."""


class Url(NamedTuple):
    """The parts of a URL."""

    scheme: str
    user: str
    host: str
    path: str
    query: str
    fragment: str
    opaque: str

    @property
    def cel_type(self) -> object:
        return URL_TYPE


def parse_request_uri(text: str) -> Url:
    """Read an absolute URI or path, or raise UrlError in Go's words."""
    try:
        return _parse(text, "", True)
    except UrlError as error:
        raise UrlError(f"parse {go_quote.quote(text)}: {error}") from None


def parse_url(text: str) -> Url:
    """Read a URL that may have a fragment."""
    before, _, fragment = text.partition("#")
    try:
        return _parse(before, fragment, False)
    except UrlError as error:
        raise UrlError(f"parse {go_quote.quote(text)}: {error}") from None


def _parse(text: str, fragment: str, for_request: bool) -> Url:
    if _CONTROL.search(text):
        raise UrlError("net/url: invalid control character in URL")
    if not text and for_request:
        raise UrlError("empty url")
    if text == "*":
        return Url("", "", "", "*", "", fragment, "")
    if text.startswith(":"):
        raise UrlError("missing protocol scheme")
    found = _SCHEME.match(text)
    scheme = found.group().lower() if found else ""
    rest, _, query = text[len(scheme) + 1 if found else 0 :].partition("?")
    if not rest.startswith("/"):
        if scheme:
            return Url(scheme, "", "", "", query, fragment, rest)
        if for_request:
            raise UrlError("invalid URI for request")
        if ":" in rest.partition("/")[0]:
            raise UrlError("first path segment in URL cannot contain colon")
    user = host = ""
    if rest.startswith("//") and (scheme or (not for_request and not rest.startswith("///"))):
        authority, slash, path = rest[2:].partition("/")
        rest = slash + path
        user, host = _parse_authority(authority)
    _check_escapes(rest)
    return Url(scheme, user, host, rest, query, fragment, "")


def _parse_authority(authority: str) -> tuple[str, str]:
    user, at, host = authority.rpartition("@")
    if at and not _USER.match(user):
        raise UrlError("net/url: invalid userinfo")
    _check_escapes(user)
    if host.startswith("["):
        close = host.rfind("]")
        if close < 0:
            raise UrlError("missing ']' in host")
        port = host[close + 1 :]
    else:
        colon = host.rfind(":")
        port = host[colon:] if colon >= 0 else ""
    if not _PORT.match(port):
        raise UrlError(f"invalid port {go_quote.quote(port)} after host")
    for escape in _ESCAPE.finditer(host):
        code = escape.group(1)
        if code is None or (int(code, 16) < 0x80 and code != "25"):
            raise UrlError(f"invalid URL escape {go_quote.quote(host[escape.start() : escape.start() + 3])}")
    bad = _BAD_HOST.search(host)
    if bad:
        raise UrlError(f"invalid character {go_quote.quote(bad.group())} in host name")
    return user, host


def _check_escapes(text: str) -> None:
    for found in _ESCAPE.finditer(text):
        if found.group(1) is None:
            raise UrlError(f"invalid URL escape {go_quote.quote(text[found.start() : found.start() + 3])}")


def _to_url(text: str) -> Url:
    try:
        parse_request_uri(text)
        return parse_url(text)
    except UrlError as error:
        return fail(f"URL parse error during conversion from string: {error}")


def _is_url(text: str) -> bool:
    try:
        parse_request_uri(text)
    except UrlError:
        return False
    return True


def _hostname(url: Url) -> str:
    host = url.host
    if host.startswith("[") and "]" in host:
        return host[1 : host.rindex("]")]
    name, colon, port = host.rpartition(":")
    return name if colon and (port.isdigit() or not port) else host


def _port(url: Url) -> str:
    _, colon, port = url.host[url.host.rfind("]") + 1 :].rpartition(":")
    return port if colon and port.isdigit() else ""


def _escaped_path(url: Url) -> str:
    if _GOOD_PATH.match(url.path):
        return url.path
    return quote_from_bytes(unquote_to_bytes(url.path), safe=_KEPT_IN_PATH)


def _query(url: Url) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for pair in url.query.split("&"):
        if not pair or ";" in pair:
            continue
        key, _, value = pair.partition("=")
        try:
            _check_escapes(pair)
        except UrlError:
            continue
        name, text = (unquote_to_bytes(part.replace("+", " ")).decode("utf-8", "replace") for part in (key, value))
        found.setdefault(name, []).append(text)
    return found


def _accessor(name: str, word: str, read: object, result: str = "string") -> Function:
    return Function(name, [Overload(f"url_get_{word}", f"kubernetes.URL.() -> {result}", read)])  # type: ignore[arg-type]


URL_LIBRARY = Library(
    (
        Function("url", [Overload("string_to_url", "(string) -> kubernetes.URL", _to_url)]),
        Function("isURL", [Overload("is_url_string", "(string) -> bool", _is_url)]),
        _accessor("getScheme", "scheme", lambda url: url.scheme),
        _accessor("getHost", "host", lambda url: url.host),
        _accessor("getHostname", "hostname", _hostname),
        _accessor("getPort", "port", _port),
        _accessor("getEscapedPath", "escaped_path", _escaped_path),
        _accessor("getQuery", "query", _query, "map(string, list(string))"),
    ),
    types=(URL_TYPE,),
)
