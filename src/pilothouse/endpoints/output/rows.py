"""Rows of tables and metadata of objects as bytes, of which most are found rather than made.

What a row shows changes only with its object, apart from ages, which columns give as values of ``apis.ages``. So the
encoded cells are kept with the entry for a while, with gaps where ages go, and the metadata beside them is a piece of
the entry's own bytes: a row costs a look-up and a join. A row is made anew, from the decoded object, when a cell says
when something is due, when it is unusually long, or when the metadata shown is not literally in the entry.

    "v1 row"           (columns, b'{"cells":["web-1","1/1","Running","3 (␀1767323045 0␀ ago)","␀1767312245 0␀"],…')
    "v1 meta <form>"   12 << 32 | 847

Each names what it was made for, so that a definition that changes leaves nothing stale. What is kept of each of
150,000 objects is one value, not many: an age stands between zero bytes, which JSON has nowhere else.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

import orjson

from pilothouse.apis.ages import Age, Due
from pilothouse.apis.strategy import Column
from pilothouse.endpoints.scope import ShownScope
from pilothouse.machinery import large_json
from pilothouse.machinery.go_json import escape_html
from pilothouse.machinery.times import Instant, human_duration, now_instant
from pilothouse.machinery.workers import LONG, weighed
from pilothouse.net.work_turns import request_turns
from pilothouse.storage.cacher import Entry

NO_OBJECT: Final = "None"
METADATA_ONLY: Final = "Metadata"
WHOLE_OBJECT: Final = "Object"
_KEY: Final = b'"metadata":'
_LONGEST_KEPT: Final = 1024
_FOUND_A_TURN: Final = 1024  # about a millisecond, like the other; then another place in a turn is asked for
_MADE_A_TURN: Final = 32
_START: Final = 32
_END: Final = (1 << _START) - 1
_GAP: Final = b"\0"

Source = Callable[[Entry], bytes]
Find = Callable[[Entry], bytes | None]
Make = Callable[[Entry], bytes]


async def make_all(entries: Sequence[Entry], find: Find, make: Make) -> list[bytes]:
    """The bytes of each entry, found or else made; others get their turns meanwhile, and long ones are made aside."""
    all_bytes: list[bytes] = []
    effort, turns = 0.0, request_turns()
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
            await turns.take()
    return all_bytes


async def make_as_taken(entries: Sequence[Entry], find: Find, make: Make) -> Iterator[bytes]:
    """The bytes of each entry, found or made when they are asked for, but for long ones, which are made now."""
    made: dict[Entry, bytes] = {}
    turns = request_turns()
    for start in range(0, len(entries), _FOUND_A_TURN):
        await turns.take()
        for entry in [entry for entry in entries[start : start + _FOUND_A_TURN] if entry.size >= LONG]:
            made[entry] = await weighed(len(entry.data), make, entry)
    return (made.get(entry) or find(entry) or make(entry) for entry in entries)


class MetadataMaker:
    """Makes the PartialObjectMetadata of entries, from what ``source`` gives of them."""

    def __init__(self, scope: ShownScope, version: str, source: Source, key: str) -> None:
        self._scope, self._source, self._key = scope, source, f"{scope.api_version} {key} {scope.form}"
        self._head = b'{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/%b","metadata":' % version.encode()

    def find(self, entry: Entry) -> bytes | None:
        """From the entry's own bytes, if it is known where in them."""
        place: int | None = entry.find_passing(self._key)
        if place is None:
            return None
        return b"%b%b}" % (self._head, self._source(entry)[place >> _START : place & _END])

    def make(self, entry: Entry) -> bytes:
        """From the decoded object."""
        data = self._source(entry)
        return self.make_from(entry, data, large_json.loads(data))

    def make_from(self, entry: Entry, data: bytes, obj: dict[str, Any]) -> bytes:
        """From the object that was decoded from these bytes of the entry."""
        shown = escape_html(orjson.dumps(partial_metadata(self._scope, obj["metadata"])))
        start = data.find(_KEY) + len(_KEY)
        if data.startswith(shown, start):
            entry.keep_for_a_while(self._key, start << _START | start + len(shown))
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
        self._ages: dict[bytes, bytes] = {}

    def find(self, entry: Entry) -> bytes | None:
        """From what is kept with the entry."""
        if self._include == WHOLE_OBJECT or (kept := entry.find_passing(self._key)) is None:
            return None
        columns, row = kept
        if columns is not self._columns:
            return None
        shown = b"null" if self._include == NO_OBJECT else self._metadata.find(entry)
        return None if shown is None else b"%b%b}" % (self._with_ages(row), shown)

    def make(self, entry: Entry) -> bytes:
        """From the decoded object; what can be kept is."""
        data = self._source(entry)
        obj = large_json.loads(data)
        row = self._row(entry, obj)
        if self._include == NO_OBJECT:
            shown = b"null"
        elif self._include == METADATA_ONLY:
            shown = self._metadata.make_from(entry, data, obj)
        else:
            shown = escape_html(orjson.dumps(self._scope.served_object(obj)))
        return b"%b%b}" % (self._with_ages(row), shown)

    def _source(self, entry: Entry) -> bytes:
        """What the columns of an endpoint look at: the hub object, or the served version of a custom one."""
        render = self._scope.render
        return render(entry) if render is not None and self._scope.keeps_type else entry.data

    def _row(self, entry: Entry, obj: dict[str, Any]) -> bytes:
        """The row up to its object, with gaps for ages."""
        cells = [column.cell(obj) for column in self._columns]
        conditions = self._scope.strategy.row_conditions(obj)
        rest = b',"conditions":%b,"object":' % orjson.dumps(conditions) if conditions else b',"object":'
        lasting = True
        for position, cell in enumerate(cells):
            if cell.__class__ is Due:
                cells[position], lasting = cell.text(self._now), False
        row = _with_gaps(cells, rest)
        if lasting and self._keep_rows and len(row) <= _LONGEST_KEPT:
            entry.keep_for_a_while(self._key, (self._columns, row))
        return row

    def _with_ages(self, row: bytes) -> bytes:
        pieces, ages = row.split(_GAP), self._ages
        for place in range(1, len(pieces), 2):
            pieces[place] = ages.get(pieces[place]) or self._age(pieces[place])
        return b"".join(pieces)

    def _age(self, text: bytes) -> bytes:
        instant = Instant(*map(int, text.split()))
        age = self._ages[text] = escape_html(human_duration(self._now.since(instant)).encode())
        return age


