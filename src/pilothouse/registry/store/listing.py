"""Lists: which entries, at which revision, in which pages.

    resourceVersion  match         limit    answered from
    ""               ""            any      the cache, brought up to date first
    "0"              "" or NOT     ignored  the cache as it is
    N                NOT or ""     any      the cache, once it has reached N ("" with a limit means exactly N)
    N                Exact         any      the past, from the cache when nothing has changed since
    continue token                          the token's revision, or the present for an inconsistent token

A resource whose watch cache a flag switches off has no older answers: "0" is "" there, and N is brought up to date.

A page ends with a token that names the revision and the next key, so that all pages together show one moment. A list
that can hold only the object of one name (``fieldSelector=metadata.name=x``) is looked up, and is never continued: a
limit means nothing there.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final

from pilothouse.machinery import errors
from pilothouse.machinery.fields import Selector as FieldSelector
from pilothouse.machinery.labels import Selector
from pilothouse.machinery.workers import weighed
from pilothouse.net.work_turns import request_turns
from pilothouse.registry.store.store import Store
from pilothouse.registry.store.versions import parse_version
from pilothouse.storage.backends.contract import Compacted
from pilothouse.storage.cacher import Entry, field_value, select_in_turns, trait_of
from pilothouse.storage.continuation import InvalidContinue, continue_after, decode_continue, encode_continue

EXACT: Final = "Exact"
NOT_OLDER: Final = "NotOlderThan"
_TOO_OLD: Final = (
    "The provided continue parameter is too old to display a consistent list result. You can start a new list without "
    "the continue parameter, or use the continue token in this response to retrieve the remainder of the results. "
    "Continuing with the provided token results in an inconsistent list - objects that were created, modified, or "
    "deleted between the time the first chunk was returned and now may show up in the list."
)
_SELECTED_AT_ONCE: Final = 1000
Predicate = Callable[[Entry], bool]
FieldValue = Callable[[Entry, str], str]


@dataclass(slots=True)
class ListOptions:
    """What a client may ask of a list."""

    labels: Selector | None = None
    fields: FieldSelector | None = None
    limit: int = 0
    token: str = ""
    version: str = ""
    match: str = ""

    @property
    def selects(self) -> bool:
        return self.labels is not None or self.fields is not None

    @property
    def is_cached(self) -> bool:
        """Whether kube-apiserver has no answer before its cache has: what is not one page of everything, or of the
        past."""
        return not self.token and self.match != EXACT and (self.selects or not self.limit)


@dataclass(slots=True)
class Listing:
    """One page."""

    entries: list[Entry]
    revision: int
    token: str = ""
    remaining: int | None = None
    seen: int = -1
    """How many entries were looked at, where that is not what there are."""
    is_stored: bool = False
    """Whether it was read from the store, and not from the cache."""


def predicate_of(
    labels: Selector | None, fields: FieldSelector | None, value_of: FieldValue = field_value
) -> Predicate | None:
    """One test for both selectors; None when everything matches."""
    if fields is None:
        if labels is None:
            return None
        of_labels = labels.matches
        return lambda entry: of_labels(entry.labels)
    conditions = fields.conditions

    def matches(entry: Entry) -> bool:
        if labels is not None and not labels.matches(entry.labels):
            return False
        return all(condition.takes(value_of(entry, condition.field)) for condition in conditions)

    return matches


async def list_entries(store: Store, namespace: str, options: ListOptions) -> Listing:
    """One page of a list, or the Status that refuses it."""
    page = await _list(store, namespace, options)
    page.entries = await store.cache.read(page.entries)
    tally, number = store.cache.tally, len(page.entries)
    counted = tally.stored_lists if page.is_stored else tally.cached_lists
    counted.lists += 1
    counted.seen += number if page.seen < 0 else page.seen
    counted.returned += number
    return page


async def _list(store: Store, namespace: str, options: ListOptions) -> Listing:
    cache = store.cache
    if not cache.ready:
        await cache.wait_ready()
    prefix = store.prefix + namespace + "/" if namespace and store.resource.namespaced else store.prefix
    version = options.version
    if store.reads_newest and version == "0":
        version = ""
    if options.limit < 0 or version == "0":
        options = replace(options, limit=0)
    if options.token:
        return await _continue(store, prefix, options)
    key = None
    if options.fields is not None:
        if store.resource.namespaced and not namespace:
            namespace = options.fields.exact_value("metadata.namespace") or ""
            if namespace and not options.limit:  # pages name their keys from the root of what was asked for
                prefix = store.prefix + namespace + "/"
        key = _only_key(store, namespace, options.fields)
    if version and version != "0":
        wanted = _parse(version)
        exact = options.match == EXACT or (options.limit > 0 and not options.match and key is None)
        if exact:
            return await _at(store, prefix, None, wanted, options, key)
        await store.wait_for(version)
    if not version or store.reads_newest:
        await cache.wait_fresh()
    return await _present(store, prefix, None, cache.revision, options, key)


def _only_key(store: Store, namespace: str, fields: FieldSelector) -> str | None:
    """The key of the one object that can match, if the selector names it."""
    name = fields.exact_value("metadata.name")
    if name is None or (store.resource.namespaced and not namespace):
        return None
    return store.key(namespace, name)


def _parse(version: str) -> int:
    try:
        return parse_version(version)
    except ValueError as error:
        raise errors.bad_request(
            f'invalid resource version: resourceVersion: Invalid value: "{version}": {error}'
        ) from None


async def _present(
    store: Store, prefix: str, start: str | None, revision: int, options: ListOptions, only: str | None = None
) -> Listing:
    """A page of what the cache holds now, under the given revision; of all keys, or of ``only`` one."""
    if only is not None:
        return await _single(store, store.cache.get(only), revision, options)
    limit = options.limit
    if options.selects:
        if limit or start:  # where a page ends does not depend on what matches
            entries = store.cache.entries(prefix, start)
        else:
            # Where others convert objects, their fields are not those that are stored.
            entries = store.cache.entries_having(
                trait_of(options.labels, None if store.converts else options.fields), prefix
            )
        return await _selected(store, entries, prefix, revision, options)
    if not limit:
        return Listing(store.cache.entries(prefix, start), revision)
    entries = store.cache.entries(prefix, start, limit + 1)
    if len(entries) <= limit:
        return Listing(entries, revision)
    token = continue_after(entries[limit - 1].key, prefix, revision)
    remaining = store.cache.count(prefix, entries[limit].key)
    return Listing(entries[:limit], revision, token, remaining)


async def _select(store: Store, entries: list[Entry], options: ListOptions) -> list[Entry]:
    """What is selected. Where others convert objects, their fields are those of the version asked for."""
    if options.fields is None or not store.converts:
        return await select_in_turns(entries, options.labels, options.fields)
    matches = predicate_of(None, options.fields, store.field_value)
    assert matches is not None
    entries = await select_in_turns(entries, options.labels, None)
    await store.prepare_list(entries)
    return list(filter(matches, entries))


async def _selected(store: Store, entries: list[Entry], prefix: str, revision: int, options: ListOptions) -> Listing:
    """A page of what is selected. Another follows if there is more to look at, whether that matches or not."""
    limit = options.limit
    if not limit:
        return Listing(await _select(store, entries, options), revision, seen=len(entries))
    chosen: list[Entry] = []
    turns = request_turns()
    for first in range(0, len(entries), _SELECTED_AT_ONCE):
        await turns.take()
        chosen += await _select(store, entries[first : first + _SELECTED_AT_ONCE], options)
        if len(chosen) >= limit:
            break
    if len(chosen) < limit or chosen[limit - 1] is entries[-1]:
        return Listing(chosen, revision, seen=len(entries))
    token = continue_after(chosen[limit - 1].key, prefix, revision)
    return Listing(chosen[:limit], revision, token, seen=min(first + _SELECTED_AT_ONCE, len(entries)))


async def _single(store: Store, entry: Entry | None, revision: int, options: ListOptions) -> Listing:
    return Listing([] if entry is None else await _select(store, [entry], options), revision)


async def _at(
    store: Store,
    prefix: str,
    start: str | None,
    revision: int,
    options: ListOptions,
    only: str | None = None,
) -> Listing:
    """A page of the past; of all keys, or of ``only`` one."""
    cache = store.cache
    if cache.revision < revision:
        await store.reach(revision)
    if cache.unchanged_since(revision, only or prefix):
        return await _present(store, prefix, start, revision, options, only)
    try:
        if only is not None:
            return await _single(store, await cache.get_at(only, revision), revision, options)
        page = await cache.entries_at(revision, prefix, start, 0 if options.selects else options.limit)
    except Compacted:
        raise errors.expired("The resourceVersion for the provided list is too old.") from None
    entries = await _select(store, page.items, options)
    if options.limit and (len(entries) > options.limit or page.more):
        entries = entries[: options.limit]
        token = continue_after(entries[-1].key, prefix, revision)
        left = None if options.selects else page.remaining
        return Listing(entries, revision, token, left, len(page.items), is_stored=True)
    return Listing(entries, revision, seen=len(page.items), is_stored=True)


async def _continue(store: Store, prefix: str, options: ListOptions) -> Listing:
    try:
        token = await weighed(len(options.token), decode_continue, options.token, prefix)
    except InvalidContinue as error:
        raise errors.bad_request(f"invalid continue token: {error}") from None
    if options.version and options.version != "0":
        raise errors.bad_request("specifying resource version is not allowed when using continue")
    if token.revision < 0:
        await store.cache.wait_fresh()
        return await _present(store, prefix, token.start, store.cache.revision, options)
    try:
        return await _at(store, prefix, token.start, token.revision, options)
    except errors.StatusError as error:
        if error.code != 410:
            raise
        error.message = _TOO_OLD
        error.metadata = {"continue": encode_continue(token.start, prefix, -1)}
        raise
