"""What the secrets of bootstrap tokens say."""

from __future__ import annotations

import base64
import re
from typing import Final

from pilothouse.machinery.objects import Object
from pilothouse.machinery.times import Instant, TimeError, parse_time

TYPE: Final = "bootstrap.kubernetes.io/token"
NAMESPACE: Final = "kube-system"
_NAME: Final = re.compile(r"bootstrap-token-([a-z0-9]{6})")


def is_bootstrap_token(secret: Object) -> bool:
    """Whether a secret holds a bootstrap token."""
    return secret.get("type") == TYPE and secret["metadata"]["namespace"] == NAMESPACE


def text_of(secret: Object, name: str) -> str:
    """A field of a token."""
    return base64.b64decode((secret.get("data") or {}).get(name) or "").decode(errors="replace")


def seconds_left(secret: Object, now: Instant) -> float | None:
    """For how long a token holds; nothing or less if it has expired, None if it does not expire."""
    expires = text_of(secret, "expiration")
    if not expires:
        return None
    try:
        return parse_time(expires).since(now)
    except TimeError:
        return 0.0


def signing_token(secret: Object, now: Instant) -> tuple[str, str] | None:
    """Id and secret of a token that may sign; None for others."""
    match = _NAME.fullmatch(secret["metadata"]["name"])
    token_id, value = text_of(secret, "token-id"), text_of(secret, "token-secret")
    left = seconds_left(secret, now)
    if match is None or match[1] != token_id or not value or (left is not None and left <= 0):
        return None
    return (token_id, value) if text_of(secret, "usage-bootstrap-signing") == "true" else None
