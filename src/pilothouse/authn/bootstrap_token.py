"""Bootstrap tokens, by which new nodes introduce themselves: ``<id>.<secret>``, kept as secrets in kube-system.

A token that does not fit, for whatever reason, is no opinion: others may know it.
"""

from __future__ import annotations

import base64
import binascii
import datetime
import hmac
import re
import time
from collections.abc import Callable, Mapping
from typing import Any, Final

from pilothouse.authn.authenticator import Authenticated
from pilothouse.authn.service_account import ObjectGetter
from pilothouse.machinery.user import User

SECRET_TYPE: Final = "bootstrap.kubernetes.io/token"
NAMESPACE: Final = "kube-system"
_GROUP: Final = "system:bootstrappers"
_TOKEN = re.compile(r"([a-z0-9]{6})\.([a-z0-9]{16})", re.ASCII).fullmatch
_EXTRA_GROUP = re.compile(r"system:bootstrappers:[a-z0-9:-]{0,255}[a-z0-9]", re.ASCII).fullmatch


class BootstrapTokens:
    """Authenticates by the secrets of the cluster."""

    def __init__(self, objects: ObjectGetter, clock: Callable[[], float] = time.time) -> None:
        self._objects = objects
        self._clock = clock

    async def authenticate_token(self, token: str, audiences: tuple[str, ...]) -> Authenticated | None:
        """The user ``system:bootstrap:<id>``, None if the token is not one of ours."""
        match = _TOKEN(token)
        if match is None:
            return None
        identity, secret_part = match[1], match[2]
        secret = await self._objects.get("secrets", NAMESPACE, f"bootstrap-token-{identity}")
        if secret is None or secret["metadata"].get("deletionTimestamp") or secret.get("type") != SECRET_TYPE:
            return None
        data = _decode(secret.get("data") or {})
        if not hmac.compare_digest(data.get("token-secret", "").encode(), secret_part.encode()):
            return None
        if data.get("token-id") != identity or self._expired(data):
            return None
        groups = _groups(data.get("auth-extra-groups", ""))
        if data.get("usage-bootstrap-authentication") != "true" or groups is None:
            return None
        return Authenticated(User(f"system:bootstrap:{identity}", groups=groups))

    def _expired(self, data: Mapping[str, str]) -> bool:
        expiration = data.get("expiration", "")
        if not expiration:
            return False
        try:
            moment = datetime.datetime.fromisoformat(expiration)
        except ValueError:
            return True
        return moment.tzinfo is None or moment.timestamp() <= self._clock()


def _groups(extra: str) -> tuple[str, ...] | None:
    groups = {_GROUP}
    for group in extra.split(",") if extra else ():
        if not _EXTRA_GROUP(group):
            return None
        groups.add(group)
    return tuple(sorted(groups))


def _decode(data: Mapping[str, Any]) -> dict[str, str]:
    decoded: dict[str, str] = {}
    for key, value in data.items():
        try:
            decoded[key] = base64.b64decode(value or "").decode("utf-8", "replace")
        except (binascii.Error, ValueError):
            decoded[key] = ""
    return decoded
