"""Between objects and bytes: what is written to storage, and what the cache keeps ready to serve.

A stored value is the object's JSON without a resourceVersion, which the log itself knows. The cached form has it put
back in, and lacks kind and apiVersion where the resource says so (``head``), because list items of built-in kinds are
shown without. Metadata comes first and in a fixed order, so that the version is spliced into bytes, not re-encoded:

    {"metadata":{"name":"a","namespace":"b","uid":"<36 characters>" ⟵ ,"resourceVersion":"17" ⟶ ,"creationTimestamp":…

Nothing a user controls freely stands before the uid: names are validated, so the first ``"uid":"`` is the right one.

That is the embedded store's form. Where kube-apiserver's is wanted, ``stored_form`` makes it from the same bytes; it is
read wherever it is found.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from operator import itemgetter
from typing import Any, Final

import orjson

from pilothouse.apis.strategy import HiddenField
from pilothouse.machinery import large_json
from pilothouse.machinery.go_json import escape_html
from pilothouse.machinery.objects import Object
from pilothouse.machinery.schema.null_lists import settle
from pilothouse.machinery.schema.raw import Place, Texts, embed, raw_places
from pilothouse.machinery.schema.types import Struct
from pilothouse.machinery.workers import LONG, weighed
from pilothouse.registry.store.sizing import SURELY_FITS, check_size
from pilothouse.registry.store.stored_form import StoredForm, is_foreign
from pilothouse.storage.cacher import NOTHING, Entry, SharedNames, UnreadEntry, share_labels

_ORDER: Final = (
    "name", "generateName", "namespace", "selfLink", "uid", "resourceVersion", "generation", "creationTimestamp",
    "deletionTimestamp", "deletionGracePeriodSeconds", "labels", "annotations", "ownerReferences", "finalizers",
    "managedFields",
)  # fmt: skip
_FEW: Final = 2
_MOST_ORDERS: Final = 256
_UID: Final = b'"uid":"'
_UID_LENGTH: Final = len(_UID) + 36 + 1
_METADATA: Final = frozenset({"metadata.name", "metadata.namespace", "metadata.labels"})
SelectorFields = Callable[[Object], dict[str, str]]


class ObjectCodec:
    """Encodes and decodes the objects of one resource."""

    __slots__ = (
        "_fields", "_form", "_head", "_hidden", "_prefix", "_rewrite", "_selected",
        "_share_names", "_struct", "keeps_empty", "writes_form",
    )  # fmt: skip

    def __init__(
        self,
        kind: str,
        api_version: str,
        fields: SelectorFields | None,
        *,
        keeps_type: bool = False,
        struct: Struct | None = None,
        form: StoredForm | None = None,
        writes_form: bool = False,
        field_sources: frozenset[str] | None = None,
        hidden: HiddenField | None = None,
    ) -> None:
        """``form`` is kube-apiserver's, read wherever it is found, and written with ``writes_form``.

        ``field_sources`` are the paths of all that ``fields`` looks at; without them an object is always read whole.
        """
        self._hidden = hidden
        self._selected = _METADATA if fields is None else None if field_sources is None else _METADATA | field_sources
        self._struct = struct
        self._form = form
        self.writes_form = writes_form
        """Whether objects are kept in kube-apiserver's form, which reading completes."""
        self._rewrite = form.rewrite_text if writes_form and form is not None else None
        self.keeps_empty = writes_form and form is not None and form.keeps_empty
        self._head = b"" if keeps_type else b'{"kind":"%s","apiVersion":"%s",' % (kind.encode(), api_version.encode())
        self._prefix = len(self._head)
        self._fields = fields
        self._share_names = SharedNames()

    def selector_fields(self, obj: Object) -> Mapping[str, str]:
        """The values that field selectors are held against."""
        return NOTHING if self._fields is None else self._share_names(self._fields(obj))

    @property
    def raw_places(self) -> tuple[Place, ...]:
        """Where the objects have raw values."""
        return () if self._struct is None else raw_places(self._struct)

    def hides(self, obj: Object) -> bool:
        """Whether something may be stored of the object that is not shown."""
        return self._hidden is not None and self._hidden.applies(obj)

    def hide(self, obj: Object) -> bool:
        """Take that away; whether there was any."""
        hidden = self._hidden
        return hidden is not None and hidden.applies(obj) and obj["spec"].pop(hidden.name, None) is not None

    def encode(self, obj: Object, *raw: Texts) -> bytes:
        """The object's bytes without a resourceVersion, its metadata in the fixed order, raw values as they were.

        Or as storage will have them: what is served after a write is what anybody reads later.
        """
        metadata = obj["metadata"]
        ordered = _in_order(metadata)
        if self._prefix:
            body = {"metadata": ordered, **obj}
            body["metadata"] = ordered
            if "kind" in body or "apiVersion" in body:
                body.pop("kind", None)
                body.pop("apiVersion", None)
        else:
            body = {"apiVersion": obj["apiVersion"], "kind": obj["kind"], "metadata": ordered, **obj}
            body["metadata"] = ordered
        if raw:
            rewrite = self._rewrite
            if rewrite is not None:
                raw = tuple({place: rewrite(text) for place, text in texts.items()} for texts in raw)
            body = embed(body, self.raw_places, *raw)
        data = large_json.dumps(body)
        if self._struct is not None and not self.keeps_empty and b":[]" in data:
            data = large_json.dumps(settle(self._struct, body))
        return escape_html(data)

    def to_stored(self, data: bytes) -> bytes:
        """What storage keeps for encoded bytes."""
        if self.writes_form and self._form is not None:
            return self._form.write(data)
        return self._head + data[1:] if self._prefix else data

    async def stored(self, data: bytes) -> bytes:
        """The same, made aside if it takes long: kube-apiserver's form has to be made, ours is at hand."""
        if not self.writes_form or len(data) < LONG:
            return self.to_stored(data)
        return await weighed(len(data), self.to_stored, data)

    def check_size(self, key: str, obj: Object, data: bytes, revision: int) -> None:
        """Raise ``TooLarge`` for an object that storage does not take in place of that revision."""
        if len(data) > SURELY_FITS:
            check_size(key, obj, len(data) + self._prefix, revision, self._struct)

    def entry(self, key: str, value: bytes, revision: int) -> Entry:
        """Read a stored value."""
        if self._form is not None and is_foreign(value):
            obj, texts = self._form.read(value)
            self.hide(obj)
            return self.entry_of(key, obj, self.encode(obj, texts), revision)
        return self._own_entry(key, value, revision)[0]

    def whole(self, value: bytes) -> Object:
        """The object in a stored value, with what is not shown."""
        if self._form is not None and is_foreign(value):
            return self._form.read(value)[0]
        return self._own_object(value)[0]

    def _own_object(self, value: bytes) -> tuple[Object, bytes]:
        """An object in our own form, which is JSON, and its bytes without what it is."""
        data = b"{" + value[self._prefix :] if self._prefix and value.startswith(self._head) else value
        obj = large_json.loads(data)
        if self._prefix and "kind" in obj:
            obj.pop("kind")
            obj.pop("apiVersion", None)
            data = orjson.dumps(obj)
        return obj, data

    def _own_entry(self, key: str, value: bytes, revision: int) -> tuple[Entry, Object]:
        obj, data = self._own_object(value)
        if self.hide(obj):
            data = orjson.dumps(obj)
        return self.entry_of(key, obj, data, revision), obj

    def entry_and_object(self, key: str, value: bytes, revision: int) -> tuple[Entry, Object | None]:
        """An entry, and the object that it took to make it; None where the entry can be had for less."""
        if self._form is not None and is_foreign(value):
            return self.unread_entry(key, value, revision), None
        return self._own_entry(key, value, revision)

    def unread_entry(self, key: str, value: bytes, revision: int) -> Entry:
        """The same for less, where what selectors need can be read without the rest."""
        obj = self.read_partly(value, self._selected) if self._selected is not None else None
        if obj is None or self._form is None:
            return self.entry(key, value, revision)
        if self._fields is not None:
            self._form.default(obj)
        metadata = obj["metadata"]
        return UnreadEntry(
            self,
            key,
            value,
            revision,
            metadata.get("namespace", ""),
            metadata.get("name", ""),
            share_labels(metadata.get("labels")),
            self.selector_fields(obj),
        )

    def read_partly(self, value: bytes, wanted: frozenset[str]) -> Object | None:
        """Some fields of a stored value, without defaults; None where only the whole can be read."""
        if self._form is None or not is_foreign(value):
            return None
        return self._form.read_partly(value, wanted)

    def data_of(self, value: bytes, revision: int) -> bytes:
        """The cached bytes of a stored value."""
        if self._form is None:
            return self.entry("", value, revision).data
        obj, texts = self._form.read(value)
        self.hide(obj)
        return with_revision(self.encode(obj, texts), revision)

    def read_back(self, obj: Object, data: bytes) -> tuple[Object, bytes]:
        """An object and its bytes as reading them from storage makes them."""
        return obj, data

    def entry_of(self, key: str, obj: Object, data: bytes, revision: int) -> Entry:
        """Make the cached form of an object whose bytes are known."""
        obj, data = self.read_back(obj, data)
        metadata = obj["metadata"]
        return Entry(
            key,
            with_revision(data, revision),
            revision,
            metadata.get("namespace", ""),
            metadata.get("name", ""),
            share_labels(metadata.get("labels")),
            self.selector_fields(obj),
        )

    def restamp(self, entry: Entry, revision: int) -> Entry:
        """The same state under another resourceVersion."""
        data = with_revision(entry.data, revision)
        return Entry(entry.key, data, revision, entry.namespace, entry.name, entry.labels, entry.fields)


