"""A kubelet for tests: it runs no containers, but speaks to API servers as a real one does.

    async with StandInKubelet() as kubelet:
        node = kubelet.node("node-1")       # the Node to create, with its status
        kubelet.log("default", "web").write(b"hello\\n")

``logs``, ``exec``, ``attach`` and ``port-forward`` then work for pods of that node, over SPDY and over WebSocket.
Commands run as processes of this machine in ``folder``, unless ``command`` says what to do instead; ports lead to this
machine's. It serves HTTPS with a certificate of its own, on the loop of the test.
"""

from __future__ import annotations

import ssl
import tempfile
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

from pilothouse.credentials.pki import ensure_pki
from pilothouse.net.messages import Request
from pilothouse.simulation.kubelet_api.commands import Command, Process, run_locally
from pilothouse.simulation.kubelet_api.logs import Log
from pilothouse.simulation.kubelet_api.server import KubeletServer

__all__ = ["Command", "Log", "Process", "StandInKubelet", "run_locally"]
_NATIVE_FEATURE: Final = "ExtendWebSocketsToKubelet"


class StandInKubelet:
    """A kubelet for the time of an ``async with`` block.

    ``command`` may be replaced at any time. ``native_websockets``: tell API servers to pass WebSockets on instead of
    translating them.
    """

    def __init__(self, *, command: Command = run_locally, folder: str = "", native_websockets: bool = False) -> None:
        self.command, self.folder, self.native_websockets = command, folder, native_websockets
        self.requests: list[tuple[str, str, dict[bytes, bytes]]] = []
        """Method, path with query, and headers of what was asked, in order."""
        self._logs: dict[tuple[str, str], Log] = {}
        self._temporary = tempfile.TemporaryDirectory(prefix="kubelet-")
        pki = ensure_pki(Path(self._temporary.name), dns_names=("localhost",), ip_addresses=("127.0.0.1",))
        self.authority = pki.ca_cert
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(pki.serving_cert, pki.serving_key)
        self._server = KubeletServer(
            lambda: context,
            lambda namespace, pod, container: self.log(namespace, pod),
            lambda process: self.command(process),
            folder=folder,
            note=self._note,
        )

    async def __aenter__(self) -> Self:
        self._server.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._server.close()
        self._temporary.cleanup()

    @property
    def port(self) -> int:
        """Where it listens."""
        return self._server.port

    def node(self, name: str) -> dict[str, Any]:
        """The Node that leads here."""
        status: dict[str, Any] = {
            "addresses": [{"type": "InternalIP", "address": "127.0.0.1"}],
            "daemonEndpoints": {"kubeletEndpoint": {"Port": self.port}},
        }
        if self.native_websockets:
            status["declaredFeatures"] = [_NATIVE_FEATURE]
        return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}, "status": status}

    def log(self, namespace: str, pod: str) -> Log:
        """The log of a pod's containers."""
        return self._logs.setdefault((namespace, pod), Log())

    def _note(self, request: Request) -> None:
        self.requests.append((request.method, request.target.decode("latin-1"), dict(request.headers)))
