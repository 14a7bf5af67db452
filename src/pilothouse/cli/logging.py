"""The server's own log: to standard error, one line a message, in the layout of the original's (klog).

    I1116 04:41:07.123456    4711 serving.py:42] Serving on 0.0.0.0:6443

The letter is the severity: D, I, W, E or F. ``-v=4`` and up adds debugging messages. What follows the word "bearer" is
masked, in tracebacks too. That is a safety net, not a licence: a token in any other form is not recognised, so code
must not log one.
"""

from __future__ import annotations

import logging
import re
import sys
import time
from typing import TextIO

DEBUG_VERBOSITY = 4
_LETTERS = {logging.DEBUG: "D", logging.INFO: "I", logging.WARNING: "W", logging.ERROR: "E", logging.CRITICAL: "F"}
_TOKEN = re.compile(r"(?i)\b(bearer(?:\s+|%20|\.authorization\.k8s\.io\.))[A-Za-z0-9._~+/=-]{4,}")


class KlogFormatter(logging.Formatter):
    """Formats a record as klog does and masks tokens in it."""

    def format(self, record: logging.LogRecord) -> str:
        when = time.strftime("%m%d %H:%M:%S", time.localtime(record.created))
        micros = int(record.created % 1 * 1_000_000)
        letter = _LETTERS.get(record.levelno, "I")
        text = record.getMessage()
        if record.exc_info:
            text = f"{text}\n{self.formatException(record.exc_info)}"
        head = f"{letter}{when}.{micros:06d} {record.process or 0:7d} {record.filename}:{record.lineno}] "
        return head + _TOKEN.sub(r"\1<masked>", text)


def set_up_logging(verbosity: int, stream: TextIO | None = None) -> None:
    """Send the log of the whole process to the stream, standard error by default; may be called again."""
    handler = logging.StreamHandler(stream or sys.stderr)
    handler.setFormatter(KlogFormatter())
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(logging.WARNING)
    logging.getLogger("pilothouse").setLevel(logging.DEBUG if verbosity >= DEBUG_VERBOSITY else logging.INFO)
