"""Connections of the model checker's clients to servers that die at the worst moment."""

import gc
import socket
import ssl
import struct

import pytest

from pilothouse.testing.model.clients import Caller


def test_a_server_that_dies_before_the_handshake_leaves_no_open_socket() -> None:
    tls = ssl.create_default_context()
    caller = Caller([("127.0.0.1", 1)], tls, 0)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        connection = socket.create_connection(listener.getsockname())
        accepted, _ = listener.accept()
        # To linger for no time makes closing a reset, which is there before the client looks.
        accepted.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        accepted.close()
        with pytest.raises(ConnectionResetError):
            tls.wrap_socket(connection, server_hostname="localhost")
    caller.disconnect()
    gc.collect()  # a socket that is still open would be told here
