"""A line for every request at ``-v=3`` and up, and for slow ones always: who asked for what, and where the time went.

Queries are shown; headers and bodies, which may hold secrets, are not.
"""

from __future__ import annotations

import logging
from typing import Final

from pilothouse.endpoints.request import APIRequest
from pilothouse.filters.timeout import is_long_running
from pilothouse.machinery.go_quote import quote
from pilothouse.machinery.verbosity import REQUESTS

SLOW_SECONDS: Final = 0.5
logger = logging.getLogger(__name__)


def log_answer(request: APIRequest, seconds: float, code: int) -> None:
    """Log a request that is answered; whoever measured it calls this."""
    if seconds > SLOW_SECONDS and not is_long_running(request):
        logger.info("Slow request %s", _describe(request, seconds, code))
    elif logger.isEnabledFor(REQUESTS):
        logger.log(REQUESTS, "HTTP %s", _describe(request, seconds, code))


def _describe(request: APIRequest, seconds: float, code: int) -> str:
    user = getattr(request, "user", None)
    parts = {
        "verb": request.method,
        "URI": request.target.decode(errors="replace"),
        "latency": _milliseconds(seconds),
        "authentication": _milliseconds(request.authentication_seconds),
        "queued": _milliseconds(request.queued_seconds),
        "userAgent": request.headers.get(b"user-agent", b"").decode("latin-1"),
        "audit-ID": request.audit_id,
        "user": "" if user is None else user.name,
    }
    return "".join(f"{name}={quote(value)} " for name, value in parts.items()) + f"resp={code}"


def _milliseconds(seconds: float) -> str:
    return f"{seconds * 1e3:.3f}ms"
