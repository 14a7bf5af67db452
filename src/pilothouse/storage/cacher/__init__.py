"""The watch cache: all reads and watches are served from memory, fed by one live feed of the backend's log."""

from pilothouse.storage.cacher.cacher import Cacher
from pilothouse.storage.cacher.changes import ADDED, BOOKMARK, DELETED, MODIFIED, Change, WatchEvent
from pilothouse.storage.cacher.entries import (
    NOTHING,
    Entry,
    EntryCodec,
    SharedNames,
    UnreadEntry,
    field_value,
    restamp_json,
    share_labels,
)
from pilothouse.storage.cacher.resource import EntryPage, ResourceCache
from pilothouse.storage.cacher.selection import select, select_in_turns
from pilothouse.storage.cacher.traits import Attribute, Trait, trait_of
from pilothouse.storage.cacher.watcher import Listener, Watcher

__all__ = [
    "ADDED",
    "BOOKMARK",
    "DELETED",
    "MODIFIED",
    "NOTHING",
    "Attribute",
    "Cacher",
    "Change",
    "Entry",
    "EntryCodec",
    "EntryPage",
    "Listener",
    "ResourceCache",
    "SharedNames",
    "Trait",
    "UnreadEntry",
    "WatchEvent",
    "Watcher",
    "field_value",
    "restamp_json",
    "select",
    "select_in_turns",
    "share_labels",
    "trait_of",
]
