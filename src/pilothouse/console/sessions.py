"""How a browser that has no client certificate signs in as somebody who can reach the server otherwise.

    pilothouse console ──POST /console/tickets──► a ticket: good once, for five minutes, in the URL's fragment
    the page           ──POST /console/login────► a token: a bearer token like any other, for twelve hours

A token stands for the very user who asked for the ticket, groups included, and for nobody else; whether one may ask
for tickets is authorized as any other path. Tickets and tokens live in the memory of this process, as digests, and end
with it. There are never more of them than a bound: the oldest of whoever has most make room, so that nobody signs
others out by signing in again and again.
"""

from __future__ import annotations

import hashlib
import os
import secrets
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from pilothouse.authn.authenticator import Authenticated
from pilothouse.machinery.user import User

TICKET_SECONDS: Final = 300.0
SESSION_SECONDS: Final = 12 * 3600.0
MOST: Final = 256
_TOKEN_PREFIX: Final = "pilothouse-console-"


@dataclass(frozen=True, slots=True)
class _Grant:
    identity: Authenticated
    until: float


class Sessions:
    """Tickets and tokens of one cluster; authenticates by the latter."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock, self._secret = clock, os.urandom(32)
        self._tickets: dict[bytes, _Grant] = {}
        self._tokens: dict[bytes, _Grant] = {}

    def issue_ticket(self, user: User) -> str:
        """A ticket that makes whoever has it this user, once."""
        ticket = secrets.token_urlsafe(32)
        self._keep(self._tickets, ticket, Authenticated(user), TICKET_SECONDS)
        return ticket

    def redeem(self, ticket: str) -> str | None:
        """The token for a ticket, which is then used up; None if it is not, or no longer, good."""
        grant = self._tickets.pop(self._digest(ticket), None)
        if grant is None or grant.until <= self._clock():
            return None
        token = _TOKEN_PREFIX + secrets.token_urlsafe(32)
        self._keep(self._tokens, token, grant.identity, SESSION_SECONDS)
        return token

    def end(self, token: str) -> None:
        """Sign out. What was remembered about the token elsewhere is forgotten within seconds."""
        self._tokens.pop(self._digest(token), None)

    @staticmethod
    def is_ours(token: str) -> bool:
        """Whether it looks like one of these tokens."""
        return token.startswith(_TOKEN_PREFIX)

    async def authenticate_token(self, token: str, audiences: tuple[str, ...]) -> Authenticated | None:
        """The user who signed in; None for tokens that are not ours."""
        if not self.is_ours(token):
            return None
        grant = self._tokens.get(self._digest(token))
        return None if grant is None or grant.until <= self._clock() else grant.identity

    def _keep(self, grants: dict[bytes, _Grant], secret: str, identity: Authenticated, seconds: float) -> None:
        while len(grants) >= MOST:
            holders = Counter(grant.identity.user.name for grant in grants.values())
            (greediest, _), *_ = holders.most_common(1)
            del grants[next(key for key, grant in grants.items() if grant.identity.user.name == greediest)]
        grants[self._digest(secret)] = _Grant(identity, self._clock() + seconds)

    def _digest(self, secret: str) -> bytes:
        return hashlib.blake2b(secret.encode("utf-8", "surrogatepass"), key=self._secret, digest_size=32).digest()
