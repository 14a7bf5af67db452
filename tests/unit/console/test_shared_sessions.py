"""Sessions of several processes: whoever is asked, they are the same."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from pilothouse.authn.authenticator import InvalidCredentials
from pilothouse.console.shared_sessions import SharedSessions
from pilothouse.machinery.user import User

ANN = User("ann", "7", ("devs", "ops"), {"scopes": ("a", "b")})


class Office:
    """Processes that can ask the first of them."""

    def __init__(self, answers: dict[str, Any] | None = None) -> None:
        self.acts, self.answers = answers is None, {} if answers is None else answers
        self.is_open = True

    def offer(self, name: str, answer: Callable[..., Awaitable[Any]]) -> None:
        self.answers[name] = answer

    async def ask(self, name: str, *words: Any) -> Any:
        if not self.is_open:
            raise OSError("gone")
        return await self.answers[name](*words)

    def gather(self, name: str, answer: Callable[..., Awaitable[Any]]) -> Any:
        raise AssertionError


async def test_a_session_of_one_is_known_to_all() -> None:
    office = Office()
    first, second = SharedSessions(office), SharedSessions(Office(office.answers))
    for issuing, redeeming, asked in ((first, second, first), (second, first, second), (second, second, second)):
        ticket = await issuing.issue_ticket(ANN)
        token = await redeeming.redeem(ticket)
        assert token is not None
        assert await first.redeem(ticket) is None and await second.redeem(ticket) is None
        found = await asked.authenticate_token(token, ())
        assert found is not None and found.user == ANN
        await redeeming.end(token)
        assert await asked.authenticate_token(token, ()) is None


async def test_without_who_keeps_them_nobody_is_known() -> None:
    office = Office()
    SharedSessions(office)
    other = Office(office.answers)
    sessions = SharedSessions(other)
    token = await sessions.redeem(await sessions.issue_ticket(ANN))
    assert token is not None
    other.is_open = False
    with pytest.raises(InvalidCredentials):
        await sessions.authenticate_token(token, ())
    assert await sessions.authenticate_token("somebody else's", ()) is None
