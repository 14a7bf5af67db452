"""One store per stored resource: reads from the cache (``reading.py``), writes through it, under a strategy.

Writes decode the stored object, let ``rest`` and the strategy work on it, and are optimistic: a write that meets a
newer revision is made again from the newer object, which refuses it where the client insisted on a version. Whatever a
write returns is already in the cache, so a client reads its own writes.

    create  ─►  _create_once: reserve ─► _check_new: judge, validating admission ─► _write_new
    update  ─►  _change: the change ─► _update_once: reserve ─► judge, validating admission ─► _replace
    delete      in ``removal.py``, with ``remove`` at its end
"""

from __future__ import annotations

import random
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, Final

from pilothouse.apis import types
from pilothouse.apis.gated import Places, drop_gated, find_gated
from pilothouse.apis.resources import Resource
from pilothouse.apis.strategy import Context, Strategy
from pilothouse.machinery import errors, large_json
from pilothouse.machinery.field_errors import Path, invalid
from pilothouse.machinery.gvk import GroupKind
from pilothouse.machinery.lazy import lazy
from pilothouse.machinery.names import generate_name
from pilothouse.machinery.objects import Object
from pilothouse.machinery.schema.emptied import Emptied, forget, note_always_written
from pilothouse.machinery.schema.raw import Texts, Writing, read_texts
from pilothouse.machinery.weights import weight_of
from pilothouse.machinery.workers import LONG, attempted, weighed
from pilothouse.registry.rest.before_create import before_create, ensure_namespace
from pilothouse.registry.rest.before_update import before_update
from pilothouse.registry.rest.deletion import DEFAULT_DELETING, Deleting
from pilothouse.registry.store.codec import ObjectCodec, with_version
from pilothouse.registry.store.reading import StoreReader
from pilothouse.registry.store.reservations import Reservation, Reservations
from pilothouse.registry.store.sizing import SURELY_FITS
from pilothouse.registry.store.versions import names_version, parse_version
from pilothouse.storage.backends.contract import Conflict, KeyExists
from pilothouse.storage.cacher import Entry, ResourceCache

_RANDOM: Final = random.Random()
"""For generated names: to seed one takes 25 µs, and a thousand definitions have a store for each version."""
CONFLICT: Final = "the object has been modified; please apply your changes to the latest version and try again"
_AS_WRITTEN: Final = "as written"  # kept with entries known to be stored as they would be written today
_NAME_ATTEMPTS: Final = 8

ValidatingAdmission = Callable[[Object, Object | None], Awaitable[None]]
"""Validating admission: (object, old object) → returns, or raises the refusal."""
IsStale = Callable[[str], Awaitable[bool]]
"""Whether the value of a key should be written anew although nothing changed: its encryption is out of date."""
Change = Callable[[Object | None], Awaitable[Object]]
"""Makes the wanted object from the stored one (None when there is none yet). May be called again after a conflict."""


