"""Tokens that a webhook reviews (``TokenReview`` v1 or v1beta1). To be wrapped in a ``TokenCache``."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

from pilothouse.authn.authenticator import Authenticated, InvalidCredentials
from pilothouse.authn.webhook_calls import Post, Sleep, WebhookFailed, call
from pilothouse.machinery.go_quote import quote
from pilothouse.machinery.user import User

VERSIONS = ("v1", "v1beta1")


class TokenWebhook:
    """Asks the webhook about a token."""

    def __init__(
        self, post: Post, version: str, api_audiences: Sequence[str] = (), sleep: Sleep = asyncio.sleep
    ) -> None:
        if version not in VERSIONS:
            raise ValueError(
                f'unsupported authentication webhook version {quote(version)}, supported versions are "v1", "v1beta1"'
            )
        self._post = post
        self._version = f"authentication.k8s.io/{version}"
        self._api_audiences = tuple(api_audiences)
        self._sleep = sleep

    async def authenticate_token(self, token: str, audiences: tuple[str, ...]) -> Authenticated | None:
        """The user that the webhook names; None if it does not know the token."""
        spec: dict[str, Any] = {"token": token}
        if audiences:
            spec["audiences"] = list(audiences)
        review = {"kind": "TokenReview", "apiVersion": self._version, "metadata": {}, "spec": spec}
        review["status"] = {"user": {}}
        try:
            status = await call(self._post, review, self._sleep)
        except WebhookFailed as failure:
            raise InvalidCredentials(str(failure)) from None
        return self._read(status, audiences)

    def _read(self, status: Mapping[str, Any], audiences: tuple[str, ...]) -> Authenticated | None:
        held = tuple(status.get("audiences") or ()) or self._api_audiences
        common = tuple(audience for audience in audiences if audience in held)
        if audiences and not common:
            return None
        if not status.get("authenticated"):
            if status.get("error"):
                raise InvalidCredentials(str(status["error"]))
            return None
        info = status.get("user") or {}
        extra = {str(key): tuple(values or ()) for key, values in (info.get("extra") or {}).items()}
        user = User(info.get("username", ""), info.get("uid", ""), tuple(info.get("groups") or ()), extra)
        return Authenticated(user, common)
