"""Rows of tables and metadata of objects as bytes, of which most are found rather than made.

What a row shows changes only with its object, apart from ages, which columns give as values of ``apis.ages``. So the
encoded cells are kept with the entry for a while, with gaps where ages go, and the metadata beside them is a piece of
the entry's own bytes: a row costs a look-up and a join. A row is made anew, from the decoded object, when a cell says
when something is due, when it is unusually long, or when the metadata shown is not literally in the entry.

    forms["v1 row"]   (columns, b'{"cells":["web-1","1/1","Running","3 (', Instant(…), b' ago)","', Instant(…), b'"],…')
    forms["v1 meta"]  (form, 12, 847)

Each names what it was made for, so that a definition that changes leaves nothing stale, and nothing behind.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any, Final

import orjson

from pilothouse.apis.ages import Age, Due
from pilothouse.apis.strategy import Column
from pilothouse.endpoints.scope import ShownScope
from pilothouse.machinery import large_json
from pilothouse.machinery.go_json import escape_html
from pilothouse.machinery.times import Instant, human_duration, now_instant
from pilothouse.machinery.workers import LONG, weighed
from pilothouse.storage.cacher import Entry

NO_OBJECT: Final = "None"
METADATA_ONLY: Final = "Metadata"
WHOLE_OBJECT: Final = "Object"
_KEY: Final = b'"metadata":'
_LONGEST_KEPT: Final = 1024
_FOUND_A_TURN: Final = 1024  # about a millisecond, like the other
_MADE_A_TURN: Final = 32

Source = Callable[[Entry], bytes]
Find = Callable[[Entry], bytes | None]
Make = Callable[[Entry], bytes]


async def make_all(entries: Sequence[Entry], find: Find, make: Make) -> list[bytes]:
    """The bytes of each entry, found or else made; others get their turns meanwhile, and long ones are made aside."""
    all_bytes: list[bytes] = []
    effort = 0.0
    for entry in entries:
        data = find(entry)
        if data is None:
            data = make(entry) if entry.size < LONG else await weighed(len(entry.data), make, entry)
            effort += 1 / _MADE_A_TURN
        else:
            effort += 1 / _FOUND_A_TURN
        all_bytes.append(data)
        if effort >= 1:
            effort = 0.0
            await asyncio.sleep(0)
    return all_bytes


class MetadataMaker:
    """Makes the PartialObjectMetadata of entries, from what ``source`` gives of them."""

    def __init__(self, scope: ShownScope, version: str, source: Source, key: str) -> None:
        self._scope, self._source, self._key = scope, source, f"{scope.api_version} {key}"
        self._head = b'{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/%b","metadata":' % version.encode()

    def find(self, entry: Entry) -> bytes | None:
        """From the entry's own bytes, if it is known where in them."""
        forms = entry.forms
        if forms is None or (kept := forms.get(self._key)) is None:
            return None
        form, start, end = kept
        return b"%b%b}" % (self._head, self._source(entry)[start:end]) if form == self._scope.form else None

    def make(self, entry: Entry) -> bytes:
        """From the decoded object."""
        data = self._source(entry)
        return self.make_from(entry, data, large_json.loads(data))

    def make_from(self, entry: Entry, data: bytes, obj: dict[str, Any]) -> bytes:
        """From the object that was decoded from these bytes of the entry."""
        shown = escape_html(orjson.dumps(partial_metadata(self._scope, obj["metadata"])))
        start = data.find(_KEY) + len(_KEY)
        if data.startswith(shown, start):
            entry.keep_for_a_while(self._key, (self._scope.form, start, start + len(shown)))
        return b"%b%b}" % (self._head, shown)


class RowMaker:
    """Makes the rows of one table."""

    def __init__(
        self, scope: ShownScope, columns: tuple[Column, ...], version: str, include: str, *, keep: bool = True
    ) -> None:
        self._scope, self._columns, self._include, self._keep_rows = scope, columns, include, keep
        self._key = f"{scope.api_version} row"
        self._metadata = MetadataMaker(scope, version, self._source, "row meta")
        self._now = now_instant()
        self._ages: dict[Instant, bytes] = {}

    def find(self, entry: Entry) -> bytes | None:
        """From what is kept with the entry."""
        forms = entry.forms
        if forms is None or self._include == WHOLE_OBJECT or (kept := forms.get(self._key)) is None:
            return None
        columns, *pieces = kept
        if columns is not self._columns:
            return None
        shown = b"null" if self._include == NO_OBJECT else self._metadata.find(entry)
        return None if shown is None else b"%b%b}" % (self._join(pieces), shown)

    def make(self, entry: Entry) -> bytes:
        """From the decoded object; what can be kept is."""
        data = self._source(entry)
        obj = large_json.loads(data)
        pieces = self._pieces(entry, obj)
        if self._include == NO_OBJECT:
            shown = b"null"
        elif self._include == METADATA_ONLY:
            shown = self._metadata.make_from(entry, data, obj)
        else:
            shown = escape_html(orjson.dumps(self._scope.served_object(obj)))
        return b"%b%b}" % (self._join(pieces), shown)

    def _source(self, entry: Entry) -> bytes:
        """What the columns of an endpoint look at: the hub object, or the served version of a custom one."""
        render = self._scope.render
        return render(entry) if render is not None and self._scope.keeps_type else entry.data

    def _pieces(self, entry: Entry, obj: dict[str, Any]) -> Sequence[bytes | Instant]:
        """The row up to its object."""
        cells = [column.cell(obj) for column in self._columns]
        conditions = self._scope.strategy.row_conditions(obj)
        rest = b',"conditions":%b,"object":' % orjson.dumps(conditions) if conditions else b',"object":'
        lasting = True
        for position, cell in enumerate(cells):
            if cell.__class__ is Due:
                cells[position], lasting = cell.text(self._now), False
        pieces = _split(cells, rest)
        if lasting and self._keep_rows and sum(map(len, pieces)) <= _LONGEST_KEPT:
            entry.keep_for_a_while(self._key, (self._columns, *pieces))
        return pieces

    def _join(self, pieces: Sequence[bytes | Instant]) -> bytes:
        ages = self._ages
        return b"".join([p if isinstance(p, bytes) else ages.get(p) or self._age(p) for p in pieces])

    def _age(self, instant: Instant) -> bytes:
        age = self._ages[instant] = escape_html(human_duration(self._now.since(instant)).encode())
        return age


def partial_metadata(scope: ShownScope, metadata: dict[str, Any]) -> dict[str, Any]:
    """An object's metadata as it is shown without the rest."""
    hidden = scope.strategy.hidden_annotations
    if not hidden or "annotations" not in metadata:
        return metadata
    shown = {key: value for key, value in metadata.items() if key != "annotations"}
    annotations = {key: value for key, value in metadata["annotations"].items() if key not in hidden}
    return {**shown, "annotations": annotations} if annotations else shown


def _split(cells: list[Any], rest: bytes) -> list[bytes | Instant]:
    """The encoded cells and what follows them, taken apart where ages go."""
    pieces: list[bytes | Instant] = []
    head, plain = b'{"cells":[', 0  # what is encoded since the last age, and the first cell that is not
    for position, cell in enumerate(cells):
        if cell.__class__ is not Age:
            continue
        if plain < position:
            head += orjson.dumps(cells[plain:position])[1:-1] + b","
        pieces += (escape_html(head + orjson.dumps(cell.before)[:-1]), cell.of)
        head, plain = orjson.dumps(cell.after)[1:] + (b"," if position + 1 < len(cells) else b""), position + 1
    return [*pieces, escape_html(head + orjson.dumps(cells[plain:])[1:] + rest)]
