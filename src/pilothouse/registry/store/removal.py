"""Deleting through the store: one object, or all that a selector matches."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Iterable
from dataclasses import replace
from time import perf_counter
from typing import Any, Final

from pilothouse.apis.strategy import Context
from pilothouse.machinery import errors
from pilothouse.machinery.objects import Object
from pilothouse.machinery.workers import weighed
from pilothouse.net.eager import ensure_task
from pilothouse.registry.rest.deletion import (
    DeleteOptions,
    Outcome,
    Plan,
    plan_deletion,
    validate_delete_options,
)
from pilothouse.registry.store.store import Store
from pilothouse.storage.backends.contract import Conflict
from pilothouse.storage.cacher import Entry

ValidateDelete = Callable[[Object, int, int | None], Awaitable[None]]
"""Is shown the object, how long it is and its period of grace; raises the refusal."""
_TURN_SECONDS: Final = 0.002


async def delete(
    store: Store, ctx: Context, name: str, options: DeleteOptions, validate: ValidateDelete | None = None
) -> tuple[Entry, bool]:
    """Delete an object; answers (its last or marked state, whether it is gone). Retried when others write meanwhile.

    Admission is not asked when a running period of grace is all there is to wait for.
    """
    validate_delete_options(options)
    ctx.dry_run = ctx.dry_run or options.is_dry_run
    key = store.key_of_named(ctx.namespace, name)
    cache = store.cache
    if not cache.ready:
        await cache.wait_ready()
    # As in `Store.update`: storage refuses what was decided from an old state. Only what ends without a write (a
    # refusal, nothing to do) has to be held against the present one.
    fresh = cache.is_fresh()
    if ctx.dry_run and not fresh:
        await cache.wait_fresh()
        fresh = True
    while True:
        entry = cache.get(key)
        if entry is None:
            if fresh:
                raise errors.not_found(store.resource.group_resource, name)
            await cache.wait_fresh()
            fresh = True
            continue
        if store.converts:
            await store.prepare((entry,))
        try:
            left, gone = await _delete_once(store, ctx, key, entry, options, validate)
            if gone or fresh or left is not entry or not await store.has_moved(entry):
                return left, gone
            fresh = True
        except Conflict as conflict:
            if conflict.current is None:
                raise errors.not_found(store.resource.group_resource, name) from None
            await cache.wait_fresh()
            fresh = True
        except errors.StatusError:
            if fresh or not await store.has_moved(entry):
                raise
            fresh = True


async def _delete_once(
    store: Store, ctx: Context, key: str, entry: Entry, options: DeleteOptions, validate: ValidateDelete | None
) -> tuple[Entry, bool]:
    """Delete an object as it was seen; the same entry is left where there was nothing to write. Raises Conflict."""
    stored = await store.read(entry)
    plan = plan_deletion(
        store.resource, store.strategy, ctx, stored, options, collects_garbage=store.deleting.collects_garbage
    )
    if plan.outcome is Outcome.PENDING:
        return entry, False
    if validate is not None:
        await validate(stored, len(entry.data), plan.grace)
    if plan.then_remove and not ctx.dry_run:
        ending = _mark_and_remove(store, ctx, key, plan, entry, stored, validate)
        return await _see_through(ending), True
    if plan.outcome is Outcome.MARKED:
        entry = await _store_marked(store, ctx, key, plan.object, entry)
        if not plan.then_remove:
            return entry, False
    if ctx.dry_run:
        return entry, True
    if stored["metadata"].get("finalizers"):  # only such as the options take away
        if validate is not None:
            # As kube-apiserver does: once before the last finalizer goes, once before the end.
            await validate(stored, len(entry.data), plan.grace)
        if options.precondition_version is not None:
            raise _lost_version(store, key, stored["metadata"])
    return await store.remove(key, entry.revision, stored), True


def _lost_version(store: Store, key: str, metadata: Object) -> errors.StatusError:
    """An object that has lost its last finalizers is not removed by its version: kube-apiserver looks for it in vain.

    It takes the version of what it has stored without them, and nothing has been stored.
    """
    why = (
        f"StorageError: invalid object, Code: 4, Key: {key}, ResourceVersion: 0, AdditionalErrorMsg: Precondition "
        f"failed: ResourceVersion in precondition: , ResourceVersion in object meta: {metadata['resourceVersion']}"
    )
    return errors.conflict(store.resource.group_resource, metadata["name"], why)


async def _mark_and_remove(
    store: Store,
    ctx: Context,
    key: str,
    plan: Plan,
    entry: Entry,
    stored: Object,
    validate: ValidateDelete | None,
) -> Entry:
    """Store an object with its marks, as watches are to see it, and remove it. Admission is asked before both."""
    entry = await _store_marked(store, ctx, key, plan.object, entry)
    if validate is not None:
        await validate(plan.object, len(entry.data), plan.grace)
    return await store.remove(key, entry.revision, stored)


async def _see_through(work: Coroutine[Any, Any, Entry]) -> Entry:
    """What comes of the work. Whoever is cancelled meanwhile waits for its end all the same.

    A client that leaves between the two writes would leave an object behind that is said to be gone at once, and that
    nobody is going to delete any more.
    """
    task = asyncio.get_running_loop().create_task(work)
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        await asyncio.wait([task])
        raise


async def _store_marked(store: Store, ctx: Context, key: str, obj: Object, entry: Entry) -> Entry:
    if obj["metadata"] == (await store.read(entry))["metadata"]:
        return entry
    if store.converts:
        obj = await store.stored_form(ctx, obj)
    weight = max(ctx.weight, len(entry.data))
    data = await weighed(weight, lambda: store.codec.encode(obj, *store.raw_texts(entry)))
    if ctx.dry_run:
        return store.codec.entry_of(key, obj, data, entry.revision)
    stored = await store.codec.stored(data)
    return await store.cache.update(
        key, stored, entry.revision, None, lambda revision: store.codec.entry_of(key, obj, data, revision)
    )


async def delete_all(
    store: Store, ctx: Context, entries: Iterable[Entry], options: DeleteOptions, validate: ValidateDelete | None = None
) -> None:
    """Delete each of these, several at once where the store says so; what has gone meanwhile does not matter.

    A dry run waits for nothing, so others would get no turn until thousands are done.
    """
    remaining = iter(entries)

    async def work() -> None:
        ends = perf_counter() + _TURN_SECONDS
        for entry in remaining:
            if perf_counter() > ends:
                await asyncio.sleep(0)
                ends = perf_counter() + _TURN_SECONDS
            each = replace(ctx, namespace=entry.namespace)
            try:
                await delete(store, each, entry.name, options, validate)
            except errors.StatusError as error:
                if error.code != 404:
                    raise

    if store.deleting.workers <= 1:
        await work()
        return
    await ensure_task()
    try:
        async with asyncio.TaskGroup() as group:
            for _ in range(store.deleting.workers):
                group.create_task(work())
    except BaseExceptionGroup as failures:
        raise failures.exceptions[0] from None
