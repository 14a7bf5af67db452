"""Who is asking, by everything that flags and ``--authentication-config`` say.

What changes at run time is owned here: files named by flags (``poll`` re-reads them off the event loop) and the
configuration file, whose new content replaces the whole authenticator at once, or is refused and logged.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from pilothouse.authn import union
from pilothouse.authn.authenticator import Authenticated, Authenticator, Union
from pilothouse.authn.metrics import AuthenticationMetrics
from pilothouse.authn.outgoing import OutgoingCalls
from pilothouse.authn.service_account import ObjectGetter
from pilothouse.authn.stored_objects import LegacyTokenUse
from pilothouse.machinery.reloaded_file import ReloadedFile
from pilothouse.machinery.watched_file import WatchedFile
from pilothouse.net.messages import Request

if TYPE_CHECKING:
    from pilothouse.authn.authentication_configuration import AuthenticationConfiguration, TrustedIssuer

logger = logging.getLogger(__name__)


class Replaceable:
    """An authenticator that can be exchanged while requests are served."""

    def __init__(self, current: Union) -> None:
        self.current = current

    async def authenticate(self, request: Request) -> Authenticated | None:
        """As the present one."""
        return await self.current.authenticate(request)

    def recall(self, request: Request) -> Authenticated | None:
        """The same."""
        return self.current.recall(request)


class Authentication:
    """All ways of authenticating that are asked for.

    ``read_settings`` gives what flags say, and is called again when one of ``sources`` has changed;
    ``configuration`` is the configuration file, ``anonymous_fixed`` whether a flag has settled who need not
    authenticate.
    """

    def __init__(
        self,
        read_settings: Callable[[], union.Settings],
        objects: ObjectGetter,
        legacy_use: LegacyTokenUse,
        outgoing: OutgoingCalls,
        metrics: AuthenticationMetrics,
        *,
        configuration: ReloadedFile[AuthenticationConfiguration] | None = None,
        sources: tuple[WatchedFile[Any], ...] = (),
        anonymous_fixed: bool = False,
    ) -> None:
        self.metrics = metrics
        self._read_settings, self._objects, self._legacy_use = read_settings, objects, legacy_use
        self._outgoing, self._sources, self._anonymous_fixed = outgoing, sources, anonymous_fixed
        self._anonymous: tuple[bool | None, tuple[str, ...]] | None = None
        self._file, self._configuration = configuration, None if configuration is None else configuration.value
        if self._configuration is not None:
            self._accept(self._configuration)
        self._settings = read_settings()
        self._built = self._build()
        exchangeable = configuration is not None or sources
        self._replaceable = Replaceable(self._built.authenticator) if exchangeable else None
        self.authenticator: Authenticator = self._replaceable or self._built.authenticator

    @property
    def built(self) -> union.Authentication:
        """The authenticators as they are now."""
        return self._built

    @property
    def anonymous(self) -> bool:
        """Whether a request without credentials is let in somewhere."""
        return self._present().anonymous

    def poll(self) -> None:
        """Re-read files that changed. Not to be called on the event loop."""
        for path in self._built.poll_files():
            logger.info("%s changed and was read again", path)
        for source in self._sources:
            if source.poll():
                self._settings = self._read_settings()
                self._replace()
                logger.info("%s changed and was read again", source.path)
        if self._file is not None:
            self._file.poll_into(self._take)

    async def close(self) -> None:
        """Wait for what was begun on the side."""
        await self._legacy_use.close()

    def _take(self, configuration: AuthenticationConfiguration) -> None:
        self._accept(configuration)
        self._replace()

    def _accept(self, configuration: AuthenticationConfiguration) -> None:
        """Go by a content of the file from now on. Raises ``ValueError``.

        Who need not authenticate is settled at the start, by one source.
        """
        said = (configuration.anonymous, configuration.anonymous_paths)
        if self._anonymous is None:
            if configuration.anonymous is not None and self._anonymous_fixed:
                detail = "--anonymous-auth flag cannot be set when anonymous field is configured in authentication "
                raise ValueError(f"anonymous: Forbidden: {detail}configuration file")
            self._anonymous = said
        elif said != self._anonymous:
            raise ValueError("anonymous: Forbidden: changed from initial configuration file")
        self._configuration = configuration

    def _replace(self) -> None:
        """Authenticate from now on by what files say now. Raises ``OSError`` and ``ValueError``."""
        assert self._replaceable is not None
        self._built = self._build()
        self._replaceable.current = self._built.authenticator

    def _build(self) -> union.Authentication:
        return union.build(self._present(), self._objects, self._fetch_for, self._legacy_use.note, self.metrics)

    def _fetch_for(self, issuer: TrustedIssuer) -> Any:
        return self._outgoing.fetch_for(issuer.certificate_authority)

    def _present(self) -> union.Settings:
        """The flags together with what the configuration file says now."""
        configuration = self._configuration
        if configuration is None:
            return self._settings
        settings = replace(self._settings, oidc_issuers=configuration.issuers)
        if configuration.anonymous is not None:
            settings.anonymous = configuration.anonymous
            settings.anonymous_paths = configuration.anonymous_paths
        return settings
