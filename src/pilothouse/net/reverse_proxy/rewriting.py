"""Links to the backend, in Location and in HTML, made to lead through the proxy again.

Only links to the same host with an absolute path are changed, and only in the attributes that HTML 4 and 5 say hold
URLs. Every start tag is written anew (names in lower case, values in double quotes), all else is kept as it is, and so
is a tag with more attributes than any has. A document takes some times its length in memory, whatever it is made of.
"""

from __future__ import annotations

import gzip
import posixpath
import re
import threading
import zlib
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from inspect import unwrap
from typing import Final
from urllib.parse import SplitResult, urlsplit, urlunsplit

MAX_HTML: Final = 4 << 20
_MOST_ATTRIBUTES: Final = 1000
_PIECES: Final = 1000
"""So many pieces of a document are joined at once."""
_split: Final = unwrap(urlsplit)
"""Without its memory: a hundred links of a megabyte would stay there."""
_URL_ATTRIBUTES: Final = {
    "a": ("href",),
    "applet": ("codebase",),
    "area": ("href",),
    "audio": ("src",),
    "base": ("href",),
    "blockquote": ("cite",),
    "body": ("background",),
    "button": ("formaction",),
    "command": ("icon",),
    "del": ("cite",),
    "embed": ("src",),
    "form": ("action",),
    "frame": ("longdesc", "src"),
    "head": ("profile",),
    "html": ("manifest",),
    "iframe": ("longdesc", "src"),
    "img": ("longdesc", "src", "usemap"),
    "input": ("src", "usemap", "formaction"),
    "ins": ("cite",),
    "link": ("href",),
    "object": ("classid", "codebase", "data", "usemap"),
    "q": ("cite",),
    "script": ("src",),
    "source": ("src",),
    "video": ("poster", "src"),
}
_RAW_TEXT: Final = frozenset(
    {"iframe", "noembed", "noframes", "noscript", "plaintext", "script", "style", "textarea", "title", "xmp"}
)
_TAG_NAME: Final = re.compile(r"[A-Za-z][^\s/>]*")
_FILLING: Final = re.compile(r"[\s/]*")
_ATTRIBUTE: Final = re.compile(r"""(=?[^\s=/>]+|=)(?:\s*=\s*(?:"([^"]*)"|'([^']*)'|([^\s>]*)))?""")


@dataclass(frozen=True, slots=True)
class Rewriter:
    """Knows what the proxy's paths begin with, and by which hosts the backend may call itself."""

    prefix: str
    hosts: frozenset[str]
    scheme: str = ""
    host: str = ""

    def location(self, url: str) -> str:
        """A link as the client must follow it. Raises ValueError for what is no URL."""
        parts: SplitResult = _split(url)
        foreign = bool(parts.netloc) and parts.netloc not in self.hosts
        if foreign or not parts.path.startswith("/"):
            return url
        path = parts.path
        if not path.startswith(self.prefix):
            path = posixpath.join(self.prefix, posixpath.normpath(path).lstrip("/"))
            if parts.path.endswith("/") and not path.endswith("/"):
                path += "/"
        return urlunsplit(SplitResult(self.scheme, self.host, path, parts.query, parts.fragment))

    def document(self, data: bytes, encoding: bytes, unwanted: threading.Event) -> bytes | None:
        """An HTML document with its links corrected; None for one that cannot be read, or is not wanted any more."""
        try:
            text = _decompress(data, encoding)
        except (OSError, EOFError, zlib.error, ValueError):
            return None
        written = bytearray()
        for piece in self.pieces(text.decode("utf-8", "surrogateescape")):
            if unwanted.is_set():
                return None
            written += piece.encode("utf-8", "surrogateescape")
        return _compress(bytes(written), encoding)

    def markup(self, text: str) -> str:
        """HTML with its links corrected."""
        return "".join(self.pieces(text))

    def pieces(self, text: str) -> Iterator[str]:
        """HTML with its links corrected. Every character is looked at once, whatever the document is like."""
        out: list[str] = []
        at = 0
        while (start := text.find("<", at)) >= 0:
            if len(out) >= _PIECES:
                yield "".join(out)
                out.clear()
            out.append(text[at:start])
            name = _TAG_NAME.match(text, start + 1)
            if name is None:
                at = _end_of_other(text, start)
                out.append(text[start:at])
                continue
            tag = name[0].lower()
            attributes, at, closing = _read_attributes(text, name.end())
            if at < 0:  # the document ends inside of a tag
                at = start
                break
            is_usual = len(attributes) <= _MOST_ATTRIBUTES
            out.append(self._tag(tag, attributes, closing) if is_usual else text[start:at])
            if tag in _RAW_TEXT and not closing:
                end = re.compile(rf"</{re.escape(tag)}[\s/>]", re.IGNORECASE).search(text, at)
                stop = len(text) if end is None else end.start()
                out.append(text[at:stop])
                at = stop
        out.append(text[at:])
        yield "".join(out)

    def _tag(self, tag: str, attributes: list[tuple[str, str]], closing: str) -> str:
        wanted = _URL_ATTRIBUTES.get(tag, ())
        written = [tag]
        for name, value in attributes:
            if name in wanted:
                with suppress(ValueError):  # no URL: left as it is
                    value = self.location(value)
            written.append(f'{name}="{_escape(value)}"')
        return f"<{' '.join(written)}{closing}>"


def _end_of_other(text: str, start: int) -> int:
    """Where a comment, an end tag, a declaration or a stray bracket ends."""
    if text.startswith("<!--", start):
        end = text.find("-->", start + 4)
        return len(text) if end < 0 else end + 3
    if text[start + 1 : start + 2] in ("/", "!", "?"):
        end = text.find(">", start)
        return len(text) if end < 0 else end + 1
    return start + 1


def _read_attributes(text: str, at: int) -> tuple[list[tuple[str, str]], int, str]:
    """Names and values, where the tag ends (-1: nowhere), and whether a slash closes it.

    Of more attributes than any tag has there is one too many.
    """
    found: list[tuple[str, str]] = []
    while True:
        filling = _FILLING.match(text, at)
        assert filling is not None
        at = filling.end()
        if text[at : at + 1] == ">":
            return found, at + 1, "/" if filling[0].endswith("/") else ""
        match = _ATTRIBUTE.match(text, at)
        if match is None:
            return found, -1, ""
        if len(found) <= _MOST_ATTRIBUTES:
            value = next((group for group in match.groups()[1:] if group is not None), "")
            found.append((match[1].lower(), _unescape(value)))
        at = match.end()


def _unescape(value: str) -> str:
    if "&" not in value:
        return value
    from html import unescape  # knows thousands of names, and few servers pass on pages

    return unescape(value)


def _escape(value: str) -> str:
    value = value.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return value.replace('"', "&#34;").replace("'", "&#39;").replace("\r", "&#13;")


def _decompress(data: bytes, encoding: bytes) -> bytes:
    if encoding == b"":
        return data
    if encoding == b"gzip":
        reader = zlib.decompressobj(zlib.MAX_WBITS | 16)
    elif encoding == b"deflate":
        reader = zlib.decompressobj(-zlib.MAX_WBITS)
    else:
        raise ValueError("unknown encoding")
    text = reader.decompress(data, MAX_HTML)
    if reader.unconsumed_tail:
        raise ValueError("too large")
    return text


def _compress(text: bytes, encoding: bytes) -> bytes:
    if encoding == b"gzip":
        return gzip.compress(text)
    if encoding == b"deflate":
        writer = zlib.compressobj(9, zlib.DEFLATED, -zlib.MAX_WBITS)
        return writer.compress(text) + writer.flush()
    return text
