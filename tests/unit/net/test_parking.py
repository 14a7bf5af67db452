"""Of those who have been silent a few are told of in each turn, however many speak at once."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Iterator
from contextlib import ExitStack
from functools import partial

import pytest

from pilothouse.net.parking import A_TURN, Parking

COUNT = 3 * A_TURN


class Silent:
    """Many sockets whose clients have said nothing so far."""

    def __init__(self, stack: ExitStack) -> None:
        self.parking = Parking(asyncio.get_running_loop())
        self.told: list[int] = []
        self.clients: list[socket.socket] = []
        self.sockets: list[socket.socket] = []
        for number in range(COUNT):
            ours, theirs = (stack.enter_context(each) for each in socket.socketpair())
            self.clients.append(theirs)
            self.sockets.append(ours)
            self.parking.add(ours.fileno(), partial(self._read, number))

    def _read(self, number: int) -> None:
        assert self.sockets[number].recv(10) == b"?"
        self.told.append(number)

    async def turns_until(self, count: int) -> list[int]:
        """How many were told of in each turn."""
        told = []
        while len(self.told) < count:
            before = len(self.told)
            await asyncio.sleep(0)
            told.append(len(self.told) - before)
        return told


@pytest.fixture
def stack() -> Iterator[ExitStack]:
    with ExitStack() as stack:
        yield stack


async def test_a_crowd_is_told_of_in_turns(stack: ExitStack) -> None:
    silent = Silent(stack)
    for client in silent.clients:
        client.send(b"?")
    assert max(await silent.turns_until(COUNT)) == A_TURN
    assert sorted(silent.told) == list(range(COUNT))
    silent.clients[7].send(b"?")
    await silent.turns_until(COUNT + 1)
    assert silent.told[-1] == 7
    silent.parking.close()


async def test_who_is_removed_is_told_of_no_more_even_in_the_same_turn(stack: ExitStack) -> None:
    silent = Silent(stack)

    def remove_both() -> None:
        silent.told.append(-1)
        for number in (0, 1):
            silent.parking.remove(silent.sockets[number].fileno())

    for number in (0, 1):
        silent.parking.add(silent.sockets[number].fileno(), remove_both)
        silent.clients[number].send(b"?")
    silent.clients[2].send(b"?")
    await silent.turns_until(2)
    assert sorted(silent.told) == [-1, 2]
    assert len(silent.parking) == COUNT - 2
    silent.parking.remove(silent.sockets[0].fileno())
    silent.parking.close()


async def test_who_is_still_there_at_the_end_goes_back_to_the_loop(stack: ExitStack) -> None:
    silent = Silent(stack)
    silent.parking.close()
    silent.clients[3].send(b"?")
    await silent.turns_until(1)
    assert silent.told == [3]
    for each in silent.sockets:
        silent.parking.remove(each.fileno())
    silent.parking.add(silent.sockets[5].fileno(), partial(silent._read, 5))
    silent.clients[5].send(b"?")
    await silent.turns_until(2)
    assert silent.told == [3, 5]
    silent.parking.remove(silent.sockets[5].fileno())
