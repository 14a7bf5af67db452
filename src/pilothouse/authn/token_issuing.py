"""The service account tokens that this server issues: who signs them, the keys others verify them with.

Keys are in files, or with an external signer, which is asked for them and for its limits when the server starts.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from pilothouse.authn import union
from pilothouse.authn.external_signer import SERVICE, ExternalSigner, SigningFailed
from pilothouse.authn.jose import Signer, VerificationKey, load_private_key
from pilothouse.authn.metrics import SignerMetrics
from pilothouse.authn.openid_metadata import MAX_AGE
from pilothouse.authn.service_account import ObjectGetter
from pilothouse.authn.token_request import ClaimSigner, TokenRequests
from pilothouse.machinery.metrics import Instrument
from pilothouse.machinery.supervision import Supervisor
from pilothouse.machinery.watched_file import WatchedFile
from pilothouse.net.unary_calls import UnaryCalls


class SignerUnusable(OSError):
    """The external signer of tokens is not there, or not fit for what the flags ask."""


@dataclass(frozen=True, slots=True, kw_only=True)
class IssuingSettings:
    """What the flags say about issued tokens; the first of the issuers issues."""

    issuers: tuple[str, ...]
    audiences: tuple[str, ...]
    key_files: Sequence[str] = ()
    signing_key_file: str = ""
    signing_endpoint: str = ""
    max_seconds: int = 0
    extend: bool = True


class TokenIssuing:
    """Issues tokens and tells the keys that verify them."""

    def __init__(self, settings: IssuingSettings, objects: ObjectGetter, supervisor: Supervisor) -> None:
        self._settings, self._supervisor = settings, supervisor
        self.objects = objects
        self._calls = UnaryCalls(settings.signing_endpoint, SERVICE) if settings.signing_endpoint else None
        self._signer_metrics = SignerMetrics()
        self.external = None if self._calls is None else ExternalSigner(self._calls, self._signer_metrics)
        self._key_files: list[WatchedFile[Any]] = []
        self._keys = union.read_keys(settings.key_files, self._key_files)
        self.requests = self._make_requests()

    def _make_requests(self) -> TokenRequests | None:
        settings = self._settings
        signer: ClaimSigner | None = self.external
        if signer is None and settings.signing_key_file:
            with open(settings.signing_key_file, "rb") as file:
                signer = Signer(load_private_key(file.read()))
        if signer is None or not settings.issuers:
            return None
        return TokenRequests(
            settings.issuers[0],
            signer,
            settings.audiences,
            self.objects,
            time.time,
            max_seconds=settings.max_seconds,
            extend=settings.extend,
        )

    @property
    def issuer(self) -> str:
        """The name under which tokens are issued; empty if there is none."""
        return self._settings.issuers[0] if self._settings.issuers else ""

    def instruments(self) -> tuple[Instrument, ...]:
        """What is counted about the external signer, if there is one."""
        return () if self.external is None else self._signer_metrics.instruments()

    def public_keys(self) -> list[VerificationKey]:
        """The keys that tokens of this server are verified with, as far as others are told."""
        return list(self._keys() if self.external is None else self.external.shown_keys())

    @property
    def keys_max_age(self) -> int:
        """For how many seconds others may keep the keys."""
        return MAX_AGE if self.external is None else self.external.max_age

    async def start(self) -> None:
        """Ask the external signer for its keys and limits, if there is one. Raises SignerUnusable."""
        if self.external is None:
            return
        try:
            try:
                await self.external.refresh()
            except SigningFailed as failure:
                words = "while initially filling key cache: while performing initial cache fill"
                raise SigningFailed(f"{words}: {failure}") from None
            longest = await self.external.longest_seconds()
        except SigningFailed as failure:
            raise SignerUnusable(f"while setting up external-jwt-signer: {failure}") from None
        if self.requests is not None:
            try:
                self.requests.narrow(longest)
            except ValueError as error:
                raise SignerUnusable(str(error)) from None
        self._supervisor.run("keys of the external signer", self.external.keep_fresh)

    def poll(self) -> None:
        """Re-read key files that changed. Not to be called on the event loop."""
        for file in self._key_files:
            file.poll()

    async def close(self) -> None:
        """End the connection to the external signer."""
        if self._calls is not None:
            await self._calls.close()
