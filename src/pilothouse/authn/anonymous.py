"""The identity of a request that offers no credentials, everywhere or on configured paths only."""

from __future__ import annotations

from collections.abc import Iterable

from pilothouse.authn.authenticator import Authenticated
from pilothouse.machinery.user import ALL_UNAUTHENTICATED, ANONYMOUS, User
from pilothouse.net.messages import Request


class Anonymous:
    """Vouches for everybody as ``system:anonymous``; with paths, only for requests to exactly these paths."""

    def __init__(self, paths: Iterable[str] = (), audiences: tuple[str, ...] = ()) -> None:
        self._paths = frozenset(paths)
        self._identity = Authenticated(User(ANONYMOUS, groups=(ALL_UNAUTHENTICATED,)), audiences)

    async def authenticate(self, request: Request) -> Authenticated | None:
        """The anonymous identity, None on other paths."""
        if self._paths and request.path not in self._paths:
            return None
        return self._identity
