"""How calls fail: gRPC's codes by name, and what of HTTP/2 stands for which."""

from __future__ import annotations

from typing import Final
from urllib.parse import unquote

from pilothouse.net.http2 import frames
from pilothouse.net.http2.hpack import Field

CODES: Final = (
    "OK", "CANCELLED", "UNKNOWN", "INVALID_ARGUMENT", "DEADLINE_EXCEEDED", "NOT_FOUND", "ALREADY_EXISTS",
    "PERMISSION_DENIED", "RESOURCE_EXHAUSTED", "FAILED_PRECONDITION", "ABORTED", "OUT_OF_RANGE", "UNIMPLEMENTED",
    "INTERNAL", "UNAVAILABLE", "DATA_LOSS", "UNAUTHENTICATED",
)  # fmt: skip
_RESETS: Final = {
    frames.REFUSED_STREAM: "UNAVAILABLE",
    frames.CANCEL: "CANCELLED",
    frames.ENHANCE_YOUR_CALM: "RESOURCE_EXHAUSTED",
}
_STATUSES: Final = {
    b"400": "INTERNAL",
    b"401": "UNAUTHENTICATED",
    b"403": "PERMISSION_DENIED",
    b"404": "UNIMPLEMENTED",
    b"429": "UNAVAILABLE",
    b"502": "UNAVAILABLE",
    b"503": "UNAVAILABLE",
    b"504": "UNAVAILABLE",
}


class RpcError(Exception):
    """A call without an answer. ``sent`` is False where the server cannot have seen it."""

    def __init__(self, code: str, details: str, *, sent: bool = True) -> None:
        super().__init__(f"{code}: {details}")
        self.code, self.details, self.sent = code, details, sent


def reset_failure(code: int, *, in_time: bool) -> RpcError:
    """The server gave a stream up. It knows the call's time, too, and cancels what it has not answered by then."""
    if code == frames.CANCEL and not in_time:
        return RpcError("DEADLINE_EXCEEDED", "context deadline exceeded")
    text = f"stream terminated by RST_STREAM with error code: {code}"
    return RpcError(_RESETS.get(code, "INTERNAL"), text, sent=code != frames.REFUSED_STREAM)


def ended(trailers: list[Field]) -> RpcError | None:
    """What the last headers of a call say: None when all is well."""
    found = dict(trailers)
    status = found.get(b"grpc-status")
    if status == b"0":
        return None
    if status is None or not status.isdigit():
        http = found.get(b":status", b"")
        text = f"unexpected HTTP status code received from server: {http.decode('latin-1')}"
        return RpcError(_STATUSES.get(http, "UNKNOWN"), text)
    number = int(status)
    message = unquote(found.get(b"grpc-message", b"").decode("latin-1"))
    return RpcError(CODES[number] if number < len(CODES) else "UNKNOWN", message)
