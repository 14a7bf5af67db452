"""gRPC calls with one message there and one back, to a service on a Unix socket.

For plug-ins that run beside the server: key management, external signers of tokens. ``grpcio`` is loaded with the
first call. Failures carry the code by its Go name, as kube-apiserver's messages and metrics show it.
"""

from __future__ import annotations

from typing import Any, Final

MOST_BYTES: Final = 4 * 1024 * 1024
"""Of an answer, as Go's gRPC has it."""
_GO_NAMES = {"OK": "OK", "CANCELLED": "Canceled"}


class CallFailed(Exception):
    """No answer. ``code`` is empty where the call could not even be tried."""

    def __init__(self, message: str, code: str = "") -> None:
        super().__init__(message)
        self.code = code


class UnaryCalls:
    """The calls to one service. Connects when first called."""

    def __init__(self, socket: str, service: str, most_bytes: int = MOST_BYTES) -> None:
        """``socket`` is a path, a path behind ``unix://``, or an abstract name behind ``@``; answers end somewhere."""
        path = socket.removeprefix("unix://").removeprefix("unix:")
        self._target = f"unix-abstract:{path[1:]}" if path.startswith("@") else f"unix:{path}"
        self._service, self._most_bytes = service, most_bytes
        self._channel: Any = None

    async def call(self, method: str, body: bytes, seconds: float, *, wait_for_ready: bool = False) -> bytes:
        """The answer to a message; with ``wait_for_ready`` the service may still be starting. Raises CallFailed."""
        try:
            import grpc  # type: ignore[import-untyped]
        except ImportError:
            raise CallFailed("the package grpcio is missing (pip install 'pilothouse[grpc]')") from None
        if self._channel is None:
            options = [
                ("grpc.default_authority", "localhost"),
                ("grpc.max_receive_message_length", self._most_bytes),
            ]
            self._channel = grpc.aio.insecure_channel(self._target, options)
        call = self._channel.unary_unary(f"/{self._service}/{method}")
        try:
            answer: bytes = await call(body, timeout=seconds, wait_for_ready=wait_for_ready)
        except grpc.aio.AioRpcError as error:
            code = go_name(error.code().name)
            raise CallFailed(f"rpc error: code = {code} desc = {error.details()}", code) from None
        return answer

    async def close(self) -> None:
        """Close the connection."""
        channel, self._channel = self._channel, None
        if channel is not None:
            await channel.close()


def go_name(code: str) -> str:
    """``DEADLINE_EXCEEDED`` as Go writes it."""
    return _GO_NAMES.get(code) or "".join(word.capitalize() for word in code.split("_"))
