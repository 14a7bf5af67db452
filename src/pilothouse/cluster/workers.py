"""What a process knows of the others that serve the same cluster on the same port (``--workers``), and asks of them.

One of them owns the store and acts for all: controllers, leases, repair and simulated nodes are there. All others only
serve. A process that is alone acts, and there is nobody to ask.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final, Protocol

Answer = Callable[..., Awaitable[Any]]
"""Takes and gives what can be said in a message between processes: text, bytes, numbers, and tuples of them."""
Gather = Callable[..., Awaitable[list[Any]]]
"""Asks all processes; takes what each is told, and gives what those say that answer."""
Page = Callable[[bool], Awaitable[bytes]]
"""Takes whether native buckets are wanted."""
ANSWER_SECONDS: Final = 5.0
"""How long the answer of another process is waited for, where it is at hand."""
Errors = Callable[[], Mapping[str, str]]


class Workers(Protocol):
    """The processes of a server, seen from one of them."""

    @property
    def count(self) -> int:
        """How many there are, this one included: limits of the whole are divided by it."""
        ...

    @property
    def acts(self) -> bool:
        """Whether this process does what is to be done once."""
        ...

    def error_of(self, check: str) -> str:
        """What a health check says in the process that acts; nothing if all is well, or if this is that process."""
        ...

    def show_errors(self, errors: Errors) -> None:
        """Have the others know which checks fail here."""

    def offer(self, name: str, answer: Answer) -> None:
        """Answer the others' questions of this name."""

    def ask(self, name: str, *words: Any) -> Awaitable[Any]:
        """Ask the process that acts. Raises OSError when it does not answer."""

    def gather(self, name: str, answer: Answer, seconds: float = ANSWER_SECONDS) -> Gather:
        """Answer questions of this name here, and give what asks all processes.

        Who has not answered after so many seconds is left out.
        """

    def join(self, name: str, page: Page, joining: Callable[[], Mapping[str, str]]) -> Page:
        """A page of metrics of this process as one of all. ``joining`` says of gauges which are not to be summed."""
        ...


class LoneWorker:
    """Nobody else is there."""

    count = 1
    acts = True

    def error_of(self, check: str) -> str:
        return ""

    def show_errors(self, errors: Errors) -> None:
        """Nobody wants to know."""

    def offer(self, name: str, answer: Answer) -> None:
        """Nobody asks."""

    async def ask(self, name: str, *words: Any) -> Any:
        raise OSError(f"there is nobody to ask about {name}")

    def gather(self, name: str, answer: Answer, seconds: float = ANSWER_SECONDS) -> Gather:
        async def gathered(*words: Any) -> list[Any]:
            return [await answer(*words)]

        return gathered

    def join(self, name: str, page: Page, joining: Callable[[], Mapping[str, str]]) -> Page:
        return page


ALONE: Final = LoneWorker()
