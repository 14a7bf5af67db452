"""The versions of one definition, and how an object gets from one to another.

Where code converts (``additions``), it is called. A webhook is asked with many objects at a time; what it answered is
kept with the entry, so that each stored state is converted to each version at most once: whoever else wants it
meanwhile waits for the same answer, or hears of the same failure if all wanted by the one who asked is wanted by them
as well: another object may be to blame. Without either a conversion changes ``apiVersion``
and drops what the other version's schema does not know. What is long is made aside, and long lists in batches.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple, Protocol

from pilothouse.apiextensions.serving.additions import Conversion
from pilothouse.apis.apiextensions.schema.compiled import ObjectSchema
from pilothouse.apis.apiextensions.schema.embedded import lenient_metadata
from pilothouse.machinery import errors, large_json
from pilothouse.machinery.go_json import escape_html
from pilothouse.machinery.gvk import GroupResource, GroupVersion, GroupVersionKind
from pilothouse.machinery.kept_json import copy_to_keep
from pilothouse.machinery.objects import Object
from pilothouse.machinery.workers import weighed
from pilothouse.net.work_turns import request_turns
from pilothouse.storage.cacher import Entry

_SHOWN: Final = 100
_BATCH: Final = 500
_BATCH_BYTES: Final = 1 << 20
"""How many objects a converter is asked for at once, and how long these may be: so a list of any length takes little
room while it is converted, and what it may become is bounded."""
_IN_A_TURN: Final = 4_000
"""So many entries are looked at before others get their turn."""


class ConversionFailed(errors.StatusError):
    """An object cannot be had in another version. ``kind`` is the kind of failure, for those who count."""

    def __init__(self, message: str, kind: str = "") -> None:
        super().__init__(500, "", message)
        self.kind = kind


class Converted(NamedTuple):
    """Objects in another version, in the same order."""

    objects: list[Object]
    weight: int
    """How much work they are, in bytes."""


class Converter(Protocol):
    """Asks somebody else to convert objects (a webhook)."""

    async def convert(self, objects: list[Object], version: GroupVersion, weight: int) -> Converted:
        """The objects, which are so many bytes, in another version. Raises ``ConversionFailed``."""
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

    async def convert(self, objects: list[Object], version: str, weight: int) -> Converted:
        """Objects of any versions, which are so many bytes, in one; those given are used up."""
        if self.converter is None:
            made = await weighed(weight, lambda: [self.relabel(obj, version) for obj in objects])
            return Converted(made, weight)
        wanted = f"{self.group}/{version}"
        others = [obj for obj in objects if obj["apiVersion"] != wanted]
        if not others:
            return Converted(objects, weight)
        converted = await self.converter.convert(others, GroupVersion(self.group, version), weight)
        await weighed(converted.weight, self._clean, converted.objects, version)
        answered = iter(converted.objects)
        done = [obj if obj["apiVersion"] == wanted else next(answered) for obj in objects]
        return Converted(done, max(weight, converted.weight))

    def _clean(self, objects: list[Object], version: str) -> None:
        schema = self.schemas[version]
        for obj in objects:
            obj["metadata"] = lenient_metadata(obj.get("metadata"))
            schema.clean(obj)

    def normalize(self, obj: Object) -> None:
        """Bring a stored object into the form its own version's schema demands today."""
        obj["metadata"] = metadata = lenient_metadata(obj.get("metadata"))
        metadata["generation"] = metadata.get("generation") or 1
        schema = self.schemas[self.version_of(obj)]
        schema.clean(obj)
        schema.default(obj)


class _UnderWay(NamedTuple):
    """A conversion that was begun."""

    entries: frozenset[Entry]
    ended: asyncio.Future[ConversionFailed | None]


class Rendering:
    """Entries as one version shows them."""

    def __init__(self, versions: Versions, version: str, form: str) -> None:
        self._versions = versions
        self._version = version
        self._form = self.form = form
        """Names these bytes among the forms that are kept with an entry."""
        self._under_way: dict[Entry, _UnderWay] = {}
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
            made = _encode(self._versions.relabel(obj, self._version))
            entry.keep(self._form, made)
        return made

    async def prepare(self, entries: Sequence[Entry]) -> None:
        """Have all entries converted that have not been yet. Raises ``ConversionFailed``."""
        if len(entries) <= _IN_A_TURN:
            missing = self.missing(entries)
        else:
            missing = []
            turns = request_turns()
            for at in range(0, len(entries), _IN_A_TURN):
                await turns.take()
                missing += self.missing(entries[at : at + _IN_A_TURN])
        for batch in _batches(missing):
            await self._prepare_batch(batch)

    async def _prepare_batch(self, batch: list[Entry]) -> None:
        """The same for a few: those that nobody has begun with are converted, all others waited for."""
        wanted = frozenset(batch)
        while batch:
            under_way = self._under_way
            new = [*dict.fromkeys(entry for entry in batch if entry not in under_way)]
            if new:
                await self._begin(new)
            else:
                others = under_way[batch[0]]
                failure = await asyncio.shield(others.ended)
                if failure is not None and others.entries <= wanted:
                    raise ConversionFailed(failure.message, failure.kind)
            batch = self.missing(batch)

    async def _begin(self, entries: list[Entry]) -> None:
        """Convert these, and tell whoever waits for them how it ended; who gives up leaves them to another."""
        begun = _UnderWay(frozenset(entries), asyncio.get_running_loop().create_future())
        self._under_way.update((entry, begun) for entry in entries)
        failure: ConversionFailed | None = None
        try:
            await self._convert(entries)
        except ConversionFailed as error:
            failure = error
            raise
        finally:
            for entry in entries:
                del self._under_way[entry]
            begun.ended.set_result(failure)
            del failure

    async def _convert(self, entries: list[Entry]) -> None:
        weight = sum(entry.size for entry in entries)
        objects = await weighed(weight, lambda: [self._load(entry) for entry in entries])
        converted = await self._versions.convert(objects, self._version, weight)
        made = await weighed(converted.weight, lambda: list(map(_encode, converted.objects)))
        for entry, data in zip(entries, made, strict=True):
            entry.keep(self._form, data)

    def weight(self, entry: Entry) -> int:
        """How long an entry is as it is rendered, or as it is stored if it has not been yet."""
        made: bytes | None = None if (forms := entry.forms) is None else forms.get(self._form)
        return len(entry.data) if made is None else len(made)

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


def _encode(obj: Object) -> bytes:
    return copy_to_keep(escape_html(large_json.dumps(obj)))


def _batches(entries: list[Entry]) -> Iterator[list[Entry]]:
    """All of them in their order, so many at a time as are converted at once."""
    batch: list[Entry] = []
    size = 0
    for entry in entries:
        if batch and (len(batch) == _BATCH or size + entry.size > _BATCH_BYTES):
            yield batch
            batch, size = [], 0
        batch.append(entry)
        size += entry.size
    if batch:
        yield batch


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
