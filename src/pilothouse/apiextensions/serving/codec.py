"""Between custom resources and bytes. Stored bytes carry apiVersion and kind first; that of the version they are in.

Objects are brought into their schema's present form when they are read from storage, so the cache holds what is served.
Bytes of a version that the definition no longer has are kept as they are: reading them fails, deleting them does not.
"""

from __future__ import annotations

import orjson

from pilothouse.apiextensions.serving.conversion import Versions
from pilothouse.machinery import large_json
from pilothouse.machinery.go_json import with_whole_numbers
from pilothouse.machinery.objects import Object
from pilothouse.machinery.schema.raw import Texts
from pilothouse.registry.store.codec import ObjectCodec, SelectorFields
from pilothouse.registry.store.stored_form import CustomForm, is_foreign
from pilothouse.storage.cacher import Entry


class CustomCodec(ObjectCodec):
    """For the objects of one definition as one of its versions has them."""

    __slots__ = ("_version", "_versions")

    def __init__(
        self, versions: Versions, version: str, fields: SelectorFields | None, *, writes_form: bool = False
    ) -> None:
        api_version = f"{versions.group}/{version}"
        super().__init__(
            versions.kind, api_version, fields, keeps_type=True, form=CustomForm(), writes_form=writes_form
        )
        self._versions = versions
        self._version = version

    def encode(self, obj: Object, *raw: Texts) -> bytes:
        versions = self._versions
        if obj["apiVersion"] != versions.storage_version:
            copy: Object = large_json.loads(orjson.dumps(obj))
            obj = versions.relabel(copy, versions.storage)
        data = super().encode(obj)
        if b":null" in data:
            # An apply keeps them for validation to see; kube-apiserver drops them whenever it reads what is stored.
            versions.schemas[versions.storage].drop_nulls(obj)
            data = super().encode(obj)
        return super().encode(with_whole_numbers(obj)) if b".0" in data or b"e+" in data else data

    def entry(self, key: str, value: bytes, revision: int) -> Entry:
        obj = large_json.loads(value)
        known = self._versions.version_of(obj)
        if known:
            self._versions.normalize(obj)
        if known or is_foreign(value):
            value = super().encode(obj)
        return self.entry_of(key, obj, value, revision)

    def read_back(self, obj: Object, data: bytes) -> tuple[Object, bytes]:
        """What came in another version, or was converted by others, gets the defaults of the storage version."""
        versions = self._versions
        foreign = versions.converter is not None or obj.get("apiVersion") != versions.storage_version
        if foreign and versions.schemas[versions.storage].has_defaults:
            stored: Object = large_json.loads(data)
            if versions.version_of(stored) == versions.storage:
                versions.schemas[versions.storage].default(stored)
                return stored, super().encode(stored)
        return obj, data
