"""The process that large patterns are compiled and searched for by: ``re2_process.py FOLDER SOCKET``.

``FOLDER`` is where the module ``re2`` is. Each request on the socket is a pattern, a text, where in it to begin, and
how many matches are wanted; the answer is where matches are, or why the pattern is none. It ends when its parent does.

It is run as a script, without importing anything of ours, so that it takes a few megabytes.
"""

from __future__ import annotations

import os
import signal
import socket
import sys
from array import array
from functools import lru_cache
from itertools import islice
from struct import Struct
from typing import Any

REQUEST = Struct("<II?II")
"""How long the pattern and the text are in bytes, whether it is text, where to begin, how many matches are wanted."""
ANSWER = Struct("<ci")
"""Whether the pattern is one, and how many bytes follow: positions, or what is wrong."""
GOOD, BAD = b"+", b"-"
MOST_KEPT = 32


def received(parent: socket.socket, size: int) -> bytes:
    """Exactly so many bytes. Raises ``EOFError`` where there are no more to come."""
    pieces = []
    while size:
        piece = parent.recv(min(size, 1 << 20))
        if not piece:
            raise EOFError
        pieces.append(piece)
        size -= len(piece)
    return b"".join(pieces)


@lru_cache(maxsize=MOST_KEPT)
def compiled(pattern: str) -> Any:
    """The compiled pattern; the latest are kept."""
    import re2

    options = re2.Options()
    options.log_errors = False
    options.never_capture = True
    return re2.compile(pattern, options)


def find(pattern: Any, text: str | bytes, start: int, most: int) -> array[int]:
    """The beginnings and ends of matches: in characters, or of bytes in bytes."""
    found = array("I")
    for match in islice(pattern.finditer(text, start), most):
        found.extend(match.span())
    return found


def main() -> None:
    """Answer until nobody is there to ask."""
    # Interrupts of a terminal and ends of a service reach us too, but are for our parent, and we end with it.
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    sys.path.insert(0, sys.argv[1])
    parent = socket.socket(fileno=int(sys.argv[2]))
    while True:
        pattern_size, size, is_text, start, most = REQUEST.unpack(received(parent, REQUEST.size))
        pattern, data = received(parent, pattern_size).decode(), received(parent, size)
        try:
            told, kind = find(compiled(pattern), data.decode() if is_text else data, start, most).tobytes(), GOOD
        except Exception as error:
            reason = error.args[0] if error.args else b""
            told, kind = reason if isinstance(reason, bytes) else str(reason).encode(errors="replace"), BAD
        parent.sendall(ANSWER.pack(kind, len(told)) + told)


if __name__ == "__main__":
    try:
        main()
    except (EOFError, OSError):
        os._exit(0)
