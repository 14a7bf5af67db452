"""The main API server's objects as a store: kept current by a list and a watch of each resource that somebody reads.

    main API server ──list, watch──► MirrorBackend ──► watch cache ──► stores ──► plug-ins

So plug-ins that decide by webhook configurations, policies, namespaces and services read them here as they do in the
main server. The log has revisions of its own; nothing can be written. A resource is followed from the first reading
on, and who reads before its list has come waits for some seconds, or is told what stands in the way.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any, Final

from pilothouse.admission.objects import Objects
from pilothouse.apis.resources import Resource, hub_row, table
from pilothouse.library.main_server import Main
from pilothouse.machinery import errors
from pilothouse.machinery.kept_json import dumps_to_keep
from pilothouse.machinery.objects import Object
from pilothouse.machinery.supervision import Supervisor
from pilothouse.net.dialing import OutgoingError
from pilothouse.registry.store.store import Store
from pilothouse.storage.backends.contract import (
    FIRST_REVISION,
    Event,
    Follower,
    History,
    KeyValue,
    Page,
    StorageError,
    Unavailable,
)

_PATIENCE_SECONDS: Final = 10.0
_GONE: Final = 410


def path_of(row: Resource) -> str:
    """Where the main server lists a resource."""
    return f"/apis/{row.group_version}/{row.name}" if row.group else f"/api/{row.version}/{row.name}"


class MirrorBackend:
    """See the module's docstring. ``root`` is what its keys begin with."""

    name = "mirror"
    is_open = True

    def __init__(self, main: Main, supervisor: Supervisor, root: str) -> None:
        self._main, self._supervisor, self._root = main, supervisor, root
        self._reflectors: dict[str, _Reflector] = {}
        self._followers: list[Follower] = []
        self._objects: dict[str, KeyValue] = {}
        self._revision = FIRST_REVISION

    async def open(self) -> None:
        """Nothing is followed before somebody reads."""

    async def close(self) -> None:
        """Its supervisor ends what follows the main server."""

    async def list(
        self, prefix: str, *, start: str | None = None, limit: int = 0, revision: int = 0, counted: bool = True
    ) -> Page:
        """All objects of a resource, in one page."""
        await self._reflector(prefix).wait()
        items = sorted((each for key, each in self._objects.items() if key.startswith(prefix)), key=lambda kv: kv.key)
        return Page(items, self._revision, False, 0)

    def _reflector(self, prefix: str) -> _Reflector:
        found = self._reflectors.get(prefix)
        if found is None:
            row = _rows(self._root)[prefix]
            found = self._reflectors[prefix] = _Reflector(self, self._main, prefix, path_of(row))
            self._supervisor.run(f"mirror of {row.name}", found.run)
        return found

    def follow(self, follower: Follower) -> _Feed:
        """Hand over all changes from now on."""
        self._followers.append(follower)
        return _Feed(self._followers, follower, self._revision)

    async def get(self, key: str, revision: int = 0) -> KeyValue | None:
        """The newest state of a key."""
        return self._objects.get(key)

    async def count(self, prefix: str) -> int:
        """How many objects are known below a prefix."""
        return sum(key.startswith(prefix) for key in self._objects)

    async def current_revision(self) -> int:
        """The newest revision."""
        return self._revision

    def foresee(self) -> None:
        """There is nobody to ask."""

    def unseen_revision(self) -> int:
        """Followers are told of everything at once."""
        return self._revision

    async def compacted_revision(self) -> int:
        """Nothing before the present is known."""
        return self._revision

    async def compact(self, revision: int) -> None:
        """There is no history."""

    async def history(self, prefix: str, after: int, limit: int = 1000) -> History:
        """There is none."""
        raise Unavailable("a mirror has no history")

    def watch(self, prefix: str, after: int) -> Any:
        """Caches follow instead."""
        raise Unavailable("a mirror has no history")

    async def create(self, key: str, value: bytes, ttl_seconds: int | None = None, origin: object = None) -> int:
        """Refused."""
        raise _read_only()

    async def update(
        self, key: str, value: bytes, expected: int, ttl_seconds: int | None = None, origin: object = None
    ) -> int:
        """Refused."""
        raise _read_only()

    async def delete(self, key: str, expected: int, origin: object = None) -> int:
        """Refused."""
        raise _read_only()

    # For reflectors

    def replace(self, prefix: str, found: dict[str, bytes]) -> None:
        """The whole state of a resource."""
        for key in [key for key in self._objects if key.startswith(prefix) and key not in found]:
            self.change(key, None)
        for key, value in found.items():
            self.change(key, value)

    def change(self, key: str, value: bytes | None) -> None:
        """One object is new, another, or gone."""
        known = self._objects.get(key)
        if (known.value if known is not None else None) == value:
            return
        self._revision += 1
        if value is None:
            self._objects.pop(key, None)
        else:
            created = self._revision if known is None else known.created
            self._objects[key] = KeyValue(key, value, self._revision, created)
        event = Event(key, self._revision, value, known is None)
        for follower in tuple(self._followers):
            follower.receive([event], self._revision)


