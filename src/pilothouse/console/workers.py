"""What the console asks of the other processes that serve the same port (``--workers``)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, Protocol


class Workers(Protocol):
    """The processes of a server, seen from one of them."""

    @property
    def acts(self) -> bool:
        """Whether this process does what is to be done once."""
        ...

    def offer(self, name: str, answer: Callable[..., Awaitable[Any]]) -> None:
        """Answer the others' questions of this name."""

    def ask(self, name: str, *words: Any) -> Awaitable[Any]:
        """Ask the process that acts. Raises OSError when it does not answer."""

    def gather(self, name: str, answer: Callable[..., Awaitable[Any]]) -> Callable[..., Awaitable[list[Any]]]:
        """Answer questions of this name here, and give what asks all processes."""
        ...
