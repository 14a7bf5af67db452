"""What the cache keeps of an object: its encoded bytes and the few values that selectors and indexes need."""

from __future__ import annotations

import time
import weakref
from collections import deque
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Protocol

import orjson

from pilothouse.machinery import large_json
from pilothouse.machinery.shared_texts import share_text

NOTHING: Mapping[str, str] = MappingProxyType({})
"""Shared by all entries without labels or fields."""
_SHARED_LABELS = 4096
_MOST_LABELS = 32  # more than that are not common to many, and would be kept long after the object
_shared: dict[tuple[tuple[str, str], ...], Mapping[str, str]] = {}
_KEPT_SECONDS = 60.0
_BATCH_SECONDS = 5.0
_DROPPED_A_TURN = 16_000  # some milliseconds
_passing: deque[tuple[float, list[weakref.ref[Entry]]]] = deque()
"""Entries that something made from them is kept with, and until when, in batches."""


def share_labels(labels: Mapping[str, str] | None) -> Mapping[str, str]:
    """Equal labels as one mapping, which nobody changes: objects of one workload have the same.

    That saves memory, and selecting among thousands of objects is mostly waiting for memory.
    """
    if not labels:
        return NOTHING
    if len(labels) > _MOST_LABELS:
        return dict(labels)
    key = tuple(labels.items())
    found = _shared.get(key)
    if found is None:
        if len(_shared) >= _SHARED_LABELS:
            _shared.clear()
        found = _shared[key] = dict(key)
    return found


class SharedNames:
    """Makes the fields of one resource's entries mappings that have their names in common.

    That is how Python keeps the attributes of a class's instances: eight fields take 160 bytes instead of 280.
    """

    __slots__ = ("_holder",)

    def __init__(self) -> None:
        self._holder = type("Fields", (), {})

    def __call__(self, fields: Mapping[str, str]) -> Mapping[str, str]:
        """The same names and values."""
        shared: dict[str, str] = vars(self._holder())
        # One by one, or Python would not share the names; and not as attributes, for which some names will not do.
        for name, value in fields.items():
            shared[name] = value  # noqa: PERF403
        return shared


def field_value(entry: Entry, name: str) -> str:
    """A selectable field's value, as it is stored."""
    if name == "metadata.name":
        return entry.name
    if name == "metadata.namespace":
        return entry.namespace
    return entry.fields.get(name, "")


def drop_old_forms(now: float) -> None:
    """Let go of forms that were kept for a while and whose time is up; some thousands of them, the rest next time."""
    dropped = 0
    while _passing and _passing[0][0] <= now and dropped < _DROPPED_A_TURN:
        batch = _passing[0][1]
        some = batch[dropped - _DROPPED_A_TURN :]
        del batch[-len(some) :]
        dropped += len(some)
        if not batch:
            _passing.popleft()
        for reference in some:
            if (entry := reference()) is not None:
                entry.passing = None


