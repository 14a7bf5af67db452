"""The contract on etcd: guarded transactions, ranges at a revision, and the live log."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass
from typing import Final

from pilothouse.machinery.observations import Observations
from pilothouse.machinery.supervision import Supervisor
from pilothouse.net.dialing import Dialer
from pilothouse.storage.backends.contract import (
    Compacted,
    Conflict,
    Event,
    Follower,
    Foreseen,
    FutureRevision,
    History,
    KeyExists,
    KeyValue,
    Page,
    StorageError,
    Unavailable,
)
from pilothouse.storage.backends.etcd.compactor import Compactor, compact
from pilothouse.storage.backends.etcd.connection import DIAL_SECONDS, READ_SECONDS, WRITE_SECONDS, Connection, Transport
from pilothouse.storage.backends.etcd.errors import COMPACTED, FUTURE, LEASE_NOT_FOUND, CallFailed
from pilothouse.storage.backends.etcd.leases import LeasePool
from pilothouse.storage.backends.etcd.live_log import LiveLog, OwnWrite
from pilothouse.storage.backends.etcd.messages import (
    RangeAnswer,
    StatusAnswer,
    delete_if_request,
    lease_request,
    prefix_range,
    put_if_request,
    range_request,
    read_lease,
    read_range,
    read_revision,
    read_status,
    read_txn,
)
from pilothouse.storage.backends.etcd.probe import Probe
from pilothouse.storage.backends.etcd.sight import ALL_KEYS, find_sight
from pilothouse.storage.backends.etcd.versions import answers_progress_requests
from pilothouse.storage.backends.etcd.watches import event_of, find_compacted, opened_watch, watch_changes
from pilothouse.storage.backends.live_feeds import LiveFeed
from pilothouse.storage.backends.rounds import SharedRounds

logger = logging.getLogger(__name__)
_PAGE: Final = 1000
_PROGRESS_SECONDS: Final = 0.1
_RESOLVE_SECONDS: Final = 30.0


@dataclass(frozen=True, slots=True)
class EtcdSettings:
    """How etcd is used. ``compaction_seconds`` 0 leaves compaction to others, less keeps next to no history."""

    compaction_seconds: float = 0.0
    lease_reuse_seconds: int = 60
    size_seconds: float = 0.0
    """How often the size of the database is told; 0 is never."""
    health_seconds: float = 2.0
    readiness_seconds: float = 2.0
    """How long a probe of the cluster waits."""
    prefix: str = ""
    """What all keys of this server begin with, where it may see no others; without it, it has to see all."""
    dial_seconds: float = DIAL_SECONDS
    read_seconds: float = READ_SECONDS
    write_seconds: float = WRITE_SECONDS


class EtcdBackend:
    """One etcd cluster as an ordered log. See `contract.Backend` for what each method promises."""

    name = "etcd3"

    def __init__(
        self,
        transport: Transport,
        settings: EtcdSettings = EtcdSettings(),  # noqa: B008 - immutable
        on_size: Callable[[int], None] = lambda size: None,
        dialer: Dialer | None = None,
    ) -> None:
        """``on_size`` is told the size of the database in bytes now and then; ``dialer`` makes the connections."""
        self._settings, self._on_size = settings, on_size
        self._connection = Connection(transport, dialer)
        self._supervisor = Supervisor("etcd")
        self._log = LiveLog(self._connection, self._read_revision)
        self._leases = LeasePool(self._grant, settings.lease_reuse_seconds)
        self._revisions = SharedRounds(self._reach_newest)
        self._compactor = Compactor(self._connection, settings.compaction_seconds)
        self.health = Probe(self.check, settings.health_seconds)
        self.readiness = Probe(self.check, settings.readiness_seconds)
        self._progress_is_reliable = False
        self._sight, self._nothing = ALL_KEYS, ALL_KEYS.nothing
        self._open = False

    @property
    def lease_shares(self) -> Observations:
        """How many keys shared a lease."""
        return self._leases.shares

    @property
    def is_open(self) -> bool:
        return self._open

    async def open(self) -> None:
        """Reach a member and find out where the log stands. Raises Unavailable, UnusableStore."""
        try:
            await self._connection.wait_ready(self._settings.dial_seconds)
            self._progress_is_reliable = answers_progress_requests((await self.status()).version)
            await self._look()
            await self._log.start(self._sight)
        except BaseException:
            await self._connection.close()
            raise
        self._open = True
        self._supervisor.run("watch", self._log.run)
        for name, probe in (("health", self.health), ("readiness", self.readiness)):
            await probe.ask()
            self._supervisor.run(name, probe.run)
        if self._settings.compaction_seconds != 0:
            self._supervisor.run("compactor", self._compactor.run)
        if self._settings.size_seconds > 0:
            self._supervisor.run("size", self._tell_size)

    async def _look(self) -> None:
        prefix, asks = self._settings.prefix, self._progress_is_reliable
        try:
            self._sight = await find_sight(self._connection, prefix, asks_for_progress=asks)
        except CallFailed as error:
            raise error.to_storage_error() from None
        self._nothing = self._sight.nothing

    async def close(self) -> None:
        if not self._open:
            return
        self._open = False
        await self._supervisor.close()
        await self._connection.close()
        closed = Unavailable("the connection to etcd is closed")
        self._revisions.close(closed)
        self._log.close(closed)

    # Writing

    async def create(self, key: str, value: bytes, ttl_seconds: int | None = None, origin: object = None) -> int:
        write = OwnWrite(key, value, origin)
        answered, current = await self._put(write, 0, ttl_seconds)
        if answered:
            return answered
        raise KeyExists(key, current.revision if current is not None else 0)

    async def update(
        self, key: str, value: bytes, expected: int, ttl_seconds: int | None = None, origin: object = None
    ) -> int:
        write = OwnWrite(key, value, origin)
        answered, current = await self._put(write, expected or -1, ttl_seconds)
        if answered:
            return answered
        raise Conflict(key, expected, current)

    async def delete(self, key: str, expected: int, origin: object = None) -> int:
        write = OwnWrite(key, None, origin)
        answered, current = await self._commit(write, delete_if_request(_encode(key), expected or -1), expected or -1)
        if answered:
            return answered
        raise Conflict(key, expected, current)

    async def _put(self, write: OwnWrite, expected: int, ttl_seconds: int | None) -> tuple[int, KeyValue | None]:
        key, value = _encode(write.key), write.value or b""
        if not ttl_seconds:
            return await self._commit(write, put_if_request(key, value, expected), expected)
        lease = await self._lease_for(ttl_seconds)
        try:
            return await self._commit(write, put_if_request(key, value, expected, lease), expected)
        except StorageError as error:
            if str(error) == LEASE_NOT_FOUND:
                self._leases.forget(lease)
            raise

    async def _commit(self, write: OwnWrite, request: bytes, expected: int) -> tuple[int, KeyValue | None]:
        """(revision, None) of a write that was carried out, (0, state in the way) of one that was refused."""
        self._require_open()
        self._log.begin(write)
        try:
            try:
                answer = read_txn(await self._connection.write("KV/Txn", request, self._settings.write_seconds))
            except CallFailed as error:
                if not error.leaves_doubt:
                    raise error.to_storage_error() from None
                return await self._resolve(write, expected, error)
            if not answer.succeeded:
                return 0, answer.current
            created = expected == 0
            self._log.acknowledge(Event(write.key, answer.revision, write.value, created, None, write.origin))
            if answer.revision > self._log.revision:
                await self._log.reach(answer.revision)
            return answer.revision, None
        finally:
            self._log.end(write)

    async def _resolve(self, write: OwnWrite, expected: int, error: CallFailed) -> tuple[int, KeyValue | None]:
        """What became of a write that got no answer. It is told where the log leaves no doubt; else the failure stands.

        A key that stands where it stood may still change: etcd may have the write in its queue. A deletion in the log
        may be anybody's. Any other change means that the condition of the write no longer holds and never will.
        """
        failure = error.to_storage_error()
        try:
            await self.current_revision()
            current = None if write.landed else await self._get(write.key, 0, _RESOLVE_SECONDS)
        except StorageError:
            raise failure from None
        if write.landed:
            return write.landed, None
        waits = current is None if expected == 0 else current is not None and current.revision == expected
        if waits or (write.value is None and (write.gone or current is None)):
            raise failure from None
        return 0, current

    # Reading

    async def get(self, key: str, revision: int = 0) -> KeyValue | None:
        return await self._get(key, revision, self._settings.read_seconds)

    async def _get(self, key: str, revision: int, seconds: float) -> KeyValue | None:
        answer = await self._range(range_request(_encode(key), revision=revision), revision, seconds)
        return answer.items[0] if answer.items else None

    async def list(
        self, prefix: str, *, start: str | None = None, limit: int = 0, revision: int = 0, counted: bool = True
    ) -> Page:
        first, end = prefix_range(prefix, start)
        items: list[KeyValue] = []
        at = revision
        while True:
            wanted = min(_PAGE, limit - len(items)) if limit else _PAGE
            answer = await self._range(range_request(first, end, limit=wanted, revision=at), at)
            at = at or answer.revision
            items += answer.items
            if not answer.more or len(items) == limit:
                return Page(items, at, answer.more, answer.count - len(answer.items))
            first = _encode(items[-1].key) + b"\0"

    async def count(self, prefix: str) -> int:
        first, end = prefix_range(prefix)
        return (await self._range(range_request(first, end, count_only=True))).count

    async def history(self, prefix: str, after: int, limit: int = 1000) -> History:
        current = await self.current_revision()
        if after > current:
            raise FutureRevision(after, current)
        if after == current:
            return History([], current)
        # Without trustworthy progress only the whole log tells that a part of it is complete.
        key, end = prefix_range(prefix) if self._progress_is_reliable else (ALL_KEYS.key, ALL_KEYS.end)
        try:
            return await self._read_history(key, end, prefix, max(after, 0), current, limit)
        except CallFailed as error:
            raise error.to_storage_error() from None

    async def _read_history(self, key: bytes, end: bytes, prefix: str, after: int, current: int, limit: int) -> History:
        events: list[Event] = []
        async with opened_watch(self._connection, key, end, after, previous=True) as watch:
            position = after
            asking = (
                self._supervisor.spawn("progress", _ask_for_progress(watch.request_progress))
                if (self._progress_is_reliable)
                else None
            )
            try:
                while position < current and len(events) < limit:
                    answer = await watch.next()
                    if answer.changes:
                        events += [event_of(each) for each in answer.changes if each.key.startswith(prefix)]
                        position = answer.changes[-1].revision
                    elif self._progress_is_reliable and not answer.created:
                        position = max(position, answer.revision)
            finally:
                if asking is not None:
                    asking.cancel()
        return History(events, position)

    # Following

    def follow(self, follower: Follower) -> LiveFeed:
        self._require_open()
        return self._log.follow(follower)

    async def watch(self, prefix: str, after: int) -> AsyncIterator[Sequence[Event]]:
        current = await self.current_revision()
        if after > current:
            raise FutureRevision(after, current)
        first, end = prefix_range(prefix)
        while True:
            try:
                async for events in watch_changes(self._connection, first, end, after):
                    after = events[-1].revision
                    yield events
            except CallFailed as error:
                self._require_open()
                if not error.may_be_elsewhere:
                    raise error.to_storage_error() from None
                self._connection.pass_on()
                await asyncio.sleep(_PROGRESS_SECONDS)

    async def current_revision(self) -> int:
        self._require_open()
        return await self._revisions.get()

    def foresee(self) -> Foreseen | None:
        return self._revisions.foresee() if self._open else None

    def unseen_revision(self) -> int | None:
        self._require_open()
        return None

    async def compact(self, revision: int) -> None:
        self._require_open()
        try:
            await compact(self._connection, revision)
        except CallFailed as error:
            raise await self._read_error(error, revision) from None

    async def compacted_revision(self) -> int:
        self._require_open()
        try:
            return await find_compacted(self._connection, self._sight.key)
        except CallFailed as error:
            raise error.to_storage_error() from None

    # About the cluster

    async def check(self, seconds: float) -> None:
        """Raise Unavailable unless the cluster answers a linearizable read in time."""
        await self._get(f"{self._settings.prefix or '/registry/'}health", 0, seconds)

    async def status(self, seconds: float = READ_SECONDS) -> StatusAnswer:
        """What one member says about itself. Raises Unavailable."""
        try:
            return read_status(await self._connection.read("Maintenance/Status", b"", seconds))
        except CallFailed as error:
            raise error.to_storage_error() from None

    async def sizes(self, seconds: float) -> dict[str, int]:
        """The size of each member's database, of those that answer."""
        answers = self._connection.each("Maintenance/Status", b"", seconds)
        return {server: read_status(answer).size async for server, answer in answers if isinstance(answer, bytes)}

    async def _tell_size(self) -> None:
        while True:
            try:
                self._on_size((await self.status()).size)
            except StorageError as error:
                logger.warning("etcd does not tell its size: %s", error)
            await asyncio.sleep(self._settings.size_seconds)

    # Inside

    async def _range(self, request: bytes, revision: int = 0, seconds: float | None = None) -> RangeAnswer:
        self._require_open()
        try:
            data = await self._connection.read("KV/Range", request, seconds or self._settings.read_seconds)
        except CallFailed as error:
            raise await self._read_error(error, revision) from None
        return read_range(data)

    async def _read_error(self, error: CallFailed, revision: int) -> StorageError:
        if error.details == COMPACTED:
            return Compacted(revision, await self.compacted_revision())
        if error.details == FUTURE:
            return FutureRevision(revision, await self._read_revision())
        return error.to_storage_error()

    async def _reach_newest(self) -> int:
        revision = await self._read_revision()
        if revision > self._log.revision:
            await self._log.reach(revision)
        return revision

    async def _read_revision(self) -> int:
        """Where the log stands, by a linearizable read of nothing."""
        try:
            return read_revision(await self._connection.read("KV/Range", self._nothing, self._settings.read_seconds))
        except CallFailed as error:
            raise error.to_storage_error() from None

    async def _lease_for(self, ttl_seconds: int) -> int:
        self._require_open()
        try:
            return await self._leases.lease_for(ttl_seconds)
        except CallFailed as error:
            raise error.to_storage_error() from None

    async def _grant(self, seconds: int) -> int:
        return read_lease(await self._connection.write("Lease/LeaseGrant", lease_request(seconds)))[0]

    def _require_open(self) -> None:
        if not self._open:
            raise Unavailable("the connection to etcd is closed")


async def _ask_for_progress(ask: Callable[[], None]) -> None:
    """Until it is answered: etcd passes over a question that comes while it still catches up."""
    while True:
        ask()
        await asyncio.sleep(_PROGRESS_SECONDS)


def _encode(key: str) -> bytes:
    try:
        return key.encode()
    except UnicodeEncodeError:
        raise StorageError(f"key {key!a} is not valid text") from None
