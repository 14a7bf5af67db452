"""Requests without a network."""

from collections.abc import Callable
from typing import Any

import pytest

from pilothouse.net.messages import Connection, Request
from pilothouse.net.request_head import parse_header_block, parse_request_line


class Transport:
    """What a Connection asks its transport for."""

    def get_extra_info(self, name: str) -> Any:
        return ("192.0.2.1", 4711) if name == "peername" else None


@pytest.fixture
def make_request() -> Callable[..., Request]:
    def make(headers: str = "", path: str = "/") -> Request:
        lines = ["Host: x", *(line for line in headers.split("\n") if line)]
        block = parse_header_block("\r\n".join(lines).encode())
        line = parse_request_line(f"GET {path} HTTP/1.1".encode())
        return Request(Connection(Transport()), line, block, True, None)  # type: ignore[arg-type]

    return make
