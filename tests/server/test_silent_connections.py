"""Watches that are silent for a while are parked: they hear of changes all the same, and their ends are noticed."""

from __future__ import annotations

import http.client
import time
from contextlib import ExitStack
from urllib.parse import urlsplit

from pilothouse.testing.in_process import InProcessServer

MAPS = "/api/v1/namespaces/default/configmaps"
COUNT = 30


def test_parked_watches_live_on() -> None:
    with InProcessServer() as server, ExitStack() as stack:
        caller, http_server = server.caller(), server.process.serving.http
        where = urlsplit(caller.url)
        before = http_server.load
        connections = []
        for _ in range(COUNT):
            made = http.client.HTTPSConnection(where.hostname or "", where.port, timeout=60, context=caller.context)
            stack.callback(made.close)
            connections.append(made)
            made.request("GET", f"{MAPS}?watch=1")
        watches = [connection.getresponse() for connection in connections]
        while len(http_server.parking) < COUNT:
            time.sleep(0.01)
        server.call("POST", MAPS, {"metadata": {"name": "seen"}})
        assert all(b'"name":"seen"' in _line_with(watch, b"seen") for watch in watches)
        for connection, watch in zip(connections, watches, strict=True):
            watch.close()
            connection.close()
        while http_server.load > before + 1 or http_server.parking:
            time.sleep(0.01)


def _line_with(watch: http.client.HTTPResponse, what: bytes) -> bytes:
    while what not in (line := watch.readline()):
        assert line
    return line
