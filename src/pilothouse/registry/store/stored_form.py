"""The bytes that kube-apiserver keeps for an object, so that the two servers can take over each other's data.

    built-in kinds                    protobuf in its envelope, in the storage version (or JSON, YAML: a flag)
    definitions and API services      JSON, fields in the order of their structs
    custom resources                  JSON, all keys sorted

JSON ends with a line break; that tells it from the embedded store's own. Whatever is found is read: either form, and
every version that this server knows. What is read is brought into the hub version and given its defaults, because
kube-apiserver keeps objects without some of them.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from typing import Final, Protocol

import orjson

from pilothouse.apis import types
from pilothouse.apis.apiextensions.custom_resource_definition.stored_version import from_v1beta1, to_v1beta1
from pilothouse.apis.conversion import Convert, converters_for
from pilothouse.apis.resources import Resource, legacy_row, table
from pilothouse.apis.strategies import has_own_rules, strategy_for
from pilothouse.machinery import large_json, protobuf, yaml_codec
from pilothouse.machinery.go_json import escape_html
from pilothouse.machinery.gvk import GroupVersion, GroupVersionKind, parse_group_version
from pilothouse.machinery.objects import Object
from pilothouse.machinery.protobuf.raw_texts import read_raw_texts
from pilothouse.machinery.schema.decoding import decode
from pilothouse.machinery.schema.ordering import arrange
from pilothouse.machinery.schema.raw import Texts, embed, raw_places, read_texts, shown_text, sorted_text
from pilothouse.machinery.schema.types import Struct

_JSON_GROUPS: Final = ("apiextensions.k8s.io", "apiregistration.k8s.io")
_V1BETA1_DEFINITIONS: Final = GroupVersion("apiextensions.k8s.io", "v1beta1")


Rewrite = Callable[[bytes], bytes]


class MediaType(Enum):
    """What values are written as."""

    OWN_JSON = "own"
    """The embedded store's: cached bytes behind a head."""
    JSON = "application/json"
    PROTOBUF = "application/vnd.kubernetes.protobuf"
    YAML = "application/yaml"


class StoredForm(Protocol):
    """Between the hub version's JSON and stored bytes."""

    rewrite_text: Rewrite | None
    """What becomes of the text of a raw value; None where it is kept as it came."""
    keeps_empty: bool
    """Whether an empty list that is always written stays one, which protobuf cannot tell from none."""

    def write(self, data: bytes) -> bytes:
        """What is stored for an object's bytes (without kind and apiVersion where the kind is built in)."""

    def read(self, value: bytes) -> tuple[Object, Texts]:
        """The object in a stored value, in the hub version with its defaults, and how its raw values are written."""

    def read_partly(self, value: bytes, wanted: frozenset[str]) -> Object | None:
        """Some fields of it, without defaults; None where only the whole can be read."""

    def default(self, obj: Object) -> None:
        """Fill in the defaults of what was read partly."""


def is_foreign(value: bytes) -> bool:
    """Whether a value is in one of kube-apiserver's forms rather than the embedded store's own."""
    return value.endswith(b"\n") or value.startswith(protobuf.PREFIX)


