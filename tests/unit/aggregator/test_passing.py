"""What a request is passed on as: the same whether or not most of it was encoded for the request before."""

from __future__ import annotations

import asyncio
from typing import cast

import pytest

from pilothouse.aggregator.passing import RequestPassing
from pilothouse.endpoints.request import APIRequest
from pilothouse.endpoints.request_info import resolve
from pilothouse.machinery.user import User
from pilothouse.net.client import HttpClient, Outbound
from pilothouse.net.dialing import OutgoingError, Target
from pilothouse.net.messages import Connection
from pilothouse.net.request_head import HeaderBlock, parse_header_block, parse_request_line

TARGET = Target("localhost", 443)
ANN, BOB = User("ann", groups=("devs",)), User("bob")
BLOCK = b"Host: a\r\nAccept: */*\r\nX-Remote-User: root"


class Wire:
    """Stands for the client of other servers: keeps what is sent, and answers nothing."""

    def __init__(self) -> None:
        self.sent: list[Outbound] = []

    async def send(self, target: Target, outbound: Outbound) -> None:
        self.sent.append(outbound)
        raise OutgoingError("nobody is there")


@pytest.fixture
def connection() -> Connection:
    return Connection(asyncio.Transport({"peername": ("127.0.0.1", 5)}))


def request(
    connection: Connection, block: HeaderBlock, target: str, audit_id: str, *, user: User = ANN, method: str = "GET"
) -> APIRequest:
    line = parse_request_line(f"{method} {target} HTTP/1.1".encode())
    made = APIRequest(connection, line, block, True, None)
    made.audit_id, made.user = audit_id, user
    made.info = resolve(made.method, made.path, made.options)
    return made


async def passed_on(passing: RequestPassing, wire: Wire, *requests: APIRequest) -> list[list[bytes]]:
    """The lines of each head."""
    wire.sent.clear()
    for each in requests:
        assert (await passing.pass_on(each, TARGET)).status == 503
    return [outbound.head().split(b"\r\n") for outbound in wire.sent]


async def test_what_was_encoded_before_goes_with_requests_that_ask_for_the_same_alone(connection: Connection) -> None:
    wire = Wire()
    passing = RequestPassing(cast(HttpClient, wire), refuse_redirects=True)
    block = parse_header_block(BLOCK)
    asked = [
        request(connection, block, "/apis/a.b/v1/things/one", "1"),
        request(connection, block, "/apis/a.b/v1/things/one", "2"),
        request(connection, block, "/apis/a.b/v1/things/two?x=%20y", "3"),
        request(connection, block, "/apis/a.b/v1/things/one", "4", user=BOB),
        request(connection, block, "/apis/a.b/v1/things/one", "5", method="DELETE"),
        request(connection, block, "/apis/a.b/v1/things/one", "6", method="POST"),
        request(connection, block, f"/apis/a.b/v1/things/{'l' * 2000}", "7"),
        request(connection, block, "/apis/a.b/v1/things/one", "8"),
    ]
    together = await passed_on(passing, wire, *asked)
    alone = []
    for each in asked:
        fresh = request(connection, parse_header_block(BLOCK), each.target.decode(), each.audit_id, user=each.user)
        fresh.method = each.method
        alone += await passed_on(RequestPassing(cast(HttpClient, wire), refuse_redirects=True), wire, fresh)
    assert together == alone
    assert together[0] == [
        b"GET /apis/a.b/v1/things/one HTTP/1.1",
        b"Host: localhost:443",
        b"Accept: */*",
        b"X-Forwarded-For: 127.0.0.1",
        b"X-Forwarded-Host: localhost:443",
        b"X-Forwarded-Proto: https",
        b"X-Remote-User: ann",
        b"X-Remote-Group: devs",
        b"X-Forwarded-Uri: /apis/a.b/v1/things/one",
        b"Audit-Id: 1",
        b"",
        b"",
    ]
    assert together[3][6:8] == [b"X-Remote-User: bob", b"X-Forwarded-Uri: /apis/a.b/v1/things/one"]


async def test_no_id_breaks_out_of_its_line(connection: Connection) -> None:
    wire = Wire()
    passing = RequestPassing(cast(HttpClient, wire), refuse_redirects=True)
    block = parse_header_block(BLOCK + b"\r\nAudit-Id: x")
    made = [
        request(connection, block, "/apis/a.b/v1/things/one", each) for each in ("x", "x y", "x\r\nX-Remote-User: b")
    ]
    assert (await passed_on(passing, wire, *made[:2]))[1][-3:] == [b"Audit-Id: x y", b"", b""]
    with pytest.raises(OutgoingError, match="invalid header field value"):
        await passed_on(passing, wire, made[2])
