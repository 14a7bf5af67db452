"""The watch cache: all reads and watches are served from memory, fed by one live feed of the backend's log."""

from pilothouse.storage.cacher.cacher import Cacher
from pilothouse.storage.cacher.changes import ADDED, BOOKMARK, DELETED, MODIFIED, Change, WatchEvent
from pilothouse.storage.cacher.delivering import Outgoing
from pilothouse.storage.cacher.entries import NOTHING, Entry, EntryCodec, restamp_json, share_labels
from pilothouse.storage.cacher.resource import EntryPage, ResourceCache
from pilothouse.storage.cacher.selecting import select
from pilothouse.storage.cacher.watcher import Sink, Watcher

__all__ = [
    "ADDED",
    "BOOKMARK",
    "DELETED",
    "MODIFIED",
    "NOTHING",
    "Cacher",
    "Change",
    "Entry",
    "EntryCodec",
    "EntryPage",
    "Outgoing",
    "ResourceCache",
    "Sink",
    "WatchEvent",
    "Watcher",
    "restamp_json",
    "select",
    "share_labels",
]
