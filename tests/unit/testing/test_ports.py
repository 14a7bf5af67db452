"""Ports that nobody else is given before a server listens on them."""

from __future__ import annotations

import socket

import pytest

from pilothouse.net.listener import bind
from pilothouse.testing import ports


def test_a_port_is_nobody_elses_and_may_be_listened_on_again_and_again() -> None:
    port = ports.free_port()
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", port))
    with socket.socket() as other, pytest.raises(OSError, match="in use"):
        other.bind(("127.0.0.1", port))
    for _ in range(2):
        with bind("127.0.0.1", port), socket.create_connection(("127.0.0.1", port)):
            pass


def test_the_last_ports_are_kept() -> None:
    given = [ports.free_port() for _ in range(ports._KEPT + 1)]
    with socket.socket() as other:
        other.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        other.bind(("127.0.0.1", given[0]))
    assert [keeper.getsockname()[1] for keeper in ports._keepers] == given[1:]
