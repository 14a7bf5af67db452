from __future__ import annotations

import asyncio

from pilothouse.console.sessions import MOST, SESSION_SECONDS, TICKET_SECONDS, Sessions
from pilothouse.machinery.user import User

ANN = User("ann", groups=("devs",))


class Time:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def known(sessions: Sessions, token: str) -> User | None:
    found = asyncio.run(sessions.authenticate_token(token, ()))
    return None if found is None else found.user


def test_a_ticket_is_good_once_and_its_token_is_the_user() -> None:
    sessions = Sessions()
    ticket = sessions.issue_ticket(ANN)
    token = sessions.redeem(ticket)
    assert token is not None and known(sessions, token) is ANN
    assert sessions.redeem(ticket) is None
    assert known(sessions, ticket) is None


def test_unknown_ones_are_nobody() -> None:
    sessions = Sessions()
    assert sessions.redeem("") is None and sessions.redeem("x" * 43) is None
    assert known(sessions, "pilothouse-console-x") is None and known(sessions, "") is None
    other = Sessions()
    token = other.redeem(other.issue_ticket(ANN))
    assert token is not None and known(sessions, token) is None


def test_tickets_and_tokens_end() -> None:
    time = Time()
    sessions = Sessions(time)
    late, soon = sessions.issue_ticket(ANN), sessions.issue_ticket(ANN)
    time.now = TICKET_SECONDS - 1
    token = sessions.redeem(soon)
    assert token is not None
    time.now = TICKET_SECONDS
    assert sessions.redeem(late) is None
    time.now = TICKET_SECONDS - 1 + SESSION_SECONDS - 1
    assert known(sessions, token) is ANN
    time.now += 1
    assert known(sessions, token) is None


def test_who_signs_out_is_gone() -> None:
    sessions = Sessions()
    token = sessions.redeem(sessions.issue_ticket(ANN))
    assert token is not None
    sessions.end(token)
    sessions.end(token)
    assert known(sessions, token) is None


def test_there_are_never_more_than_a_bound() -> None:
    sessions = Sessions()
    first = sessions.issue_ticket(ANN)
    for _ in range(MOST):
        sessions.issue_ticket(ANN)
    assert sessions.redeem(first) is None


def test_nobody_signs_out_others_by_signing_in() -> None:
    sessions = Sessions()
    token = sessions.redeem(sessions.issue_ticket(ANN))
    ticket = sessions.issue_ticket(ANN)
    for _ in range(2 * MOST):
        assert sessions.redeem(sessions.issue_ticket(User("bob"))) is not None
    for _ in range(2 * MOST):
        sessions.issue_ticket(User("bob"))
    assert token is not None and known(sessions, token) is ANN
    assert sessions.redeem(ticket) is not None
