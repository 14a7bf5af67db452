"""Objects and lists in protobuf, of which most are found rather than made.

Controllers of the control plane read everything in protobuf. The message of an object is made from its JSON once, and
kept with the entry for a while when somebody gets or lists it in that form; the metadata shown without the rest
is a piece of that message. A list is an envelope around ready messages.

    "v1 pb"    the name under which the message in that version is kept
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from pilothouse.apis import types
from pilothouse.endpoints.output.objects import served_data
from pilothouse.endpoints.output.rows import make_all, partial_metadata
from pilothouse.endpoints.scope import ShownScope
from pilothouse.machinery import large_json, protobuf
from pilothouse.machinery.gvk import GroupVersionKind
from pilothouse.machinery.schema.raw import embed, raw_places, read_texts
from pilothouse.machinery.workers import LONG, weighed
from pilothouse.storage.cacher import Entry

_LONGEST_KEPT: Final = 64 * 1024
_METADATA: Final = b"\n"
_WEIGHT: Final = 16
"""What putting a message into a list counts for: a thousand of them are long work."""
_COPIED: Final = 64
"""How many bytes that are only copied count as one: a megabyte is long work."""


def object_message(scope: ShownScope, entry: Entry) -> bytes:
    """One object in its envelope."""
    maker = MessageMaker(scope)
    return protobuf.wrap(scope.kind, maker.find(entry) or maker.make(entry))


async def list_messages(
    scope: ShownScope, entries: Sequence[Entry], kind: GroupVersionKind, metadata: dict[str, Any], *, whole: bool
) -> tuple[bytes, list[bytes], bytes, int]:
    """A list, of whole objects or of their metadata: what comes before its items, the items, what follows, their size.

    Very many messages are all over the memory: even to ask for their sizes takes longer than a turn may.
    """
    maker = MessageMaker(scope) if whole else MetadataMessageMaker(scope)
    messages = await make_all(entries, maker.find, maker.make)
    head = protobuf.encode_message(types.struct("meta.v1.ListMeta"), metadata)
    weight = _WEIGHT * len(messages)
    if weight < LONG:
        weight += sum(map(len, messages)) // _COPIED
    return await weighed(weight, protobuf.list_parts, kind, head, messages)


class MessageMaker:
    """Makes the messages of entries in the endpoint's version."""

    def __init__(self, scope: ShownScope) -> None:
        self._scope, self._key = scope, f"{scope.api_version} pb"

    def find(self, entry: Entry) -> bytes | None:
        """The kept message."""
        message: bytes | None = entry.find_passing(self._key)
        return message

    def make(self, entry: Entry) -> bytes:
        """The message, kept from now on unless it is large."""
        scope = self._scope
        struct = types.struct_of(scope.api_version, scope.kind.kind)
        data = served_data(scope, entry)
        obj = large_json.loads(data)
        if places := raw_places(struct):
            obj = embed(obj, places, read_texts(data, places))
        message = protobuf.encode_message(struct, obj)
        if len(message) <= _LONGEST_KEPT:
            entry.keep_for_a_while(self._key, message)
        return message


class MetadataMessageMaker:
    """Makes PartialObjectMetadata messages of entries, of custom ones too."""

    def __init__(self, scope: ShownScope) -> None:
        self._scope, self._whole = scope, MessageMaker(scope)
        self._struct = types.struct("meta.v1.PartialObjectMetadata")

    def find(self, entry: Entry) -> bytes | None:
        """The beginning of the kept message: an object's metadata is its first field, as it is here."""
        message = self._whole.find(entry)
        if message is None or self._scope.strategy.hidden_annotations or not message.startswith(_METADATA):
            return None
        return message[: protobuf.skip(message, 0, len(message))]

    def make(self, entry: Entry) -> bytes:
        """From the decoded object."""
        obj = large_json.loads(served_data(self._scope, entry))
        return protobuf.encode_message(self._struct, {"metadata": partial_metadata(self._scope, obj["metadata"])})
