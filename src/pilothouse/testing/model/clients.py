"""Random clients: writers, listers and watchers of the config maps of one namespace, on any of several servers."""

from __future__ import annotations

import json
import random
import ssl
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from http.client import HTTPException, HTTPSConnection
from typing import Any

from pilothouse.testing.model.history import (
    CREATE,
    DELETE,
    DONE,
    REFUSED,
    UNKNOWN,
    UPDATE,
    History,
    Listed,
    Seen,
    Watched,
    Written,
)

NAMESPACE = "model"
MAPS = f"/api/v1/namespaces/{NAMESPACE}/configmaps"
_OURS = "labelSelector=model"
"""Others keep objects in every namespace, too."""
_SECONDS = 20.0
_JSON = {"Content-Type": "application/json"}
Address = tuple[str, int]
Broken = (OSError, HTTPException, json.JSONDecodeError)


class _Socket(ssl.SSLSocket):
    """Closes when it is forgotten: where a server dies just before the handshake, ssl leaves it open."""

    def __del__(self) -> None:
        self.close()


class Caller:
    """Asks any of the servers on one connection, and connects anew to any of them when told to."""

    def __init__(self, servers: Sequence[Address], tls: ssl.SSLContext, seed: int) -> None:
        self.random = random.Random(seed)
        self._servers, self._tls = servers, tls
        tls.sslsocket_class = _Socket
        self._connection: HTTPSConnection | None = None

    def disconnect(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def send(self, method: str, path: str, body: Any = None) -> Any:
        """Send a request; the answer, unread."""
        if self._connection is None:
            host, port = self.random.choice(self._servers)
            self._connection = HTTPSConnection(host, port, timeout=_SECONDS, context=self._tls)
        self._connection.request(method, path, None if body is None else json.dumps(body), _JSON)
        return self._connection.getresponse()

    def call(self, method: str, path: str, body: Any = None) -> tuple[int, Any]:
        answer = self.send(method, path, body)
        return answer.status, json.loads(answer.read())


class Client(Caller, threading.Thread, ABC):
    """Does something over and over until told to stop; connects anew when a connection breaks."""

    def __init__(
        self, servers: Sequence[Address], tls: ssl.SSLContext, history: History, over: threading.Event, seed: int
    ) -> None:
        Caller.__init__(self, servers, tls, seed)
        threading.Thread.__init__(self, daemon=True)
        self.history, self.over = history, over
        self.failure: BaseException | None = None

    def run(self) -> None:
        while not self.over.is_set():
            try:
                self.act()
            except Broken:
                self.disconnect()
                self.over.wait(0.05)
            except BaseException as failure:
                self.failure = failure
                raise
        self.disconnect()

    @abstractmethod
    def act(self) -> None:
        """Do it once."""


class Writer(Client):
    """Creates, updates and deletes the objects that all writers share, and notes what it was told."""

    def __init__(self, *arguments: Any, name: str, objects: int) -> None:
        super().__init__(*arguments)
        self._own, self._objects, self._count = name, objects, 0
        self._known: dict[str, int] = {}

    def act(self) -> None:
        self._count += 1
        name, tag = f"o{self.random.randrange(self._objects)}", f"{self._own}-{self._count}"
        known = self._known.get(name, 0)
        verb = self.random.choice((UPDATE, UPDATE, DELETE)) if known else CREATE
        body: dict[str, Any] = {"metadata": {"name": name, "labels": {"model": "yes"}}, "data": {"tag": tag}}
        if verb == CREATE:
            self._write(verb, name, tag, 0, lambda: self.call("POST", MAPS, body))
        elif verb == UPDATE:
            body["metadata"]["resourceVersion"] = str(known)
            self._write(verb, name, tag, known, lambda: self.call("PUT", f"{MAPS}/{name}", body))
        else:
            options = {"preconditions": {"resourceVersion": str(known)}}
            self._write(verb, name, tag, known, lambda: self.call("DELETE", f"{MAPS}/{name}", options))

    def _write(self, verb: str, name: str, tag: str, expected: int, ask: Callable[[], tuple[int, Any]]) -> None:
        write = Written(verb, name, tag, expected, time.monotonic(), 0.0, UNKNOWN)
        self.history.written.append(write)
        try:
            status, answer = ask()
        except Broken:
            write.ended = time.monotonic()
            self._known.pop(name, None)
            raise
        write.ended = time.monotonic()
        if status in (200, 201) and verb != DELETE:
            write.version = self._known[name] = int(answer["metadata"]["resourceVersion"])
            write.outcome = DONE
        elif status == 200:
            # The answer to a deletion does not say at which version it happened.
            self._known.pop(name, None)
        elif status < 500:
            write.outcome = REFUSED
            self._learn(name)
        else:
            self._known.pop(name, None)

    def _learn(self, name: str) -> None:
        status, answer = self.call("GET", f"{MAPS}/{name}")
        if status == 200:
            self._known[name] = int(answer["metadata"]["resourceVersion"])
        else:
            self._known.pop(name, None)


class Lister(Client):
    """Lists, now or at a version that was listed before, whole or in pages."""

    def act(self) -> None:
        started = time.monotonic()
        exact = self.history.listed and self.random.random() < 0.3
        limit = self.random.choice(("", "&limit=3"))
        query = limit
        if exact:
            version = self.random.choice(self.history.listed[-20:]).version
            query += f"&resourceVersion={version}&resourceVersionMatch=Exact"
        items: dict[str, tuple[int, str]] = {}
        token = ""
        while True:
            status, answer = self.call("GET", f"{MAPS}?{_OURS}{limit + token if token else query}")
            if status != 200:
                return
            items.update((item["metadata"]["name"], _state(item)) for item in answer["items"])
            if not answer["metadata"].get("continue"):
                break
            token = f"&continue={answer['metadata']['continue']}"
        version = int(answer["metadata"]["resourceVersion"])
        self.history.listed.append(Listed(started, time.monotonic(), version, items, exact=bool(exact)))
        self.over.wait(0.02)


class Watching(Client):
    """Watches from a version on, and goes on from the last one seen when the connection breaks."""

    def __init__(self, *arguments: Any, after: int) -> None:
        super().__init__(*arguments)
        self._watched = Watched(after)
        self._at = after
        self.history.watched.append(self._watched)

    @property
    def at(self) -> int:
        """How far it has seen."""
        return self._at

    def act(self) -> None:
        seconds = self.random.randrange(1, 4)
        query = f"{_OURS}&watch=1&allowWatchBookmarks=true&timeoutSeconds={seconds}&resourceVersion={self._at}"
        answer = self.send("GET", f"{MAPS}?{query}")
        if answer.status != 200:
            answer.read()
            self.disconnect()
            return
        while line := answer.readline():
            self._note(json.loads(line))
        self.disconnect()

    def _note(self, event: dict[str, Any]) -> None:
        if event["type"] == "ERROR":
            # Too old: what was missed is told by a new stretch, from a version that is still there.
            status, answer = self.call("GET", f"{MAPS}?limit=1")
            if status == 200:
                self._at = int(answer["metadata"]["resourceVersion"])
                self._watched = Watched(self._at)
                self.history.watched.append(self._watched)
            raise HTTPException("start anew")
        item = event["object"]
        version, tag = _state(item)
        self._watched.events.append(Seen(event["type"], item["metadata"].get("name", ""), version, tag))
        self._at = version


def _state(item: dict[str, Any]) -> tuple[int, str]:
    return int(item["metadata"]["resourceVersion"]), (item.get("data") or {}).get("tag", "")
