"""The talk between the owner and a worker: news that need no answer, and questions with one, both ways.

owner → worker   news  begin(errors)          the cluster is there: hooks may run, connections will come
                       errors(errors)         which health checks fail in the owner
                       stop()                 stop gracefully
                 asks  here <name> …          what this worker has to say, such as a page of metrics
worker → owner   news  ready()                takes connections from now on
                       load(connections, received)
                 asks  all <name> …           what all processes have to say
                       joined <name>          the same of pages of metrics, as one
                       console sessions …     who signed in to the console
                       kubelet                where the simulated kubelets listen
                       log level              how much is logged, as changed while the server runs
"""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from pilothouse.machinery.supervision import Supervisor
from pilothouse.net.message_channel import MessageChannel

logger = logging.getLogger(__name__)
Answers = Mapping[str, Callable[..., Awaitable[Any]]]
News = Mapping[str, Callable[..., None]]


class Control:
    """One end. ``answers`` may grow later; ``lost`` is told when the other end has gone."""

    def __init__(self, news: News, answers: Answers, lost: Callable[[], None], supervisor: Supervisor) -> None:
        self._news, self._answers, self._lost_callback, self._supervisor = news, answers, lost, supervisor
        self._channel = MessageChannel(self._take, self._lost)
        self._number = 0
        self._asked: dict[int, asyncio.Future[Any]] = {}

    async def start(self, sock: socket.socket) -> None:
        """Speak through a connected socket."""
        await self._channel.start(sock)

    def tell(self, name: str, *words: Any) -> None:
        """Send news."""
        self._channel.send(("news", 0, name, words))

    async def ask(self, name: str, *words: Any) -> Any:
        """The answer to a question. Raises OSError where there is none."""
        if not self._channel.is_open:
            raise OSError("the other process has gone")
        self._number += 1
        future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self._asked[self._number] = future
        self._channel.send(("asks", self._number, name, words))
        return await future

    def close(self) -> None:
        """Say nothing more."""
        self._channel.close()

    def _take(self, message: tuple[str, int, str, Any]) -> None:
        kind, number, name, words = message
        if kind == "news":
            self._news[name](*words)
        elif kind == "asks":
            self._supervisor.spawn(f"answer about {name}", self._answer(number, name, words))
        elif (future := self._asked.pop(number, None)) is not None and not future.done():
            if kind == "answer":
                future.set_result(words)
            else:
                future.set_exception(OSError(words))

    async def _answer(self, number: int, name: str, words: tuple[Any, ...]) -> None:
        try:
            answer = self._answers.get(name)
            if answer is None:
                raise OSError(f"nothing is known of {name}")
            said = await answer(*words)
        except Exception as error:
            logger.warning("a question about %s could not be answered: %s", name, error)
            self._channel.send(("failure", number, name, str(error)))
        else:
            self._channel.send(("answer", number, name, said))

    def _lost(self) -> None:
        asked, self._asked = self._asked, {}
        for future in asked.values():
            if not future.done():
                future.set_exception(OSError("the other process has gone"))
        self._lost_callback()
