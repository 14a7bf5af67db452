"""The sessions of a cluster that several processes serve: kept by the one that acts, asked for by the others.

A browser's connections may reach any of them, and a ticket must be good once whoever is asked.
"""

from __future__ import annotations

from typing import Any, Final

from pilothouse.authn.authenticator import Authenticated, InvalidCredentials
from pilothouse.console.sessions import Sessions
from pilothouse.console.workers import Workers
from pilothouse.machinery.user import User

_NAME: Final = "console sessions"
Words = tuple[str, str, tuple[str, ...], tuple[tuple[str, tuple[str, ...]], ...]]
"""A user in a message between processes."""


class SharedSessions:
    """Tickets and tokens, as ``Sessions`` has them."""

    def __init__(self, workers: Workers) -> None:
        self._workers = workers
        self._own = Sessions() if workers.acts else None
        if self._own is not None:
            workers.offer(_NAME, self._answer)

    async def issue_ticket(self, user: User) -> str:
        """A ticket that makes whoever has it this user, once. Raises OSError where nobody can."""
        ticket: str = await self._do("issue", _words_of(user))
        return ticket

    async def redeem(self, ticket: str) -> str | None:
        """The token for a ticket, which is then used up; None if it is not, or no longer, good."""
        token: str | None = await self._do("redeem", ticket)
        return token

    async def end(self, token: str) -> None:
        """Sign out."""
        await self._do("end", token)

    async def authenticate_token(self, token: str, audiences: tuple[str, ...]) -> Authenticated | None:
        """The user who signed in; None for tokens that are not ours."""
        if self._own is not None:
            return await self._own.authenticate_token(token, audiences)
        if not Sessions.is_ours(token):
            return None
        try:
            found: Words | None = await self._do("user", token)
        except OSError as error:
            raise InvalidCredentials(f"nobody can be asked about sessions: {error}") from None
        return None if found is None else Authenticated(_user_of(found))

    async def _do(self, action: str, word: Any) -> Any:
        if self._own is not None:
            return await self._answer(action, word)
        return await self._workers.ask(_NAME, action, word)

    async def _answer(self, action: str, word: Any) -> Any:
        assert self._own is not None
        if action == "issue":
            return self._own.issue_ticket(_user_of(word))
        if action == "redeem":
            return self._own.redeem(word)
        if action == "end":
            return self._own.end(word)
        found = await self._own.authenticate_token(word, ())
        return None if found is None else _words_of(found.user)


def _words_of(user: User) -> Words:
    return user.name, user.uid, user.groups, tuple((key, tuple(values)) for key, values in user.extra.items())


def _user_of(words: Words) -> User:
    name, uid, groups, extra = words
    return User(name, uid, groups, dict(extra))