class _Feed:
    def __init__(self, followers: list[Follower], follower: Follower, revision: int) -> None:
        self._followers, self._follower, self.revision = followers, follower, revision

    def close(self) -> None:
        """Stop at once."""
        if self._follower in self._followers:
            self._followers.remove(self._follower)


class _Reflector:
    """Follows one resource. What fails is told to who waits; the supervisor has it tried again."""

    def __init__(self, backend: MirrorBackend, main: Main, prefix: str, path: str) -> None:
        self._backend, self._main, self._prefix, self._path = backend, main, prefix, path
        self._changed = asyncio.Event()
        self._synced = False
        self._failure = ""

    async def wait(self) -> None:
        """Return once the resource has been listed. Raises Unavailable."""
        try:
            async with asyncio.timeout(_PATIENCE_SECONDS):
                while not self._synced:
                    if self._failure:
                        raise Unavailable(self._failure)
                    await self._changed.wait()
                    self._changed.clear()
        except TimeoutError:
            raise Unavailable(f"{self._path} of the main API server has not been listed yet") from None

    async def run(self) -> None:
        """List, then watch until something fails."""
        try:
            version = await self._list()
            while True:
                version = await self._watch(version)
        except (errors.StatusError, OutgoingError) as error:
            why = error.message if isinstance(error, errors.StatusError) else str(error)
            self._note(f"{self._path} of the main API server cannot be read: {why}")
            raise

    async def _list(self) -> str:
        items, version = await self._main.snapshot(self._path)
        self._backend.replace(self._prefix, {self._key(item): dumps_to_keep(item) for item in items})
        self._synced = True
        self._note("")
        return version

    async def _watch(self, version: str) -> str:
        async for event in self._main.watch(
            f"{self._path}?watch=true&allowWatchBookmarks=true&resourceVersion={version}"
        ):
            kind, obj = event.get("type"), event.get("object") or {}
            if kind == "ERROR":
                raise errors.StatusError(int(obj.get("code", _GONE)), "Expired", str(obj.get("message", "")))
            version = obj["metadata"].get("resourceVersion", version)
            if kind != "BOOKMARK":
                self._backend.change(self._key(obj), None if kind == "DELETED" else dumps_to_keep(obj))
        return version

    def _note(self, failure: str) -> None:
        self._failure = failure
        self._changed.set()

    def _key(self, obj: Object) -> str:
        metadata = obj["metadata"]
        namespace = metadata.get("namespace", "")
        return f"{self._prefix}{namespace}/{metadata['name']}" if namespace else f"{self._prefix}{metadata['name']}"


class MirroredObjects(Objects):
    """Objects of the main server. One that is not known may be new: the server itself is asked then."""

    __slots__ = ("_main", "_row")

    def __init__(self, store: Store, main: Main, row: Resource) -> None:
        super().__init__(store)
        self._main, self._row = main, row

    async def ready(self) -> None:
        """Wait until the resource is listed; 503 with the reason where it cannot be."""
        try:
            await super().ready()
        except StorageError as error:
            why = f"not yet ready to handle request: {error}"
            raise errors.StatusError(503, "ServiceUnavailable", why) from None

    async def find(self, namespace: str, name: str) -> Object | None:
        """An object, shared, asking the main server as a last resort."""
        await self.ready()
        found = self.get(namespace, name)
        if found is not None:
            return found
        place = path_of(self._row)
        if namespace:
            start, _, end = place.rpartition("/")
            place = f"{start}/namespaces/{namespace}/{end}"
        try:
            return await self._main.get(f"{place}/{name}")
        except errors.StatusError as error:
            if error.code == 404:
                return None
            raise


def _read_only() -> Unavailable:
    return Unavailable("a mirror of the main API server cannot be written to")


def _rows(root: str) -> dict[str, Resource]:
    """Resources by the prefix of their keys."""
    versions: Sequence[Any] = list(table().values())
    rows = [hub_row(row) for version in versions for row in version.resources if row.is_stored]
    return {f"{root}/{row.key}/": row for row in rows}
