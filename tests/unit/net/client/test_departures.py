"""When requests leave: at once, or with the others of their turn."""

import asyncio

from pilothouse.net.client.connection import ClientConnection
from pilothouse.net.client.departures import Departures
from pilothouse.net.client.outbound import Outbound

GET = Outbound("GET", b"/", [(b"Host", b"a")])
ANSWER = b"HTTP/1.1 204 No Content\r\n\r\n"


class Wire(asyncio.Transport):
    """Keeps what is written."""

    def __init__(self, log: list["Wire"]) -> None:
        super().__init__()
        self._log, self._closing = log, False

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self._log.append(self)

    def is_closing(self) -> bool:
        return self._closing

    def abort(self) -> None:
        self._closing = True


def connect(departures: Departures, log: list[Wire]) -> tuple[ClientConnection, Wire]:
    connection, wire = ClientConnection(lambda _: None, departures), Wire(log)
    connection.connection_made(wire)
    return connection, wire


async def test_a_request_that_is_alone_leaves_at_once_and_others_with_their_turn() -> None:
    departures, log = Departures(), list[Wire]()
    connections = [connect(departures, log) for _ in range(4)]
    exchanges = [connection.exchange(GET) for connection, _ in connections]
    for exchange in exchanges:
        exchange.send(None)
    assert log == [connections[0][1]]
    await asyncio.sleep(0)
    assert log == [wire for _, wire in connections]
    for (connection, _), exchange in zip(connections, exchanges, strict=True):
        connection.data_received(ANSWER)
        exchange.close()
    assert departures.under_way == 0


async def test_many_do_not_wait_for_the_end_of_the_turn() -> None:
    departures, log = Departures(), list[Wire]()
    exchanges = [connect(departures, log)[0].exchange(GET) for _ in range(33)]
    for exchange in exchanges:
        exchange.send(None)
    assert len(log) == 33
    for exchange in exchanges:
        exchange.close()


async def test_what_is_given_up_before_it_left_does_not_leave() -> None:
    departures, log = Departures(), list[Wire]()
    (_, first), (second, wire) = connections = [connect(departures, log) for _ in range(2)]
    exchanges = [connection.exchange(GET) for connection, _ in connections]
    for exchange in exchanges:
        exchange.send(None)
    second.drop()
    await asyncio.sleep(0)
    assert log == [first] and wire.is_closing()
    for exchange in exchanges:
        exchange.close()
