"""Where documents come from: built-in group versions, plain paths, and whatever else implements Source."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Protocol

from pilothouse.apis.resources import Version
from pilothouse.openapi.operations import MediaTypes, Operation, version_operations
from pilothouse.openapi.schemas import CORE, V3, Dialect, Schema, definition


class Source(Protocol):
    """What is known about one document."""

    @property
    def version(self) -> str:
        """Any text that differs whenever the document does. It must be cheap to tell."""
        ...

    @property
    def models(self) -> Collection[str]:
        """The names of models that are this source's own."""
        ...

    @property
    def custom(self) -> bool:
        """Whether it tells of custom resources."""
        ...

    def operations(self) -> Iterable[Operation]:
        """All operations of the document."""
        ...

    def definition(self, model: str, dialect: Dialect) -> Schema | None:
        """The schema of one of the models, its own or built in."""
        ...


class BuiltInVersion:
    """A group version of the resource table."""

    models: Collection[str] = ()
    custom = False

    def __init__(self, row: Version, media: MediaTypes) -> None:
        self.version = " ".join((str(media.cbor), *(resource.name for resource in row.resources)))
        self._row = row
        self._media = media

    def operations(self) -> Iterable[Operation]:
        return version_operations(self._row, self._media)

    def definition(self, model: str, dialect: Dialect) -> Schema | None:
        return definition(model, dialect, {CORE, self._row.group_version} if dialect is V3 else None)


class PlainPaths:
    """Paths that are no resources."""

    models: Collection[str] = ()
    custom = False
    version = ""

    def __init__(self, operations: list[Operation]) -> None:
        self._operations = operations

    def operations(self) -> Iterable[Operation]:
        return self._operations

    def definition(self, model: str, dialect: Dialect) -> Schema | None:
        return definition(model, dialect)