_known_orders: Final[dict[tuple[str, ...], tuple[tuple[str, ...], Callable[[Object], tuple[Any, ...]]]]] = {}
"""By the keys of metadata, as they come: the same in the fixed order, and what takes their values."""


def _in_order(metadata: Object) -> Object:
    """Metadata in the fixed order, without the version. Objects of a kind have few orders between them."""
    keys = tuple(metadata)
    known = _known_orders.get(keys)
    if known is None:
        order: tuple[str, ...] = tuple(key for key in _ORDER if key in metadata and key != "resourceVersion")
        if len(order) < _FEW:
            return {key: metadata[key] for key in order}
        if len(_known_orders) >= _MOST_ORDERS:
            _known_orders.clear()
        known = _known_orders[keys] = order, itemgetter(*order)
    order, values = known
    return dict(zip(order, values(metadata), strict=True))


def with_revision(data: bytes, revision: int) -> bytes:
    """The same object carrying this resourceVersion; bytes without one get it, others have it replaced."""
    at = data.find(_UID) + _UID_LENGTH
    if at < _UID_LENGTH or data[at : at + 1] not in b",}" or data[at - 1 : at] != b'"':
        return with_version(data, str(revision))
    if data.startswith(b',"resourceVersion":"', at):
        end = data.index(b'"', at + 20) + 1
        return b'%b,"resourceVersion":"%d"%b' % (data[:at], revision, data[end:])
    return b'%b,"resourceVersion":"%d"%b' % (data[:at], revision, data[at:])


def with_version(data: bytes, version: str) -> bytes:
    """The same object carrying this resourceVersion, whatever it is."""
    obj: dict[str, Any] = large_json.loads(data)
    obj["metadata"]["resourceVersion"] = version
    return orjson.dumps(obj)
