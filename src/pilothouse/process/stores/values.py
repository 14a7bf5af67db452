"""What a key is the place of, and the value of each place in the form of either store.

Built-in kinds are known by the table of resources, custom ones by the definitions in the store itself.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import orjson

from pilothouse.apis.gates import default_gates
from pilothouse.apis.resources import hub_row, table
from pilothouse.apis.strategies import strategy_for
from pilothouse.apis.types import struct as find_struct
from pilothouse.registry.store.codec import ObjectCodec
from pilothouse.registry.store.stored_form import (
    BuiltInForm,
    CustomForm,
    MediaType,
    is_foreign,
    read_plain,
    write_plain,
)
from pilothouse.storage.backends.contract import KeyValue

PASSING: Final = ("masterleases/", "peerserverleases/")
"""Leases of running servers: not worth keeping, and made anew by who still runs."""
LEDGERS: Final = ("ranges/",)
DEFINITIONS: Final = "apiextensions.k8s.io/customresourcedefinitions/"
_ENCRYPTED: Final = b"k8s:enc:"


class UnknownKey(Exception):
    """A key that belongs to nothing this server knows."""


class Values:
    """Reads and writes the values of one store, whose keys begin with ``root``."""

    def __init__(self, root: str, definitions: Iterable[KeyValue]) -> None:
        self._root = f"{root}/"
        self._codecs: dict[tuple[str, MediaType], ObjectCodec] = {}
        self._resources = {
            hub.key: hub
            for version in table().values()
            for row in version.resources
            if row.is_stored
            for hub in (hub_row(row),)
        }
        self._custom = {self._custom_prefix(item) for item in definitions}

    def _custom_prefix(self, definition: KeyValue) -> str:
        spec = orjson.loads(self.transcode(definition, MediaType.OWN_JSON))["spec"]
        return f"{spec['group']}/{spec['names']['plural']}"

    def transcode(self, item: KeyValue, media: MediaType) -> bytes:
        """The same object as another store writes it. Raises UnknownKey, and ValueError for what cannot be read."""
        place = item.key.removeprefix(self._root)
        if item.value.startswith(_ENCRYPTED):
            return item.value
        if place.startswith(LEDGERS):
            obj = {"kind": "RangeAllocation", "apiVersion": "v1", **read_plain(item.value)}
            return write_plain(obj, media)
        prefix = self._prefix_of(place)
        codec = self._codec(prefix, media)
        if prefix in self._resources:
            entry = codec.entry(item.key, item.value, 0)
            obj = orjson.loads(entry.data)
            obj["metadata"].pop("resourceVersion", None)
            return codec.to_stored(codec.encode(obj, *_texts(codec, entry.data)))
        obj = CustomForm().read(item.value)[0] if is_foreign(item.value) else orjson.loads(item.value)
        return codec.to_stored(codec.encode(obj))

    def _prefix_of(self, place: str) -> str:
        """The longest known beginning of a key."""
        end = place.rfind("/")
        while end > 0:
            prefix = place[:end]
            if prefix in self._resources or prefix in self._custom:
                return prefix
            end = place.rfind("/", 0, end)
        raise UnknownKey(place)

    def _codec(self, prefix: str, media: MediaType) -> ObjectCodec:
        found = self._codecs.get((prefix, media))
        if found is None:
            found = self._codecs[prefix, media] = self._make_codec(prefix, media)
        return found

    def _make_codec(self, prefix: str, media: MediaType) -> ObjectCodec:
        writes_form = media is not MediaType.OWN_JSON
        resource = self._resources.get(prefix)
        if resource is None:
            return ObjectCodec("", "", None, keeps_type=True, form=CustomForm(), writes_form=writes_form)
        strategy = strategy_for(resource, default_gates())
        return ObjectCodec(
            resource.kind,
            str(resource.group_version),
            None,
            struct=find_struct(resource.type_name),
            form=BuiltInForm(resource, strategy.default, media),
            writes_form=writes_form,
        )


def _texts(codec: ObjectCodec, data: bytes) -> list[dict[tuple[str, ...], bytes]]:
    from pilothouse.machinery.schema.raw import read_texts

    return [read_texts(data, codec.raw_places)] if codec.raw_places else []
