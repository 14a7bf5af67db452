"""The name of a manager who gives none: what its User-Agent starts with."""

from __future__ import annotations

MAX_BYTES = 128


def manager_of(manager: str, user_agent: str) -> str:
    """The given name, or the printable part of the User-Agent before its first slash, at most 128 bytes of it.

    A byte that is no UTF-8, which comes as a surrogate, becomes a replacement character.
    """
    if manager:
        return manager
    prefix = user_agent.partition("/")[0]
    if prefix.isprintable() and prefix.isascii():
        return prefix[:MAX_BYTES]
    out, size = [], 0
    for char in prefix:
        if "\udc80" <= char <= "\udcff":
            char = "\ufffd"
        if not char.isprintable():
            continue
        size += len(char.encode())
        if size > MAX_BYTES:
            break
        out.append(char)
    return "".join(out)