class Store(StoreReader):
    """All objects of one resource."""

    def __init__(
        self,
        resource: Resource,
        strategy: Strategy,
        cache: ResourceCache,
        codec: ObjectCodec,
        root: str,
        *,
        ttl_seconds: int | None = None,
        oldest_watch: int = 0,
        gates: frozenset[str] | None = None,
        is_stale: IsStale | None = None,
        reservations: Reservations | None = None,
        converts: bool = False,
        deleting: Deleting = DEFAULT_DELETING,
        reads_newest: bool = False,
    ) -> None:
        super().__init__(
            resource, cache, codec, root, oldest_watch=oldest_watch, converts=converts, reads_newest=reads_newest
        )
        self.strategy = strategy
        self.deleting = deleting
        self._ttl = ttl_seconds
        self._random = _RANDOM
        self.reservations = reservations
        self._is_stale = is_stale
        self._gates = gates
        """The feature gates that are on; None where no fields depend on any."""

    @lazy
    def _gated(self) -> Places | None:
        """Where fields of features that are off can be."""
        return None if self._gates is None else find_gated(self.resource.type_name, self._gates)

    # Creating

    def create(
        self, ctx: Context, obj: Object, validate: ValidatingAdmission | None = None
    ) -> Coroutine[Any, Any, Entry]:
        """Store a new object. Raises 409 when it exists, 422 when it is invalid."""
        metadata = obj["metadata"]
        if not metadata.get("name") and metadata.get("generateName"):
            return self._create_named(ctx, obj, validate)
        return self._create_as_named(ctx, obj, validate)

    async def _create_as_named(self, ctx: Context, obj: Object, validate: ValidatingAdmission | None) -> Entry:
        try:
            return await self._create_once(ctx, obj, validate, checked=False)
        except KeyExists:
            raise await self._exists(obj["metadata"]) from None

    async def _exists(self, metadata: dict[str, Any]) -> errors.StatusError:
        resource, name = self.resource.group_resource, metadata["name"]
        if metadata.get("generateName"):  # whoever chose the name
            error = errors.generate_name_conflict(resource, name, 1)
        else:
            error = errors.already_exists(resource, name)
        present = self.cache.get(self.key(metadata.get("namespace", ""), metadata["name"]))
        if present is not None and await self._is_leaving(present):
            error.message = f"object is being deleted: {error.message}"
        return error

    async def _is_leaving(self, entry: Entry) -> bool:
        """Whether an object, in whichever version it is stored, is to be deleted."""
        obj = await weighed(entry.size, large_json.loads, entry.data)
        return bool(obj["metadata"].get("deletionTimestamp"))

    async def _create_named(self, ctx: Context, obj: Object, validate: ValidatingAdmission | None) -> Entry:
        """Find a free name. The object is checked once: names that differ in a suffix are equally valid."""
        for attempt in range(_NAME_ATTEMPTS):
            metadata = obj["metadata"]
            metadata["name"] = prefix = metadata["generateName"]
            if self.strategy.metadata_rules.adds_letters:
                metadata["name"] = generate_name(prefix, self._random)
            try:
                return await self._create_once(ctx, obj, validate, checked=attempt > 0)
            except KeyExists:
                continue
        raise errors.generate_name_conflict(self.resource.group_resource, metadata["name"], 1)

    async def _create_once(
        self, ctx: Context, obj: Object, validate: ValidatingAdmission | None, *, checked: bool
    ) -> Entry:
        """Reserve what the object needs, check it unless that was done, write it; a failure leaves nothing reserved.

        What comes into being through a subresource gets nothing reserved, as in kube-apiserver.
        """
        if self.reservations is None or ctx.subresource:
            if not checked:
                await attempted(self._judging_weight(ctx, obj), self._judge_new, ctx, obj)
                if validate is not None:
                    await validate(obj, None)
            return await self._write_new(ctx, obj)
        ensure_namespace(self.resource, ctx, obj["metadata"])
        reservation = await self.reservations.allocate_create(ctx, obj)
        try:
            if not checked:
                await attempted(self._judging_weight(ctx, obj), self._judge_new, ctx, obj)
                if validate is not None:
                    await validate(obj, None)
            entry = await self._write_new(ctx, obj)
        except BaseException:
            await reservation.undo()
            raise
        await reservation.commit()
        return entry

    def _judging_weight(self, ctx: Context, obj: Object) -> int:
        return LONG if self.strategy.is_heavy(obj) else ctx.weight

    def _judge_new(self, ctx: Context, obj: Object) -> None:
        if self._gated is not None:
            drop_gated(self._gated, obj, None)
        self._note_empty(obj)
        before_create(self.resource, self.strategy, ctx, obj)

    def _note_empty(self, obj: Object) -> None:
        """Empty lists that are written nevertheless are equal to none, where storage takes them for none."""
        if isinstance(obj, Emptied) and not self.codec.keeps_empty:
            note_always_written(types.struct(self.resource.type_name), obj)

    def _is_complete(self, strategy: Strategy, obj: Object) -> bool:
        """Whether a judged object is what reading it gives, as most are."""
        return obj.__class__ is dict and not strategy.completed_when_read and not self.codec.hides(obj)

    async def _complete(self, ctx: Context, strategy: Strategy, obj: Object, entry: Entry | None = None) -> bytes:
        """Give a judged object what reading it gives; its bytes before that, where storage keeps these."""
        hides = self.codec.hides(obj)
        keeps = self.codec.writes_form or hides
        judged = await weighed(ctx.weight, self._encode, ctx, obj, entry) if keeps else b""
        self.codec.hide(obj)
        strategy.read_back(obj)
        if obj.__class__ is not dict:
            await weighed(ctx.weight, self._settle_empty, obj)
        return judged

    def _settle_empty(self, obj: Object) -> None:
        """What was given as empty reads back as not given at all, and so with its default."""
        forget(obj)
        if not _is_finished(obj["metadata"]):
            self.strategy.default(obj)

    async def _write_new(self, ctx: Context, obj: Object) -> Entry:
        metadata = obj["metadata"]
        key = self.key(metadata.get("namespace", ""), metadata["name"])
        judged = b"" if self._is_complete(self.strategy, obj) else await self._complete(ctx, self.strategy, obj)
        if ctx.dry_run and self.cache.get(key) is not None:
            raise KeyExists(key, 0)
        if self.converts:
            obj = await self.stored_form(ctx, obj)
        weight = ctx.weight
        data = self._encode(ctx, obj) if weight < LONG else await weighed(weight, self._encode, ctx, obj)
        if ctx.dry_run:
            return self._unstored(key, obj, data)
        if metadata.get("resourceVersion") and names_version(metadata["resourceVersion"]):
            raise errors.generic("resourceVersion should not be set on objects to be created")
        if len(data) > SURELY_FITS:
            await weighed(weight, self.codec.check_size, key, obj, data, 0)
        stored = (
            await self.codec.stored(judged or data) if self.codec.writes_form else self.codec.to_stored(judged or data)
        )
        return await self.cache.create(
            key, stored, self._ttl, lambda revision: self.codec.entry_of(key, obj, data, revision)
        )

    def _encode(self, ctx: Context, obj: Object, entry: Entry | None = None) -> bytes:
        """The bytes of the wanted object; raw values are written as they were sent, or as they are stored."""
        raw = [] if entry is None else self.raw_texts(entry)
        if ctx.raw is not None:
            raw = [ctx.raw(obj, raw[0] if raw else {}), *raw]
        return self.codec.encode(obj, *raw)

    def _unstored(self, key: str, obj: Object, data: bytes) -> Entry:
        """What a dry run answers with: the object as it would be, without a version but one that was sent along."""
        obj, data = self.codec.read_back(obj, data)
        entry = self.codec.entry_of(key, obj, data, 0)
        version = obj["metadata"].get("resourceVersion")
        entry.data = with_version(data, version) if version else data
        return entry

    # Updating

    async def update(
        self,
        ctx: Context,
        name: str,
        change: Change,
        validate: ValidatingAdmission | None = None,
        *,
        strategy: Strategy | None = None,
        create: bool | None = None,
        authorize_and_validate_create: ValidatingAdmission | None = None,
    ) -> tuple[Entry, bool]:
        """Change an object; answers (entry, whether it was created).

        ``change`` gives the wanted object; its resourceVersion, where set, must be the stored one. ``create`` says
        whether a missing object may be created, the strategy's choice when not given.
        """
        strategy = strategy or self.strategy
        key = self.key_of_named(ctx.namespace, name)
        if not self.cache.ready:
            await self.cache.wait_ready()
        # What the cache has is probably right, and storage refuses the write if it is not. Only a result that writes
        # nothing (a refusal, no change, a dry run) has to be held against the present state.
        fresh = self.cache.is_fresh()
        while True:
            if self.cache.is_being_written(key):
                await self.cache.wait_settled(key)
            entry = self.cache.get(key)
            if entry is None:
                if not fresh:
                    await self.cache.wait_fresh()
                    fresh = True
                    continue
                if not (strategy.update_rules.allow_create if create is None else create):
                    raise errors.not_found(self.resource.group_resource, name)
                created = await self._create_missing(ctx, await change(None), authorize_and_validate_create)
                if created is None:
                    continue
                return created, True
            if self.converts:
                await self.prepare_change(entry)
            try:
                written = await self._change(ctx, strategy, name, change, entry, validate)
            except Conflict:
                # Once more with the newer object: who insists on a version is refused by the check, a patch is not.
                await self.cache.wait_fresh()
                fresh = True
                continue
            except errors.StatusError:
                if fresh or not await self.has_moved(entry):
                    raise
                fresh = True
                continue
            if fresh or (written is not entry and not ctx.dry_run) or not await self.has_moved(entry):
                return written, False
            fresh = True

    async def _create_missing(self, ctx: Context, obj: Object, validate: ValidatingAdmission | None) -> Entry | None:
        """Create what an update did not find; None if somebody else was faster, whose object the cache then has."""
        _version_of(obj["metadata"])
        if not ctx.dry_run:
            obj["metadata"].pop("resourceVersion", None)
        try:
            return await self.create(ctx, obj, validate)
        except errors.StatusError as error:
            if error.reason != "AlreadyExists":
                raise
        await self.cache.wait_fresh()
        return None

    async def has_moved(self, entry: Entry) -> bool:
        """Whether the object is no longer what the cache said it was."""
        await self.cache.wait_fresh()
        return self.cache.get(entry.key) is not entry

    async def _change(
        self,
        ctx: Context,
        strategy: Strategy,
        name: str,
        change: Change,
        entry: Entry,
        validate: ValidatingAdmission | None,
    ) -> Entry:
        """Change an object from one state to the next. Raises Conflict."""
        weight = ctx.weight = max(ctx.weight, weight_of(entry.data), self.weight(entry))
        glimpse, ctx.glimpse = ctx.glimpse, None
        if glimpse is not None and glimpse[0] is entry:
            old = glimpse[1]
        else:
            old = self.decode(entry) if weight < LONG else await self.read(entry)
        if self.codec.hides(old):
            whole = await self._whole(entry)
            obj = await change(whole)
            old = old if strategy is self.strategy else whole  # what a subresource leaves alone is what is stored
        else:
            obj = await change(old)
        self._check_version(strategy, obj, entry, name)
        if ctx.raw is not None:
            ctx.raw_texts, ctx.raw_changed = await weighed(ctx.weight, self._raw_texts_of, ctx.raw, obj, entry)
        return await self._update_once(ctx, strategy, obj, old, entry, validate)

    def raw_texts(self, entry: Entry) -> list[Texts]:
        """How raw values of a stored object are written; nothing for kinds that have none."""
        return [read_texts(entry.data, self.codec.raw_places)] if self.codec.raw_places else []

    def _raw_texts_of(self, writing: Writing, obj: Object, entry: Entry) -> tuple[Texts, bool]:
        """How the raw values of a wanted object are written, and whether that changes what is stored."""
        stored = self.raw_texts(entry)[0]
        wanted = writing(obj, stored)
        return wanted, any(stored[place] != wanted.get(place) for place in stored if place[0] != "status")

    async def _update_once(
        self,
        ctx: Context,
        strategy: Strategy,
        obj: Object,
        old: Object,
        entry: Entry,
        validate: ValidatingAdmission | None,
    ) -> Entry:
        """Reserve, check and write a change; what it reserved is given back when it fails. Raises Conflict."""
        reservation: Reservation | None = None
        if self.reservations is not None and strategy is self.strategy:
            reservation = await self.reservations.allocate_update(ctx, obj, old)
        try:
            weight = LONG if strategy.is_heavy(obj) else ctx.weight
            await attempted(weight, self._judge_change, ctx, strategy, obj, old)
            if validate is not None:
                await validate(obj, old)
            judged = b"" if self._is_complete(strategy, obj) else await self._complete(ctx, strategy, obj, entry)
            written = await self._replace(ctx, obj, old, entry, judged)
        except BaseException:
            if reservation is not None:
                await reservation.undo()
            raise
        if reservation is not None:
            await reservation.commit()
        return written

    def _judge_change(self, ctx: Context, strategy: Strategy, obj: Object, old: Object) -> None:
        if self._gated is not None:
            ctx.gated_given = drop_gated(self._gated, obj, old)
        self._note_empty(obj)
        before_update(self.resource, strategy, ctx, obj, old)

    async def remove(self, key: str, revision: int, obj: Object) -> Entry:
        """Take an object that stands at a revision out of the store, with all it had reserved. Raises Conflict."""
        gone = await self.cache.delete(key, revision)
        if self.reservations is not None:
            await self.reservations.release(obj)
        return gone

    def is_unchanged(self, obj: Object, old: Object, entry: Entry) -> bool:
        """Whether storing ``obj`` would change nothing."""
        return same_object(obj, old)

    def _check_version(self, strategy: Strategy, obj: Object, entry: Entry, name: str) -> None:
        """409 when the wanted object names another version than the stored one."""
        metadata = obj["metadata"]
        version = _version_of(metadata)
        if version == 0:
            if not strategy.update_rules.allow_unconditional:
                errs = [invalid(Path("metadata", "resourceVersion"), 0, "must be specified for an update")]
                raise errors.invalid(GroupKind(self.resource.group, self.resource.name), name, errs)
            metadata["resourceVersion"] = str(entry.revision)
        elif version != entry.revision:
            raise errors.conflict(self.resource.group_resource, name, CONFLICT)

    async def _changes_nothing(self, ctx: Context, obj: Object, old: Object, entry: Entry, judged: bytes) -> bool:
        """Whether nothing is to be written: of what is shown, of what is not, or because its encryption is outdated."""
        if ctx.raw_changed or not self.is_unchanged(obj, old, entry):
            return False
        if self._is_stale is not None and await self._is_stale(entry.key):
            return False
        if not self.codec.hides(obj):
            return True
        return await self._whole(entry) == {**large_json.loads(judged), "metadata": old["metadata"]}

    def _may_be_outdated(self, entry: Entry) -> bool:
        """Whether an object may be stored in an older version, in another form, or without a newer default.

        Who migrates storage writes objects back as they are.
        """
        return self.codec.writes_form and not self.converts and _AS_WRITTEN not in (entry.forms or ())

    async def _is_outdated(self, entry: Entry, wanted: bytes) -> bool:
        found = await self.cache.stored(entry.key)
        if found is None or found.revision != entry.revision:
            return False  # it has moved, which the caller finds out
        if found.value == wanted:
            entry.keep(_AS_WRITTEN, True)
        return found.value != wanted

    async def _replace(self, ctx: Context, obj: Object, old: Object, entry: Entry, judged: bytes) -> Entry:
        """Write the changed object, unless nothing changed; remove it when its last finalizer went."""
        if _is_finished(obj["metadata"]) and not self.strategy.is_held(obj):
            if not ctx.dry_run:
                await self.remove(entry.key, entry.revision, obj)
            data = await weighed(entry.size, self.codec.encode, obj)
            return self.codec.entry_of(entry.key, obj, data, entry.revision)
        unchanged = await self._changes_nothing(ctx, obj, old, entry, judged)
        doubtful = unchanged and not ctx.dry_run and self._may_be_outdated(entry)
        if unchanged and not doubtful:
            return entry
        if self.converts:
            obj = await self.stored_form(ctx, obj)
        weight = ctx.weight
        data = self._encode(ctx, obj, entry) if weight < LONG else await weighed(weight, self._encode, ctx, obj, entry)
        if ctx.dry_run:
            return self.codec.entry_of(entry.key, obj, data, entry.revision)
        if len(data) > SURELY_FITS:
            await weighed(weight, self.codec.check_size, entry.key, obj, data, entry.revision)
        stored = (
            await self.codec.stored(judged or data) if self.codec.writes_form else self.codec.to_stored(judged or data)
        )
        if doubtful and not await self._is_outdated(entry, stored):
            return entry
        return await self.cache.update(
            entry.key, stored, entry.revision, self._ttl, lambda at: self.codec.entry_of(entry.key, obj, data, at)
        )


def same_object(obj: Object, old: Object) -> bool:
    """Whether storing ``obj`` would change nothing."""
    if obj["metadata"] != old["metadata"]:
        return False
    return all(obj.get(key) == old.get(key) for key in {*obj, *old} if key not in ("metadata", "kind", "apiVersion"))


def _version_of(metadata: dict[str, Any]) -> int:
    """The version that a wanted object names; 500 for what is no number."""
    try:
        return parse_version(metadata.get("resourceVersion", ""))
    except ValueError as error:
        raise errors.generic(str(error)) from None


def _is_finished(metadata: dict[str, Any]) -> bool:
    """A deleted object whose finalizers are all gone and whose time is up."""
    return bool(
        metadata.get("deletionTimestamp")
        and not metadata.get("finalizers")
        and not metadata.get("deletionGracePeriodSeconds")
    )
