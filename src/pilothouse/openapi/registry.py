"""The OpenAPI documents of a server: made when first asked for, kept as bytes, forgotten when their source changes.

A document's hash is of what it is made from, not of its bytes: telling the hashes of all documents, which the index of
version 3 does, makes none of them. Documents are made in a thread; requests that come meanwhile wait for the same one.
"""

from __future__ import annotations

import asyncio
import hashlib
import time
from collections.abc import Callable
from functools import cached_property
from typing import Any, Final, NamedTuple
from urllib.parse import quote

import orjson

from pilothouse import KUBERNETES_VERSION, __version__
from pilothouse.apis import documentation
from pilothouse.machinery.gvk import GroupVersion
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
        self._encoders: dict[str, Callable[[Tree], bytes]] = {JSON: orjson.dumps, PROTOBUF: encode_protobuf}
        self._forms: dict[str, Encoded] = {}
        self._making: dict[str, asyncio.Task[Encoded]] = {}

    async def get(self, form: str) -> Encoded:
        found = self._forms.get(form)
        if found is not None:
            return found
        task = self._making.get(form)
        if task is None:
            task = self._making[form] = asyncio.get_running_loop().create_task(self._make(form))
        # A client that goes away must not take the document from the others.
        return await asyncio.shield(task)

    async def _make(self, form: str) -> Encoded:
        try:
            body = await asyncio.to_thread(lambda: self._encoders[form](self._build()))
            made = self._forms[form] = Encoded(body, self.etag, time.time())
            return made
        finally:
            del self._making[form]


class OpenApi:
    """All documents by name: ``api/v1``, ``apis/apps/v1``, ``version`` …"""

    def __init__(self) -> None:
        self._sources: dict[str, Source] = {}
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

    def _forget(self, name: str) -> None:
        self._documents.pop(name, None)
        self._index = self._whole = None

    @cached_property
    def _edition(self) -> str:
        return f"{__version__} {KUBERNETES_VERSION} {documentation.edition()}"

    def index(self) -> Encoded:
        """The index of version 3: the address of each document with its hash."""
        if self._index is None:
            paths = {name: {"serverRelativeURL": self.address(name)} for name in sorted(self._sources)}
            body = orjson.dumps({"paths": paths})
            self._index = Encoded(body, _hash(body), time.time())
        return self._index

    def address(self, name: str) -> str:
        """Where a document is, with its hash."""
        return f"/openapi/v3/{quote(name)}?hash={self._etag(name)}"

    async def document(self, name: str, form: str) -> Encoded | None:
        """A document of version 3."""
        source = self._sources.get(name)
        if source is None:
            return None
        kept = self._documents.get(name)
        if kept is None:
            kept = self._documents[name] = _Document(self._etag(name), lambda: _build_v3(source), _encode_v3)
        return await kept.get(form)

    async def swagger(self, form: str) -> Encoded:
        """The one document of version 2."""
        if self._whole is None:
            sources = [source for _, source in sorted(self._sources.items())]
            etag = _hash(" ".join(self._etag(name) for name in sorted(self._sources)).encode())
            self._whole = _Document(etag, lambda: _build_v2(sources), _encode_v2)
        return await self._whole.get(form)

    def _etag(self, name: str) -> str:
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

    return version3.build(source.operations(), lambda model: source.definition(model, V3))


def _build_v2(sources: list[Source]) -> Tree:
    from pilothouse.openapi import version2

    owners = {model: source for source in sources for model in source.models}

    def define(model: str) -> Schema | None:
        owner = owners.get(model)
        return definition(model, V2) if owner is None else owner.definition(model, V2)

    return version2.build((operation for source in sources for operation in source.operations()), define)


def _hash(content: bytes) -> str:
    return hashlib.sha512(content).hexdigest().upper()
