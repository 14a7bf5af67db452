"""The OpenAPI documents of a server: made when first asked for, kept as bytes, forgotten when their source changes.

A document's hash is of what it is made from, not of its bytes: telling the hashes of all documents, which the index of
version 3 does, makes none of them. Documents are made aside, one at a time where a client asks for dozens; requests
that come meanwhile wait for the same one.

Documents of other servers (``Foreign``) come as bytes: those of version 2 are merged into ours, those of version 3 are
listed by their address, or served from here where they had to be made of version 2.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any, Final, NamedTuple
from urllib.parse import quote

import orjson

from pilothouse import KUBERNETES_VERSION, __version__
from pilothouse.apis import documentation
from pilothouse.machinery import large_json
from pilothouse.machinery.gvk import GroupVersion
from pilothouse.machinery.lazy import lazy
from pilothouse.machinery.single_flight import SingleFlight
from pilothouse.machinery.workers import aside
from pilothouse.openapi.foreign import Foreign
from pilothouse.openapi.operations import root_of
from pilothouse.openapi.schemas import V2, V3, Schema, definition
from pilothouse.openapi.sources import Source

Tree = dict[str, Any]
JSON: Final = "json"
PROTOBUF: Final = "protobuf"


class Encoded(NamedTuple):
    """A document as it is sent. ``modified`` is when it was made, in seconds since the epoch."""

    body: bytes
    etag: str
    modified: float


class _Document:
    """One document in the forms asked for so far."""

    def __init__(self, etag: str, build: Callable[[], Tree], encode_protobuf: Callable[[Tree], bytes]) -> None:
        self.etag = etag
        self._build = build
        self._encoders: dict[str, Callable[[Tree], bytes]] = {JSON: large_json.dumps, PROTOBUF: encode_protobuf}
        self._forms: dict[str, Encoded] = {}
        self._making: SingleFlight[str, Encoded] = SingleFlight("OpenAPI document")
        self.error = ""
        """Why it could not be made the last time."""

    async def get(self, form: str) -> Encoded:
        found = self._forms.get(form)
        if found is not None:
            return found
        return await self._making.get(form, lambda: self._make(form))

    async def _make(self, form: str) -> Encoded:
        try:
            body = await aside(lambda: self._encoders[form](self._build()))
        except Exception as error:
            self.error = f"a document cannot be made: {error}"
            raise
        self.error = ""
        made = self._forms[form] = Encoded(body, self.etag, time.time())
        return made


class OpenApi:
    """All documents by name: ``api/v1``, ``apis/apps/v1``, ``version`` …"""

    def __init__(self) -> None:
        self._sources: dict[str, Source] = {}
        self._addresses: dict[str, str] = {}
        """Where documents are that other servers have."""
        self._converted: dict[str, Foreign] = {}
        """Documents of version 3 that were made of another server's."""
        self._merged: tuple[Foreign, ...] = ()
        self._documents: dict[str, _Document] = {}
        self._index: Encoded | None = None
        self._whole: _Document | None = None

    def set_group_version(self, gv: GroupVersion, source: Source) -> None:
        """Describe a group version, or describe it anew."""
        self.set_document(root_of(gv)[1:], source)

    def remove_group_version(self, gv: GroupVersion) -> None:
        """Stop describing a group version."""
        self._sources.pop(root_of(gv)[1:], None)
        self._forget(root_of(gv)[1:])

    def set_document(self, name: str, source: Source) -> None:
        """Describe whatever a document is about."""
        self._sources[name] = source
        self._forget(name)

    def set_address(self, gv: GroupVersion, address: str) -> None:
        """List the document of a group version that another server has; without an address, stop to."""
        name = root_of(gv)[1:]
        if self._addresses.get(name, "") == address:
            return
        if address:
            self._addresses[name] = address
        else:
            del self._addresses[name]
        self._index = None

    def set_converted(self, gv: GroupVersion, document: Foreign | None) -> None:
        """Serve a document that was made of another server's, or stop to."""
        name = root_of(gv)[1:]
        if document is None:
            self._converted.pop(name, None)
        else:
            self._converted[name] = document
        self._documents.pop(name, None)
        self._index = None

    def merge(self, documents: Iterable[Foreign]) -> None:
        """Merge these into the document of version 2, in this order, instead of those before."""
        merged = tuple(documents)
        if [each.etag for each in merged] != [each.etag for each in self._merged]:
            self._merged = merged
            self._whole = None

    def _forget(self, name: str) -> None:
        self._documents.pop(name, None)
        self._index = self._whole = None

    @lazy
    def _edition(self) -> str:
        return f"{__version__} {KUBERNETES_VERSION} {documentation.edition()}"

    def error(self) -> str:
        """What could not be made the last time somebody asked for it; empty if everything could."""
        documents = [*self._documents.values(), *([] if self._whole is None else [self._whole])]
        return next((each.error for each in documents if each.error), "")

    def index(self) -> Encoded:
        """The index of version 3: the address of each document with its hash."""
        if self._index is None:
            own = {name: self.address(name) for name in (*self._sources, *self._converted)}
            addresses = own | self._addresses
            paths = {name: {"serverRelativeURL": address} for name, address in sorted(addresses.items())}
            body = orjson.dumps({"paths": paths})
            self._index = Encoded(body, _hash(body), time.time())
        return self._index

    def address(self, name: str) -> str:
        """Where a document is, with its hash."""
        return f"/openapi/v3/{quote(name)}?hash={self._etag(name)}"

    async def document(self, name: str, form: str) -> Encoded | None:
        """A document of version 3."""
        source, converted = self._sources.get(name), self._converted.get(name)
        build: Callable[[], Tree]
        if converted is not None:
            build = partial(large_json.loads, converted.body)
        elif source is not None:
            build = partial(_build_v3, source)
        else:
            return None
        kept = self._documents.get(name)
        if kept is None:
            kept = self._documents[name] = _Document(self._etag(name), build, _encode_v3)
        return await kept.get(form)

    async def swagger(self, form: str) -> Encoded:
        """The one document of version 2."""
        if self._whole is None:
            sources = [source for _, source in sorted(self._sources.items())]
            own, foreign = (self._etag(name) for name in sorted(self._sources)), self._merged
            etag = _hash(" ".join((*own, *(each.etag for each in foreign))).encode())
            self._whole = _Document(etag, partial(_build_v2, sources, foreign), _encode_v2)
        return await self._whole.get(form)

    def _etag(self, name: str) -> str:
        if name in self._converted:
            return self._converted[name].etag
        return _hash(f"{self._edition}\n{name}\n{self._sources[name].version}".encode())


# The writers are imported when the first document is made: a server that is never asked for one does without them.


def _encode_v3(document: Tree) -> bytes:
    from pilothouse.openapi import gnostic

    return gnostic.encode_v3(document)


def _encode_v2(document: Tree) -> bytes:
    from pilothouse.openapi import gnostic

    return gnostic.encode_v2(document)


def _build_v3(source: Source) -> Tree:
    from pilothouse.openapi import version3

    return version3.build(source.operations(), lambda model: source.definition(model, V3), custom=source.custom)


def _build_v2(sources: list[Source], foreign: tuple[Foreign, ...] = ()) -> Tree:
    from pilothouse.openapi import merging, version2

    owners = {model: source for source in sources for model in source.models}

    def define(model: str) -> Schema | None:
        owner = owners.get(model)
        return definition(model, V2) if owner is None else owner.definition(model, V2)

    whole = version2.build((operation for source in sources for operation in source.operations()), define)
    if foreign:
        # No part twice, and lists as lists: what is compared and changed.
        whole = large_json.loads(large_json.dumps(whole))
    for each in foreign:
        merging.merge_into(whole, large_json.loads(each.body))
    return whole


def _hash(content: bytes) -> str:
    return hashlib.sha512(content).hexdigest().upper()
