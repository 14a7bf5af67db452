"""Tokens in secrets that nobody has used for a year: first labelled as invalid, and a year later deleted.

Only those that were made for their account (which names them) and that no pod mounts.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final

from pilothouse.authn.service_account import INVALID_SINCE_LABEL, LAST_USED_LABEL
from pilothouse.controllers.manager.context import ControllerContext
from pilothouse.controllers.runtime.batches import attempt_all
from pilothouse.controllers.runtime.controller import Periodic
from pilothouse.controllers.tokens.service_account_tokens import ACCOUNT_NAME, ACCOUNT_UID, TYPE
from pilothouse.machinery import errors
from pilothouse.machinery.objects import Object
from pilothouse.machinery.times import Instant, format_time, parse_time

_ACCOUNT: Final = "legacy-service-account-token-cleaner"
_ROUND_SECONDS: Final = 24 * 3600.0
_UNUSED_SECONDS: Final = 365 * 24 * 3600
_DAY: Final = 24 * 3600
_DATE: Final = re.compile(r"\d{4}-\d{2}-\d{2}")
_TRACKING: Final = "kube-apiserver-legacy-service-account-token-tracking"


def start(context: ControllerContext) -> None:
    """Start the cleaner."""
    cleaner = LegacyTokenCleaner(context)
    name = "legacy-serviceaccount-token-cleaner-controller"
    Periodic(name, cleaner.clean, _ROUND_SECONDS, clock=context.clock).start(context.supervisor)


class LegacyTokenCleaner:
    """Goes over all token secrets once a day."""

    def __init__(self, context: ControllerContext) -> None:
        self._clock = context.clock
        self._secrets = context.informers.of("", "v1", "secrets")
        self._accounts = context.informers.of("", "v1", "serviceaccounts")
        self._pods = context.informers.of("", "v1", "pods")
        client = context.client(_ACCOUNT)
        self._client, self._maps = client.of("", "v1", "secrets"), client.of("", "v1", "configmaps")

    async def clean(self) -> None:
        """One round. Nothing happens until use has been tracked for as long as a token may go unused."""
        for informer in (self._secrets, self._accounts, self._pods):
            await informer.wait_synced()
        now = self._clock.now()
        since = await self._tracked_since()
        if since is None or now.seconds < since + _DAY + _UNUSED_SECONDS:
            return
        limit = Instant(now.seconds - _UNUSED_SECONDS, 0)
        unused = [secret for secret in self._secrets.lister.list() if self._is_unused(secret, limit)]
        await attempt_all(unused, lambda secret: self._invalidate_or_delete(secret, now, limit))

    async def _tracked_since(self) -> int | None:
        try:
            tracking = await self._maps.get("kube-system", _TRACKING)
        except errors.NotFound:
            return None
        text = (tracking.get("data") or {}).get("since") or ""
        return parse_time(f"{text}T00:00:00Z").seconds if _DATE.fullmatch(text) else None

    def _is_unused(self, secret: Object, limit: Instant) -> bool:
        metadata = secret["metadata"]
        if secret.get("type") != TYPE or metadata.get("deletionTimestamp"):
            return False
        if parse_time(metadata["creationTimestamp"]).seconds >= limit.seconds:
            return False
        used = (metadata.get("labels") or {}).get(LAST_USED_LABEL)
        if used is not None and (not _DATE.fullmatch(used) or used >= _date(limit)):
            return False
        return self._is_named_by_account(secret) and not self._is_mounted(secret)

    def _is_named_by_account(self, secret: Object) -> bool:
        annotations = secret["metadata"].get("annotations") or {}
        account = self._accounts.lister.get(secret["metadata"]["namespace"], annotations.get(ACCOUNT_NAME) or "")
        if account is None or annotations.get(ACCOUNT_UID, "") not in ("", account["metadata"]["uid"]):
            return False
        return any(each.get("name") == secret["metadata"]["name"] for each in account.get("secrets") or ())

    def _is_mounted(self, secret: Object) -> bool:
        name = secret["metadata"]["name"]
        pods = self._pods.lister.list(secret["metadata"]["namespace"])
        return any(name in set(secret_names(pod["spec"])) for pod in pods)

    async def _invalidate_or_delete(self, secret: Object, now: Instant, limit: Instant) -> None:
        metadata = secret["metadata"]
        since = (metadata.get("labels") or {}).get(INVALID_SINCE_LABEL) or ""
        key = metadata["namespace"], metadata["name"]
        try:
            if not _DATE.fullmatch(since):
                labels = {INVALID_SINCE_LABEL: _date(now)}
                await self._client.patch(*key, {"metadata": {"uid": metadata["uid"], "labels": labels}})
            elif since < _date(limit):
                await self._client.delete(*key, resource_version=metadata["resourceVersion"])
        except (errors.NotFound, errors.Conflict):
            return


def secret_names(value: Any) -> Iterator[str]:
    """The secrets that a pod's spec names anywhere."""
    if isinstance(value, list):
        for each in value:
            yield from secret_names(each)
    elif isinstance(value, dict):
        for name, each in value.items():
            if name == "secretName" and isinstance(each, str):
                yield each
            elif name in ("secretRef", "secretKeyRef", "secret") and isinstance(each, dict) and "name" in each:
                yield each["name"]
            elif name == "imagePullSecrets":
                yield from (each["name"] for each in each or () if each.get("name"))
            yield from secret_names(each)


def _date(instant: Instant) -> str:
    return format_time(instant)[:10]
