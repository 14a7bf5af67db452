"""What has come on a connection and was not taken apart into frames yet; for readers of HTTP/2 and of SPDY."""

from __future__ import annotations


class UnreadInput:
    """Bytes as they came, read from the front: what is before ``_at`` was read."""

    __slots__ = ("_at", "_data")

    def __init__(self) -> None:
        self._data = b""
        self._at = 0

    @property
    def pending(self) -> int:
        """How many bytes are unread."""
        return len(self._data) - self._at

    def feed(self, data: bytes) -> None:
        """Add input."""
        self._data = data if self._at >= len(self._data) else self._data[self._at :] + data
        self._at = 0
