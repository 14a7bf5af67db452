"""Logs over WebSockets, from a kubelet that speaks the real protocol."""

from __future__ import annotations

import asyncio
import base64

import pytest
from wsproto import ConnectionType, WSConnection
from wsproto.events import AcceptConnection, BytesMessage, CloseConnection, RejectConnection, Request, TextMessage

from pilothouse.testing.in_process import InProcessServer
from pilothouse.testing.kubelet import StandInKubelet

PATH = "/api/v1/namespaces/default/pods/web/log"


async def messages(server: InProcessServer, protocol: str) -> list[bytes | str | int]:
    """What comes over a WebSocket; the status where there is none."""
    reader, writer = await asyncio.open_connection("127.0.0.1", server.port, ssl=server.ssl_context())
    client = WSConnection(ConnectionType.CLIENT)
    origin = [(b"Origin", b"http://localhost")]
    asked = [protocol] if protocol else []
    writer.write(client.send(Request(host="localhost", target=PATH, subprotocols=asked, extra_headers=origin)))
    received: list[bytes | str | int] = []
    try:
        async with asyncio.timeout(60):
            while data := await reader.read(65536):
                client.receive_data(data)
                for event in client.events():
                    if isinstance(event, AcceptConnection):
                        assert (event.subprotocol or "") == protocol
                    elif isinstance(event, RejectConnection):
                        return [event.status_code]
                    elif isinstance(event, BytesMessage | TextMessage):
                        received.append(event.data if isinstance(event, TextMessage) else bytes(event.data))
                    elif isinstance(event, CloseConnection):
                        return received
    finally:
        writer.close()
    return received


@pytest.mark.parametrize("protocol", ["", "binary.k8s.io", "base64.binary.k8s.io", "unknown.k8s.io"])
async def test_a_log_comes_in_messages(protocol: str) -> None:
    async with StandInKubelet() as kubelet, InProcessServer("--disable-admission-plugins=ServiceAccount") as server:
        await server.request("POST", "/api/v1/nodes", kubelet.node("node-1"))
        pod = {
            "metadata": {"name": "web"},
            "spec": {"nodeName": "node-1", "containers": [{"name": "main", "image": "x"}]},
        }
        assert (await server.request("POST", "/api/v1/namespaces/default/pods", pod)).status == 201
        kubelet.log("default", "web").write(b"one\ntwo\n" * 1000)
        plain = (await server.request("GET", PATH)).body
        got = await messages(server, protocol)
    if protocol == "unknown.k8s.io":
        assert got == [403]
    elif protocol.startswith("base64"):
        assert got[0] == "" and b"".join(map(base64.b64decode, map(str, got))) == plain
    else:
        assert got[0] == b"" and b"".join(each for each in got if isinstance(each, bytes)) == plain
