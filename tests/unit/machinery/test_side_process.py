"""Side processes speak over a socket, end with it, and leave nothing open."""

import os
import socket

import pytest

from pilothouse.machinery import side_process
from pilothouse.machinery.side_process import start_side_process

ECHO = """
import os, socket, sys
parent = socket.socket(fileno=int(sys.argv[2]))
while data := parent.recv(100):
    parent.send(sys.argv[1].encode() + data)
"""


@pytest.mark.parametrize("kind", [socket.SOCK_STREAM, socket.SOCK_DGRAM])
def test_it_answers_and_is_asked_over_a_socket_of_the_wanted_kind(tmp_path, kind):
    script = tmp_path / "echo.py"
    script.write_text(ECHO)
    process, connected = start_side_process(str(script), "you said ", kind)
    try:
        with connected:
            assert connected.type == kind
            connected.send(b"a")
            assert connected.recv(100) == b"you said a"
        if kind == socket.SOCK_STREAM:  # others do not tell of the end
            assert process.wait(60) == 0
    finally:
        process.kill()
        process.wait()


def test_nothing_stays_open_where_it_cannot_be_started(monkeypatch):
    def fail(*_, **__):
        raise BlockingIOError("no process left")

    monkeypatch.setattr(side_process.subprocess, "Popen", fail)
    before = os.listdir("/proc/self/fd") if os.path.isdir("/proc/self/fd") else []
    with pytest.raises(BlockingIOError):
        start_side_process("script.py", "")
    after = os.listdir("/proc/self/fd") if os.path.isdir("/proc/self/fd") else []
    assert len(before) == len(after)
