"""The server's own log: to standard error, one line a message, in the layout of kube-apiserver's (klog), or as JSON.

    I1116 04:41:07.123456    4711 serving.py:42] Serving on 0.0.0.0:6443
    {"ts":1794804067123.456,"caller":"serving.py:42","msg":"Serving on 0.0.0.0:6443","v":0}

With ``--log-text-split-stream`` or its like for JSON, only what is wrong goes there, and the rest to standard output.

The letter is the severity: D, I, W, E or F. What ``-v`` adds is said in ``machinery/verbosity.py``. What follows the
word "bearer" is masked, in tracebacks too. That is a safety net, not a licence: a token in any other form is not
recognised, so code must not log one.
"""

from __future__ import annotations

import logging
import re
import sys
import time
from contextlib import nullcontext
from typing import TextIO

import orjson

from pilothouse.machinery.log_pace import LogPace
from pilothouse.machinery.verbosity import REQUESTS, ModuleLevels, level_of, set_verbosity
from pilothouse.options.logs import LogOptions

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
    return _TOKEN.sub(r"\1<masked>", text) if "bearer" in text.lower() else text


class BufferedHandler(logging.StreamHandler[TextIO]):
    """Writes once so many characters have come together, and whenever it is flushed."""

    def __init__(self, stream: TextIO, size: int) -> None:
        super().__init__(stream)
        self._size, self._kept, self._length = size, list[str](), 0

    def emit(self, record: logging.LogRecord) -> None:
        line = self.format(record) + self.terminator
        self._kept.append(line)
        self._length += len(line)
        if self._length >= self._size:
            self.flush()

    def flush(self) -> None:
        with self.lock or nullcontext():
            kept, self._kept, self._length = self._kept, [], 0
            try:
                self.stream.write("".join(kept))
            except (OSError, ValueError):
                self._kept = []
        super().flush()


def set_up_logging(flags: LogOptions, stream: TextIO | None = None) -> None:
    """Send the log of the whole process to the stream, standard error by default; may be called again."""
    root = logging.getLogger()
    root.handlers[:] = _handlers(flags, stream or sys.stderr)
    root.setLevel(logging.WARNING)
    for handler in root.handlers:
        handler.setFormatter(JsonFormatter() if flags.format == "json" else KlogFormatter())
        if flags.vmodule:
            handler.addFilter(ModuleLevels(flags.verbosity, flags.vmodule))
        handler.addFilter(LogPace())
    levels = (flags.verbosity, *(level for _, level in flags.vmodule))
    set_verbosity(max(levels, key=lambda each: -level_of(each)))


def _handlers(flags: LogOptions, stream: TextIO) -> list[logging.Handler]:
    """One for all, or one for errors and one for the rest, which goes to standard output."""
    if not flags.splits_streams:
        return [logging.StreamHandler(stream)]
    errors, rest = logging.StreamHandler(stream), BufferedHandler(sys.stdout, flags.info_buffer_bytes)
    severe = logging.ERROR if flags.format == "json" else logging.WARNING
    errors.setLevel(severe)
    rest.addFilter(lambda record: record.levelno < severe)
    return [errors, rest]
