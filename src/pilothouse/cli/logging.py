"""The server's own log: to standard error, one line a message, in the layout of kube-apiserver's (klog), or as JSON.

    I1116 04:41:07.123456    4711 serving.py:42] Serving on 0.0.0.0:6443
    {"ts":1794804067123.456,"caller":"serving.py:42","msg":"Serving on 0.0.0.0:6443","v":0}

The letter is the severity: D, I, W, E or F. What ``-v`` adds is said in ``machinery/verbosity.py``. What follows the
word "bearer" is masked, in tracebacks too. That is a safety net, not a licence: a token in any other form is not
recognised, so code must not log one.
"""

from __future__ import annotations

import logging
import re
import sys
import time
from typing import TextIO

import orjson

from pilothouse.machinery.verbosity import REQUESTS, ModuleLevels, level_of, set_verbosity

_LETTERS = {logging.DEBUG: "D", logging.INFO: "I", logging.WARNING: "W", logging.ERROR: "E", logging.CRITICAL: "F"}
_VERBOSITIES = {logging.DEBUG: 4, REQUESTS: 3}
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
        return head + _mask(text)


class JsonFormatter(logging.Formatter):
    """Formats a record as an object on a line, and masks tokens in it. Errors have no verbosity."""

    def format(self, record: logging.LogRecord) -> str:
        line: dict[str, object] = {
            "ts": round(record.created * 1e3, 3),
            "caller": f"{record.filename}:{record.lineno}",
            "msg": _mask(record.getMessage()),
        }
        if record.levelno < logging.ERROR:
            line["v"] = _VERBOSITIES.get(record.levelno, 0)
        if record.exc_info:
            line["err"] = _mask(self.formatException(record.exc_info))
        return orjson.dumps(line, default=str).decode()


def _mask(text: str) -> str:
    return _TOKEN.sub(r"\1<masked>", text)


def set_up_logging(
    verbosity: int,
    stream: TextIO | None = None,
    *,
    form: str = "text",
    modules: tuple[tuple[str, int], ...] = (),
) -> None:
    """Send the log of the whole process to the stream, standard error by default; may be called again."""
    handler = logging.StreamHandler(stream or sys.stderr)
    handler.setFormatter(JsonFormatter() if form == "json" else KlogFormatter())
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(logging.WARNING)
    set_verbosity(max((verbosity, *(level for _, level in modules)), key=lambda each: -level_of(each)))
    if modules:
        handler.addFilter(ModuleLevels(verbosity, modules))
