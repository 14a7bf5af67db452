"""How calling a webhook ends badly: it could not be asked, or it said no."""

from __future__ import annotations

from typing import Any

from pilothouse.machinery import errors
from pilothouse.machinery.go_quote import quote


class CallFailed(Exception):
    """No usable answer; the webhook's failure policy decides what follows."""

    def __init__(self, hook: str, reason: str, code: int = 503) -> None:
        super().__init__(f"failed calling webhook {quote(hook)}: {reason}")
        self.code = code
        """What is counted as the code of the answer."""

    def as_status(self) -> errors.StatusError:
        """The 500 for a webhook that must not fail."""
        return errors.internal_error(str(self))


class Rejection(errors.StatusError):
    """A webhook said no."""


def rejection(hook: str, result: dict[str, Any] | None) -> Rejection:
    """The refusal that a webhook's answer amounts to."""
    result = result or {}
    code = result.get("code")
    code = code if isinstance(code, int) and code >= 400 else 400
    reason = str(result.get("reason") or "")
    denied = f"admission webhook {quote(hook)} denied the request"
    why = result.get("message") or reason
    message = f"{denied}: {why}" if why else f"{denied} without explanation"
    details = result.get("details")
    return Rejection(code, reason, message, details if isinstance(details, dict) else None)


def dry_run_unsupported(hook: str) -> errors.StatusError:
    """For webhooks with side effects that a dry run could not keep from happening."""
    return errors.bad_request(f"admission webhook {quote(hook)} does not support dry run")