class Entry:
    """One state of one object. Never changed after it was made, except that `forms` collects further encodings.

    `data` is the JSON of the object in the hub version, ready to be served, with metadata.resourceVersion. What is kept
    for a while is in `passing`, each form behind its name: a dict for each of all that are listed takes three times as
    much, in small pieces of memory between which there is room left when they go.
    """

    __slots__ = ("__weakref__", "data", "fields", "forms", "key", "labels", "name", "namespace", "passing", "revision")

    def __init__(
        self,
        key: str,
        data: bytes,
        revision: int,
        namespace: str = "",
        name: str = "",
        labels: Mapping[str, str] = NOTHING,
        fields: Mapping[str, str] = NOTHING,
    ) -> None:
        self.key, self.data, self.revision = key, data, revision
        self.namespace, self.name = share_text(namespace), name
        self.labels, self.fields = labels, fields
        self.forms: dict[Any, Any] | None = None
        self.passing: tuple[Any, ...] | None = None

    @property
    def size(self) -> int:
        """About as many bytes are kept for it."""
        return len(self.data)

    def keep(self, name: Any, form: Any) -> None:
        """Keep a further encoding, or something else made from this state."""
        forms = self.forms
        if forms is None:  # others, in other threads, may set it meanwhile: then one of the two is made again later
            forms = self.forms = {}
        forms[name] = form

    def keep_for_a_while(self, name: str, form: Any) -> None:
        """The same for what can be made again at any time: all such forms of an entry go a minute after the first.

        Kept for good, messages and rows of all objects that anybody has ever listed would double what an object takes;
        a minute is enough for clients that come all at once.
        """
        passing = self.passing
        if passing is None:
            self.passing = name, form
            now = time.monotonic()
            if not _passing or _passing[-1][0] < now + _KEPT_SECONDS:
                _passing.append((now + _KEPT_SECONDS + _BATCH_SECONDS, []))
            _passing[-1][1].append(weakref.ref(self))
            return
        for place in range(0, len(passing), 2):
            if passing[place] == name:
                self.passing = (*passing[:place], name, form, *passing[place + 2 :])
                return
        self.passing = (*passing, name, form)

    def find_passing(self, name: str) -> Any:
        """What is kept for a while under a name; None if it is not."""
        passing = self.passing
        if passing is not None:
            for place in range(0, len(passing), 2):
                if passing[place] == name:
                    return passing[place + 1]
        return None

    def __repr__(self) -> str:
        return f"Entry({self.key!r}, {self.revision})"


class UnreadEntry(Entry):
    """An entry whose data is made of the stored value when somebody first asks for it.

    Loading a large resource then costs what its selectors need, and what nobody reads is never made. Whoever is about
    to ask for the data of many waits for ``ResourceCache.read`` before, which makes them in turns with others.
    """

    __slots__ = ("_codec", "stored")

    def __init__(
        self,
        codec: EntryCodec,
        key: str,
        stored: bytes,
        revision: int,
        namespace: str,
        name: str,
        labels: Mapping[str, str],
        fields: Mapping[str, str],
    ) -> None:
        self._codec, self.key, self.revision = codec, key, revision
        self.stored: bytes | None = stored
        """The stored value until it is read."""
        self.namespace, self.name = share_text(namespace), name
        self.labels, self.fields = labels, fields
        self.forms = self.passing = None

    def __getattr__(self, name: str) -> bytes:
        if name != "data":
            raise AttributeError(name)
        stored = self.stored
        if stored is not None:  # else another thread has read it meanwhile
            self.data = self._codec.data_of(stored, self.revision)
            self.stored = None
        return self.data

    @property
    def size(self) -> int:
        stored = self.stored
        return len(self.data if stored is None else stored)


class EntryCodec(Protocol):
    """Turns stored bytes into entries; one for each resource, given by the layer above."""

    def entry(self, key: str, value: bytes, revision: int) -> Entry:
        """Make the entry of a stored value."""

    def unread_entry(self, key: str, value: bytes, revision: int) -> Entry:
        """The same, where that can be had for less, with data that is made later."""

    def entry_and_object(self, key: str, value: bytes, revision: int) -> tuple[Entry, Any]:
        """The same, and the object that was read for it, without its version; None where it was left unread."""

    def data_of(self, value: bytes, revision: int) -> bytes:
        """The data of a stored value that was not read so far."""

    def restamp(self, entry: Entry, revision: int) -> Entry:
        """The same state under another resourceVersion: what watchers see of an object that has gone."""


def restamp_json(data: bytes, old: int, new: int) -> bytes:
    """Replace metadata.resourceVersion in compact JSON that carries `old`."""
    stamp = b'"resourceVersion":"%d"' % old
    if data.count(stamp) == 1:
        return data.replace(stamp, b'"resourceVersion":"%d"' % new)
    # The text also occurs elsewhere, for example in a reference to another object.
    content = large_json.loads(data)
    content["metadata"]["resourceVersion"] = str(new)
    return orjson.dumps(content)