class BuiltInForm:
    """For the objects of one built-in kind."""

    def __init__(self, resource: Resource, default: Callable[[Object], None], media: MediaType) -> None:
        """``resource`` is the row of the hub version."""
        self._resource, self._default = resource, default
        self._struct = types.struct(resource.type_name)
        self._places = raw_places(self._struct)
        stored = resource.stored
        self._gvk = GroupVersionKind(stored.group, stored.version, resource.kind)
        self._stored_struct, self._from_hub = self._stored_version()
        self._as_yaml = media is MediaType.YAML and resource.group not in _JSON_GROUPS
        self._as_json = media is not MediaType.PROTOBUF or resource.group in _JSON_GROUPS
        self.keeps_empty = self._as_yaml or (media is MediaType.JSON and resource.group not in _JSON_GROUPS)
        self.rewrite_text: Rewrite | None = sorted_text if self._as_yaml else shown_text if self._as_json else None

    def _stored_version(self) -> tuple[Struct, Convert | None]:
        row = _row(self._resource, self._resource.stored)
        if row is None:
            return self._struct, to_v1beta1
        return types.struct(row.type_name), converters_for(row)[1]

    def write(self, data: bytes) -> bytes:
        obj: Object = large_json.loads(data)
        texts = read_texts(data, self._places)
        if self._from_hub is not None:
            obj = self._from_hub(obj)
        if texts:
            obj = embed(obj, self._places, texts)
        if not self._as_json:
            return protobuf.encode(self._stored_struct, obj, self._gvk)
        if self._as_yaml:
            text = _go_json(self._gvk, obj, None)
            return yaml_codec.dump(large_json.loads(text)).encode()
        ordered = obj if self._gvk.group_version == _V1BETA1_DEFINITIONS else None
        return _go_json(self._gvk, arrange(self._struct, obj), ordered)

    def read(self, value: bytes) -> tuple[Object, Texts]:
        obj, texts, version = self._decode(value)
        if version == _V1BETA1_DEFINITIONS:
            obj = decode(self._struct, from_v1beta1(obj))[0]
        elif version != self._resource.group_version:
            row = _row(self._resource, version) or legacy_row(self._resource.name, version)
            if row is not None and row.legacy:
                return self._from_legacy(row, obj), texts
            to_hub = None if row is None else converters_for(row)[0]
            obj = decode(self._struct, obj)[0] if to_hub is None else to_hub(obj)
        self._default(obj)
        return obj, texts

    def _from_legacy(self, row: Resource, obj: Object) -> Object:
        """An object that was last written by a server of years ago. It has the defaults of its version."""
        from pilothouse.apis.legacy.older import older_of

        fill_in = older_of(row).default
        if fill_in is not None:
            fill_in(obj)
        to_hub = converters_for(row)[0]
        obj = decode(self._struct, obj)[0] if to_hub is None else to_hub(obj)
        (strategy_for(row).default if has_own_rules(row) else self._default)(obj)
        return obj

    def read_partly(self, value: bytes, wanted: frozenset[str]) -> Object | None:
        if self._gvk.group_version != self._resource.group_version or not value.startswith(protobuf.PREFIX):
            return None
        message = protobuf.unwrap(self._gvk, value)
        return None if message is None else protobuf.decode_partly(self._struct, message, wanted)

    def default(self, obj: Object) -> None:
        """Fill in what a kind fills in."""
        self._default(obj)

    def _decode(self, value: bytes) -> tuple[Object, Texts, GroupVersion]:
        """An object in the version it was stored in, without kind and apiVersion. Raises KeyError for unknown ones."""
        if value.startswith(protobuf.PREFIX):
            struct, version = self._stored_struct, self._gvk.group_version
            message = protobuf.unwrap(self._gvk, value)
            if message is None:
                envelope = protobuf.decode(value)
                struct, message = types.struct_of(envelope.api_version, envelope.kind), envelope.raw
                version = parse_group_version(envelope.api_version)
            obj = protobuf.decode_message(struct, message)
            texts = read_raw_texts(struct, message, self._places) if self._places else {}
            return obj, texts, version
        if not value.startswith(b"{"):
            value = orjson.dumps(yaml_codec.load(value))
        obj = large_json.loads(value)
        version = parse_group_version(obj["apiVersion"])
        if version != _V1BETA1_DEFINITIONS:
            obj = decode(types.struct_of(obj["apiVersion"], obj["kind"]), obj)[0]
        obj.pop("kind", None)
        obj.pop("apiVersion", None)
        return obj, read_texts(value, self._places), version


class CustomForm:
    """For custom resources, whose objects know what they are."""

    rewrite_text: Rewrite | None = None
    keeps_empty = True

    def write(self, data: bytes) -> bytes:
        return escape_html(orjson.dumps(large_json.loads(data), option=orjson.OPT_SORT_KEYS)) + b"\n"

    def read(self, value: bytes) -> tuple[Object, Texts]:
        obj: Object = large_json.loads(value)
        return obj, {}

    def read_partly(self, value: bytes, wanted: frozenset[str]) -> Object | None:
        return None

    def default(self, obj: Object) -> None:
        """Custom resources get their defaults from their definition, where they are served."""


def _go_json(gvk: GroupVersionKind, obj: Object, order: Object | None) -> bytes:
    """As Go writes a struct. ``order`` has the fields of a spec in an order that the schema does not know."""
    if order is not None:
        obj = {**obj, "spec": {name: obj["spec"][name] for name in order["spec"]}}
    head = {"kind": gvk.kind, "apiVersion": str(gvk.group_version)}
    return escape_html(orjson.dumps({**head, **obj})) + b"\n"


def _row(resource: Resource, version: GroupVersion) -> Resource | None:
    """The row of a resource at another version; None where nobody serves that."""
    served = table().get(version)
    rows = () if served is None else served.resources
    return next((row for row in rows if row.name == resource.name), None)


# What has no resource of its own: allocation ledgers


def write_plain(obj: Object, media: MediaType) -> bytes:
    """What is stored for an object that says what it is."""
    version = parse_group_version(obj["apiVersion"])
    gvk = GroupVersionKind(version.group, version.version, obj["kind"])
    if media is MediaType.PROTOBUF:
        return protobuf.encode(types.struct_of(obj["apiVersion"], obj["kind"]), obj, gvk)
    return orjson.dumps(obj) + (b"" if media is MediaType.OWN_JSON else b"\n")


def read_plain(value: bytes) -> Object:
    """The object in whatever `write_plain` has made, without kind and apiVersion where the form has them apart."""
    if value.startswith(protobuf.PREFIX):
        envelope = protobuf.decode(value)
        return protobuf.decode_message(types.struct_of(envelope.api_version, envelope.kind), envelope.raw)
    obj: Object = large_json.loads(value)
    return obj
