"""Where a webhook is: its URL or its service."""

from __future__ import annotations

import re
from typing import Any, Final

from pilothouse.machinery import names
from pilothouse.machinery.field_errors import FieldError, Path, invalid, required
from pilothouse.machinery.go_quote import quote

_FORM: Final = "; desired format: https://host[/path]"
_SCHEME: Final = re.compile(r"([a-zA-Z][a-zA-Z0-9+.-]*):")
_BAD_ESCAPE: Final = re.compile(r"%(?![0-9a-fA-F]{2}).{0,2}")
_CONTROL: Final = re.compile(r"[\x00-\x1f\x7f]")
_BAD_HOST: Final = re.compile(r"[^A-Za-z0-9\-._~!$&'()*+,;=:\[\]<>\"%]")


def validate_url(path: Path, text: str, errs: list[FieldError], *, https: bool = True) -> None:
    """A URL of host and path alone; most must be ``https``."""
    error = _error(text)
    if error:
        errs.append(required(path, f"url must be a valid URL: parse {quote(text)}: {error}{_FORM}"))
        return
    rest, _, fragment = text.partition("#")
    scheme, rest = _split_scheme(rest)
    rest, _, query = rest.partition("?")
    authority = rest[2:].partition("/")[0] if rest.startswith("//") else ""
    user, at, host = authority.rpartition("@")
    if https and scheme != "https":
        errs.append(invalid(path, scheme, f"'https' is the only allowed URL scheme{_FORM}"))
    if not host:
        errs.append(invalid(path, host, f"host must be specified{_FORM}"))
    if at:
        errs.append(invalid(path, user, "user information is not permitted in the URL"))
    if fragment:
        errs.append(invalid(path, fragment, "fragments are not permitted in the URL"))
    if query:
        errs.append(invalid(path, query, "query parameters are not permitted in the URL"))


def _split_scheme(text: str) -> tuple[str, str]:
    match = _SCHEME.match(text)
    return (match.group(1).lower(), text[match.end() :]) if match else ("", text)


def _error(text: str) -> str:
    """Why a text is no URL at all."""
    if _CONTROL.search(text):
        return "net/url: invalid control character in URL"
    if text.startswith(":"):
        return "missing protocol scheme"
    rest = text.partition("#")[0]
    scheme, rest = _split_scheme(rest)
    rest = rest.partition("?")[0]
    if not scheme and not rest.startswith("/") and ":" in rest.partition("/")[0]:
        return "first path segment in URL cannot contain colon"
    if rest.startswith("//"):
        error = _host_error(rest[2:].partition("/")[0].rpartition("@")[2])
        if error:
            return error
    escape = _BAD_ESCAPE.search(rest)
    return f"invalid URL escape {quote(escape.group())}" if escape else ""


def _host_error(host: str) -> str:
    if host.startswith("["):
        if "]" not in host:
            return "missing ']' in host"
        port = host.rpartition("]")[2]
    else:
        bad = _BAD_HOST.search(host)
        if bad:
            return f"invalid character {quote(bad.group())} in host name"
        port = host[host.rfind(":") :] if ":" in host else ""
    if port and not (port.startswith(":") and ((port[1:].isascii() and port[1:].isdigit()) or not port[1:])):
        return f"invalid port {quote(port)} after host"
    return ""


def validate_service(path: Path, service: dict[str, Any], errs: list[FieldError]) -> None:
    """A service, its port and the path on it. kube-apiserver mixes up name and namespace when one is missing."""
    if not service.get("namespace"):
        errs.append(required(path.child("name")))
    if not service.get("name"):
        errs.append(required(path.child("namespace")))
    port = service.get("port") or 0
    messages = names.check_port_number(port)
    if messages:
        errs.append(invalid(path.child("port"), port, "port is not valid: " + ", ".join(messages)))
    if service.get("path") is not None:
        _validate_path(service["path"], path.child("path"), errs)


def _validate_path(text: str, path: Path, errs: list[FieldError]) -> None:
    if text in ("", "/"):
        return
    if text == "//":
        errs.append(invalid(path, text, "segment[0] may not be empty"))
        return
    if not text.startswith("/"):
        errs.append(invalid(path, text, "must start with a '/'"))
    # What begins with anything else loses a byte of it, which may be half of a letter.
    rest = text[1:] if text.isascii() else text.encode()[1:].decode("utf-8", "replace")
    for position, segment in enumerate(rest.removesuffix("/").split("/")):
        if not segment:
            errs.append(invalid(path, text, f"segment[{position}] may not be empty"))
        else:
            messages = names.check_dns1123_subdomain(segment)
            errs += (invalid(path, text, f"segment[{position}]: {error}") for error in messages)
