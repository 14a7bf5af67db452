"""Writes to many connections: in turns, in order, bounded, and none spoils another."""

import asyncio
import logging

import pytest

from pilothouse.net import turns
from pilothouse.net.turns import WriteTurns


class Client:
    """Has something to write, once; a transport at the same time."""

    def __init__(self, data=b"event"):
        self.data, self.written = data, []
        self.write = self.written.append

    def outgoing(self):
        return (self, self.data) if self.data else None


async def served_by_turn(due, count):
    served = []
    for _ in range(count):
        await asyncio.sleep(0)
        served.append(sum(len(client.written) for client in due))
    return served


def due_clients(count):
    everybody, clients = WriteTurns(), [Client() for _ in range(count)]
    for client in clients:
        everybody.add(client)
    return clients


async def test_many_are_served_in_turns_and_others_get_theirs(monkeypatch):
    monkeypatch.setattr(turns, "_SERVED_A_TURN", 10)
    assert await served_by_turn(due_clients(25), 4) == [10, 20, 25, 25]


async def test_a_turn_is_also_bounded_in_bytes(monkeypatch):
    monkeypatch.setattr(turns, "_BYTES_A_TURN", 2)
    assert await served_by_turn(due_clients(2), 2) == [1, 2]


async def test_whoever_has_nothing_after_all_is_passed_over():
    everybody, empty, full = WriteTurns(), Client(b""), Client()
    everybody.add(empty)
    everybody.add(full)
    assert await served_by_turn([empty, full], 1) == [1]


async def test_a_write_that_fails_costs_the_others_nothing(caplog: pytest.LogCaptureFixture):
    def fail(data):
        raise RuntimeError("gone")

    bad, good = due_clients(2)
    bad.write = fail
    with caplog.at_level(logging.CRITICAL):
        await asyncio.sleep(0)
    assert good.written == [b"event"]


class SlowClient(Client):
    """Each write takes ten seconds by its clock."""

    def __init__(self):
        super().__init__()
        self.now = 0.0

    def take(self, data):
        self.now += 10.0
        self.written.append(data)

    def clock(self):
        return self.now


def slow_client():
    client = SlowClient()
    client.write = client.take
    return client, WriteTurns(client.clock)


async def test_after_a_long_round_others_have_as_much_of_the_loop(monkeypatch):
    monkeypatch.setattr(turns, "_LONGEST_PAUSE", 1000.0)
    client, everybody = slow_client()
    everybody.add(client)
    assert await served_by_turn([client], 1) == [1]
    everybody.add(client)
    assert await served_by_turn([client], 20) == [1] * 20


async def test_the_pause_ends_and_has_a_limit(monkeypatch):
    monkeypatch.setattr(turns, "_LONGEST_PAUSE", 0.005)
    client, everybody = slow_client()
    for number in (1, 2, 3):
        everybody.add(client)
        while len(client.written) < number:
            await asyncio.sleep(0.001)