def partial_metadata(scope: ShownScope, metadata: dict[str, Any]) -> dict[str, Any]:
    """An object's metadata as it is shown without the rest."""
    hidden = scope.strategy.hidden_annotations
    if not hidden or "annotations" not in metadata:
        return metadata
    shown = {key: value for key, value in metadata.items() if key != "annotations"}
    annotations = {key: value for key, value in metadata["annotations"].items() if key not in hidden}
    return {**shown, "annotations": annotations} if annotations else shown


def _with_gaps(cells: list[Any], rest: bytes) -> bytes:
    """The encoded cells and what follows them, with a gap for each age."""
    pieces: list[bytes] = []
    head, plain = b'{"cells":[', 0  # what is encoded since the last age, and the first cell that is not
    for position, cell in enumerate(cells):
        if cell.__class__ is not Age:
            continue
        if plain < position:
            head += orjson.dumps(cells[plain:position])[1:-1] + b","
        pieces += (escape_html(head + orjson.dumps(cell.before)[:-1]), b"%d %d" % cell.of)
        head, plain = orjson.dumps(cell.after)[1:] + (b"," if position + 1 < len(cells) else b""), position + 1
    return _GAP.join([*pieces, escape_html(head + orjson.dumps(cells[plain:])[1:] + rest)])
