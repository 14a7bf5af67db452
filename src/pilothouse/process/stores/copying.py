"""One store made equal to another, in the form of its own, without its revisions going back.

Clients remember resourceVersions, and treat a smaller one as the past. So the target is first brought to the source's
revision, by writes of a key that is deleted afterwards; then every object is written where it is missing or different,
and deleted where the source has none. Done again after an interruption it goes on where it was. Nobody should write
to either meanwhile.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from typing import Final

from pilothouse.process.stores.values import DEFINITIONS, PASSING, Values
from pilothouse.registry.store.stored_form import MediaType
from pilothouse.storage.backends.contract import Backend, KeyValue

_PAGE: Final = 500
_AT_ONCE: Final = 128
_SPACER: Final = "pilothouse_copy_spacer"
EVENT_SECONDS: Final = 3600

Report = Callable[[str, int, int], None]
"""Told what is being done, how much of it is done, and how much there is."""


class NotEmpty(Exception):
    """The target has objects already."""


@dataclass(slots=True)
class Copied:
    """What a copy came to."""

    objects: int
    written: int
    deleted: int
    revision: int


async def copy_store(
    source: Backend, target: Backend, media: MediaType, root: str, report: Report, *, resume: bool = False
) -> Copied:
    """Make the target equal below the root. Raises NotEmpty unless this resumes an earlier copy."""
    if not resume and await target.count(f"{root}/"):
        raise NotEmpty(f"the target has objects below {root}/ already; an interrupted copy goes on with --resume")
    wanted = await source.current_revision()
    await advance(target, wanted, report)
    definitions = [item async for item in all_items(source, f"{root}/{DEFINITIONS}")]
    values = Values(root, definitions)
    total = await source.count(f"{root}/")
    present = {item.key: item async for item in all_items(target, f"{root}/")}
    done = Copied(0, 0, 0, wanted)
    async for item in all_items(source, f"{root}/"):
        if not item.key.removeprefix(f"{root}/").startswith(PASSING):
            done.written += await _write(target, item.key, values.transcode(item, media), present.pop(item.key, None))
            done.objects += 1
        report("objects", done.objects, total)
    for key, item in present.items():
        await target.delete(key, item.revision)
        done.deleted += 1
    done.revision = await target.current_revision()
    return done


async def _write(target: Backend, key: str, value: bytes, present: KeyValue | None) -> bool:
    ttl = EVENT_SECONDS if "/events/" in key else None
    if present is None:
        await target.create(key, value, ttl)
    elif present.value != value:
        await target.update(key, value, present.revision, ttl)
    else:
        return False
    return True


async def advance(target: Backend, wanted: int, report: Report) -> None:
    """Bring a store to a revision by keys that are written and deleted; those of an interrupted copy go, too."""
    async for item in all_items(target, f"{_SPACER}/"):
        await target.delete(item.key, item.revision)
    start = current = await target.current_revision()
    while current < wanted:
        count = min(_AT_ONCE, max(1, (wanted - current) // 2))
        made = await asyncio.gather(*(target.create(f"{_SPACER}/{number}", b"") for number in range(count)))
        await asyncio.gather(*(target.delete(f"{_SPACER}/{number}", revision) for number, revision in enumerate(made)))
        current = await target.current_revision()
        report("revisions", min(current, wanted) - start, wanted - start)
    if current > start:
        await target.compact(current)


async def all_items(backend: Backend, prefix: str) -> AsyncIterator[KeyValue]:
    """Everything below a prefix as of one revision."""
    page = await backend.list(prefix, limit=_PAGE, counted=False)
    revision = page.revision
    while True:
        for item in page.items:
            yield item
        if not page.more:
            return
        start = page.items[-1].key + "\0"
        page = await backend.list(prefix, start=start, limit=_PAGE, revision=revision, counted=False)
