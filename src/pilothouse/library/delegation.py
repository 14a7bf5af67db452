"""Authentication and authorization as the main API server decides them, by the authenticators and authorizers of ours.

    authentication    front proxy → client certificate → token (TokenReview) → anonymous
    authorization     system:masters → paths open to all → SubjectAccessReview

What the main server answered is kept for some seconds. A server that stands alone knows its own administrator, and
lets nobody else in.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping, Sequence
from typing import Any, Final

from pilothouse.authn import union
from pilothouse.authn.authentication import Replaceable
from pilothouse.authn.metrics import AuthenticationMetrics
from pilothouse.authn.outgoing import OutgoingCalls
from pilothouse.authz.always import SUPERUSERS, PrivilegedGroups
from pilothouse.authz.attributes import Attributes
from pilothouse.authz.authorizer import Authorizer, Decision, Union
from pilothouse.authz.metrics import AuthorizationMetrics
from pilothouse.authz.webhook import WebhookAuthorizer
from pilothouse.library.main_server import Main
from pilothouse.library.options import LibraryOptions
from pilothouse.library.trust import Trust
from pilothouse.machinery.errors import StatusError
from pilothouse.machinery.supervision import Supervisor

logger = logging.getLogger(__name__)
_TOKENS: Final = "/apis/authentication.k8s.io/v1/tokenreviews"
_ACCESS: Final = "/apis/authorization.k8s.io/v1/subjectaccessreviews"
_LOOK_SECONDS: Final = 60.0
"""Between two looks at whom to trust."""


class NoObjects:
    """Stands in for stored objects that tokens refer to: tokens are reviewed elsewhere."""

    async def get(self, resource: str, namespace: str, name: str) -> Mapping[str, Any] | None:
        """Nothing."""
        return None


class DelegatedAuthentication:
    """Who asks. ``start`` returns when it is known whom to trust."""

    def __init__(self, options: LibraryOptions, main: Main | None, outgoing: OutgoingCalls) -> None:
        self._options, self._main, self._outgoing = options, main, outgoing
        self._trust = Trust(options.trust_folder)
        self.metrics = AuthenticationMetrics()
        self._built = self._build()
        self.authenticator = Replaceable(self._built.authenticator)

    async def start(self, supervisor: Supervisor) -> None:
        """Ask whom to trust, and again now and then. Raises ``StatusError`` if that is not to be had."""
        main, flags = self._main, self._options.authentication
        if main is None or flags.skip_lookup:
            return
        try:
            await self._look(main)
        except (StatusError, OSError) as error:
            if not flags.tolerate_lookup_failure:
                raise
            logger.warning("it is not known whom to trust: %s", error)
        supervisor.run("whom to trust", lambda: self._keep_looking(main))

    async def _keep_looking(self, main: Main) -> None:
        while True:
            await asyncio.sleep(_LOOK_SECONDS)
            try:
                await self._look(main)
            except (StatusError, OSError) as error:
                logger.warning("cannot look whom to trust: %s", error)

    async def _look(self, main: Main) -> None:
        if await self._trust.fetch(main):
            self._built = await asyncio.to_thread(self._build)
            self.authenticator.current = self._built.authenticator

    def poll(self) -> None:
        """Re-read files that changed. Not to be called on the event loop."""
        for path in self._built.poll_files():
            logger.info("%s changed and was read again", path)

    def _build(self) -> union.Authentication:
        flags, trust = self._options.authentication, self._trust
        own = next(iter(self._options.authorities), "")
        settings = union.Settings(
            front_proxy=trust.front_proxy(flags),
            client_ca_file=trust.client_ca_file(flags) or own,
            token_webhook=None if self._main is None else self._main.poster(self._outgoing, _TOKENS),
            token_webhook_version="v1",
            token_webhook_ttl=flags.token_webhook_cache_ttl,
        )
        return union.build(settings, NoObjects(), metrics=self.metrics)


class OpenPaths:
    """Allows everybody to see some paths."""

    def __init__(self, paths: Sequence[str]) -> None:
        self._exact = frozenset(path for path in paths if not path.endswith("*"))
        self._beginnings = tuple(path[:-1] for path in paths if path.endswith("*"))

    async def authorize(self, attributes: Attributes) -> tuple[Decision, str]:
        """Allow these, no opinion about others."""
        return self.decide(attributes)

    def decide(self, attributes: Attributes) -> tuple[Decision, str]:
        """The same without a coroutine: nothing here waits."""
        path = attributes.path
        is_open = not attributes.resource_request and (path in self._exact or path.startswith(self._beginnings))
        return (Decision.ALLOW if is_open else Decision.NO_OPINION), ""


def delegated_authorizer(
    options: LibraryOptions, main: Main | None, outgoing: OutgoingCalls, metrics: AuthorizationMetrics
) -> Union:
    """Whether they may."""
    flags = options.authorization
    chain: list[tuple[str, Authorizer]] = [
        (SUPERUSERS, PrivilegedGroups()),
        ("open-paths", OpenPaths(flags.always_allow_paths)),
    ]
    if main is not None:
        post = main.poster(outgoing, _ACCESS)
        asked = WebhookAuthorizer(post, "v1", flags.authorized_ttl, flags.unauthorized_ttl, metrics=metrics.webhooks)
        chain.append(("delegated", asked))
    return Union(chain)
