"""Reads string and bytes literals: quotes, raw prefixes and escapes, with kube-apiserver's words for what is wrong."""

from __future__ import annotations

_SIMPLE = {
    "a": 7, "b": 8, "f": 12, "n": 10, "r": 13, "t": 9, "v": 11, "\\": 92, "'": 39, '"': 34, "`": 96, "?": 63,
}  # fmt: skip
_HEX_DIGITS = {"x": 2, "X": 2, "u": 4, "U": 8}


def unquote(text: str) -> str:
    """Return the value of a string literal; ValueError carries the complaint."""
    raw, body = _strip(text)
    if raw or "\\" not in body:
        return body
    pieces: list[str] = []
    for code, plain, _ in _scan(body):
        if plain:
            pieces.append(plain)
            continue
        if code > 0x10FFFF or 0xD800 <= code <= 0xDFFF:
            raise ValueError("invalid unicode code point")
        pieces.append(chr(code))
    return "".join(pieces)


def unquote_bytes(text: str) -> bytes:
    """Return the value of a bytes literal given without its `b`."""
    raw, body = _strip(text)
    if raw or "\\" not in body:
        return body.encode("utf-8", "surrogatepass")
    out = bytearray()
    for code, plain, wide in _scan(body):
        if plain:
            out += plain.encode("utf-8", "surrogatepass")
        elif wide:
            raise ValueError("unable to unescape string")
        else:
            out.append(code)
    return bytes(out)


def _strip(text: str) -> tuple[bool, str]:
    raw = text[0] in "rR"
    body = text[1:] if raw else text
    body = body.replace("\r\n", "\n").replace("\r", "\n")
    quotes = 3 if body[:3] in ('"""', "'''") and len(body) >= 6 else 1
    return raw, body[quotes:-quotes]


def _scan(body: str) -> list[tuple[int, str, bool]]:
    """Cut a body into (code, "", needs unicode) for escapes and (0, text, False) for the rest."""
    found: list[tuple[int, str, bool]] = []
    position = 0
    while position < len(body):
        if body[position] != "\\":
            stop = body.find("\\", position)
            stop = len(body) if stop < 0 else stop
            found.append((0, body[position:stop], False))
            position = stop
            continue
        letter = body[position + 1] if position + 1 < len(body) else ""
        digits = _HEX_DIGITS.get(letter)
        if digits:
            found.append((int(body[position + 2 : position + 2 + digits], 16), "", letter in "uU"))
            position += 2 + digits
        elif letter and letter in "0123":
            found.append((int(body[position + 1 : position + 4], 8), "", False))
            position += 4
        elif letter in _SIMPLE:
            found.append((_SIMPLE[letter], "", False))
            position += 2
        else:
            raise ValueError("unable to unescape string")
    return found
