"""The versions of one definition, and how an object gets from one to another.

Where code converts (``additions``), it is called. A webhook is asked with many objects at a time; what it answered is
kept with the entry, so that each stored state is converted to each version at most once. Without either a conversion
changes ``apiVersion`` and drops what the other version's schema does not know.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Protocol

import orjson

from pilothouse.apiextensions.serving.additions import Conversion
from pilothouse.apis.apiextensions.schema.compiled import ObjectSchema
from pilothouse.apis.apiextensions.schema.embedded import lenient_metadata
from pilothouse.machinery import errors, large_json
from pilothouse.machinery.go_json import escape_html
from pilothouse.machinery.gvk import GroupResource, GroupVersion, GroupVersionKind
from pilothouse.machinery.kept_json import copy_to_keep
from pilothouse.machinery.objects import Object
from pilothouse.storage.cacher import Entry

_SHOWN: Final = 100


class ConversionFailed(errors.StatusError):
    """An object cannot be had in another version. ``kind`` is the kind of failure, for those who count."""

    def __init__(self, message: str, kind: str = "") -> None:
        super().__init__(500, "", message)
        self.kind = kind


class Converter(Protocol):
    """Asks somebody else to convert objects (a webhook)."""

    async def convert(self, objects: list[Object], version: GroupVersion) -> list[Object]:
        """The objects in another version, in the same order. Raises ``ConversionFailed``."""
        ...


class Versions:
    """All versions of a definition: their schemas, the one that is stored, and the converter if there is one."""

    def __init__(
        self,
        group: str,
        kind: str,
        storage: str,
        schemas: dict[str, ObjectSchema],
        converter: Converter | None,
        conversion: Conversion | None = None,
    ) -> None:
        self.group = group
        self.kind = kind
        self.schemas = schemas
        self.storage = storage
        self.storage_version = f"{group}/{storage}"
        self.converter = converter
        self.conversion = conversion

    def gvk(self, version: str) -> GroupVersionKind:
        return GroupVersionKind(self.group, version, self.kind)

    def version_of(self, obj: Object) -> str:
        """The version an object is in, empty for one of another group or an unknown version."""
        group, _, version = str(obj.get("apiVersion", "")).rpartition("/")
        return version if group == self.group and version in self.schemas else ""

    def relabel(self, obj: Object, version: str) -> Object:
        """The object in another version without asking anybody; the given one is used up."""
        old = self.version_of(obj)
        if self.conversion is not None and old and old != version:
            metadata = obj.get("metadata")
            obj = {**self.conversion(obj, old, version), "kind": self.kind, "metadata": metadata}
        obj["apiVersion"] = f"{self.group}/{version}"
        self.schemas[version].clean(obj)
        return obj

    async def convert(self, objects: list[Object], version: str) -> list[Object]:
        """Objects of any versions in one; those given are used up."""
        if self.converter is None:
            return [self.relabel(obj, version) for obj in objects]
        wanted = f"{self.group}/{version}"
        others = [obj for obj in objects if obj["apiVersion"] != wanted]
        converted = iter(await self.converter.convert(others, GroupVersion(self.group, version)) if others else ())
        schema = self.schemas[version]
        done = []
        for obj in objects:
            if obj["apiVersion"] != wanted:
                obj = next(converted)
                obj["metadata"] = lenient_metadata(obj.get("metadata"))
                schema.clean(obj)
            done.append(obj)
        return done

    def normalize(self, obj: Object) -> None:
        """Bring a stored object into the form its own version's schema demands today."""
        obj["metadata"] = metadata = lenient_metadata(obj.get("metadata"))
        metadata["generation"] = metadata.get("generation") or 1
        schema = self.schemas[self.version_of(obj)]
        schema.clean(obj)
        schema.default(obj)


class Rendering:
    """Entries as one version shows them."""

    def __init__(self, versions: Versions, version: str, form: str) -> None:
        self._versions = versions
        self._version = version
        self._form = self.form = form
        """Names these bytes among the forms that are kept with an entry."""
        self._prefix = b'{"apiVersion":"%b/%b",' % (versions.group.encode(), version.encode())

    def render(self, entry: Entry) -> bytes:
        """The entry's bytes; a webhook's answer must have been waited for with ``prepare``."""
        data = entry.data
        if data.startswith(self._prefix):
            return data
        made: bytes | None = None if (forms := entry.forms) is None else forms.get(self._form)
        if made is None:
            obj = self._load(entry)
            if self._versions.converter is not None:
                raise ConversionFailed(f"it has not been converted to {self._version} yet")
            made = copy_to_keep(escape_html(orjson.dumps(self._versions.relabel(obj, self._version))))
            entry.keep(self._form, made)
        return made

    async def prepare(self, entries: Sequence[Entry]) -> None:
        """Have all entries converted that have not been yet. Raises ``ConversionFailed``."""
        missing = self.missing(entries)
        if not missing:
            return
        converted = await self._versions.convert([self._load(entry) for entry in missing], self._version)
        for entry, obj in zip(missing, converted, strict=True):
            entry.keep(self._form, copy_to_keep(escape_html(orjson.dumps(obj))))

    def missing(self, entries: Sequence[Entry]) -> list[Entry]:
        """Those that have to be converted first."""
        return [
            entry
            for entry in entries
            if not entry.data.startswith(self._prefix) and ((forms := entry.forms) is None or self._form not in forms)
        ]

    def _load(self, entry: Entry) -> Object:
        obj: Object = large_json.loads(entry.data)
        if not self._versions.version_of(obj):
            why = f"request to convert CR from an invalid group/version: {obj.get('apiVersion', '')}"
            raise ConversionFailed(why)
        return obj


def corrupt(entry: Entry, key: str, why: object) -> str:
    """What kube-apiserver says about a stored object that it cannot read."""
    return (
        f"StorageError: corrupt object, Code: 7, Key: {key}, ResourceVersion: 0, AdditionalErrorMsg: "
        f"object not decodable revision={entry.revision}: {why}"
    )


def unreadable(entry: Entry, root: str, why: object) -> errors.StatusError:
    """The failure to read one object."""
    return errors.internal_error(corrupt(entry, entry.key.removeprefix(root), why))


def unreadable_list(resource: GroupResource, entries: Sequence[Entry], why: object) -> errors.StatusError:
    """The failure to read a list, for these of its items."""
    shown = [(corrupt(entry, entry.key, why), entry.key) for entry in entries[:_SHOWN]]
    message = f"failed to read one or more {resource} from the storage: {shown[0][0]}"
    if len(shown) > 1:
        message += f" (and {len(shown) - 1} more)"
    causes = [{"reason": "UnexpectedServerResponse", "message": text, "field": key} for text, key in shown]
    if len(shown) == _SHOWN:
        causes.append({"reason": "FieldValueTooMany", "message": "too many errors, the list is truncated"})
    details = {"name": "list", "group": resource.group, "kind": resource.resource, "causes": causes}
    return errors.StatusError(500, "StorageReadError", message, details)
