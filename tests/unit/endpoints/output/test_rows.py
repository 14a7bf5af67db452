"""A row that was kept reads like one that is made, at any time; what cannot be kept is not."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import orjson
import pytest

from pilothouse.apis.ages import Age, age_of, due_at
from pilothouse.apis.columns import AGE, NAME
from pilothouse.apis.core.pod.columns import COLUMNS
from pilothouse.apis.strategy import Column, Strategy
from pilothouse.endpoints.output import rows
from pilothouse.endpoints.output.rows import MetadataMaker, RowMaker, make_all
from pilothouse.machinery import times
from pilothouse.machinery.go_json import escape_html
from pilothouse.net.work_turns import PLACES
from pilothouse.storage.cacher import Entry

CREATED = "2024-05-01T12:00:00Z"
DAY = 24 * 3600


class Hiding(Strategy):
    hidden_annotations = frozenset({"secret"})


def scope_of(strategy: Strategy | None = None, form: str = "f", **others: Any) -> Any:
    def served_object(obj: dict[str, Any]) -> dict[str, Any]:
        return {"kind": "Pod", "apiVersion": "v1", **obj}

    return SimpleNamespace(
        form=form,
        api_version="v1",
        strategy=strategy or Strategy(),
        served_object=served_object,
        **{"render": None, "keeps_type": False, **others},
    )


def pod(name: str = "web", restarted: str = "", **metadata: Any) -> dict[str, Any]:
    status: dict[str, Any] = {"phase": "Running", "podIPs": [{"ip": "10.0.0.7"}]}
    if restarted:
        ended = {"terminated": {"finishedAt": restarted}}
        status["containerStatuses"] = [{"name": "c", "restartCount": 3, "lastState": ended}]
    shown = {"name": name, "uid": "u", "creationTimestamp": CREATED, **metadata}
    return {"metadata": shown, "spec": {"containers": [{"name": "c"}]}, "status": status}


def entry_of(obj: dict[str, Any]) -> Entry:
    return Entry("/a", escape_html(orjson.dumps(obj)), 1)


class At:
    """A present that tests move."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.seconds = times.parse_time(CREATED).seconds
        monkeypatch.setattr(times.now_instant, "__defaults__", (self,))

    def time_ns(self) -> int:
        return self.seconds * times.SECOND


@pytest.fixture
def at(monkeypatch: pytest.MonkeyPatch) -> At:
    return At(monkeypatch)


def row_of(scope: Any, columns: tuple[Column, ...], entry: Entry, include: str) -> dict[str, Any]:
    """A row the plain way: cells as text, the object as it is asked for."""
    obj, now = orjson.loads(entry.data), times.now_instant()
    cells = [cell.text(now) if isinstance(cell, Age) else cell for cell in (column.cell(obj) for column in columns)]
    shown: Any = None
    if include == "Metadata":
        metadata = rows.partial_metadata(scope, obj["metadata"])
        shown = {"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": metadata}
    elif include == "Object":
        shown = scope.served_object(obj)
    return {"cells": cells, "object": shown}


PODS = [
    pod(),
    pod(restarted="2024-05-01T12:30:00Z"),
    pod("<&>"),
    pod(annotations={"a": "<b>\u2028", "secret": "x"}),
    pod(labels={"app": "x"}, deletionTimestamp=CREATED),
    pod(creationTimestamp=None),
    pod(managedFields=[{"fieldsV1": {'},"spec":{': {}, '"metadata":{': {}}}]),
]


@pytest.mark.parametrize("include", ["None", "Metadata", "Object"])
@pytest.mark.parametrize("strategy", [Strategy(), Hiding()])
@pytest.mark.parametrize("obj", PODS)
def test_rows_are_the_same_made_or_found(obj: dict[str, Any], strategy: Strategy, include: str, at: At) -> None:
    scope, entry = scope_of(strategy), entry_of(obj)
    for seconds in (5, 2 * 3600, 3 * DAY, 900 * DAY):
        at.seconds = times.parse_time(CREATED).seconds + seconds
        expected = escape_html(orjson.dumps(row_of(scope, COLUMNS, entry, include)))
        maker = RowMaker(scope, COLUMNS, "v1", include)
        assert maker.make(entry) == expected
        found = maker.find(entry)
        hides = strategy.hidden_annotations and "annotations" in obj["metadata"]
        if include == "Object" or (include == "Metadata" and hides):
            assert found is None
        else:
            assert found == expected
    assert found is None or RowMaker(scope, COLUMNS, "v1", include).find(entry) == expected


def test_ages_are_of_now_and_not_of_when_the_row_was_made(at: At) -> None:
    entry = entry_of(pod(restarted="2024-05-01T12:00:00Z"))
    RowMaker(scope_of(), COLUMNS, "v1", "None").make(entry)
    at.seconds += 90
    cells = orjson.loads(RowMaker(scope_of(), COLUMNS, "v1", "None").find(entry) or b"")["cells"]
    assert cells[3:5] == ["3 (90s ago)", "90s"]
    at.seconds -= 3600
    cells = orjson.loads(RowMaker(scope_of(), COLUMNS, "v1", "None").find(entry) or b"")["cells"]
    assert cells[3:5] == ["3 (<invalid> ago)", "<invalid>"]


def test_rows_that_say_when_something_is_due_are_made_each_time(at: At) -> None:
    due = Column("Due", "string", lambda _: due_at("2024-05-01T12:01:00Z"))
    maker, entry = RowMaker(scope_of(), (NAME, due, AGE), "v1", "None"), entry_of(pod())
    assert orjson.loads(maker.make(entry))["cells"] == ["web", "in 60s", "0s"]
    at.seconds += 90
    assert maker.find(entry) is None
    later = RowMaker(scope_of(), (NAME, due, AGE), "v1", "None")
    assert orjson.loads(later.make(entry))["cells"] == ["web", "30s ago", "90s"]


def test_words_around_an_age_and_conditions_are_encoded_like_other_text(at: At) -> None:
    class Told(Strategy):
        def row_conditions(self, obj: dict[str, Any]) -> list[dict[str, Any]]:
            return [{"type": "Completed", "reason": "<a>"}]

    columns = (Column("Quoted", "string", lambda _: age_of(CREATED, '"<', '>"')),)
    entry, scope = entry_of(pod()), scope_of(Told())
    made = RowMaker(scope, columns, "v1", "None").make(entry)
    expected = {"cells": ['"<0s>"'], "conditions": [{"type": "Completed", "reason": "<a>"}], "object": None}
    assert made == escape_html(orjson.dumps(expected)) == RowMaker(scope, columns, "v1", "None").find(entry)


def test_long_rows_and_rows_of_varying_columns_are_not_kept() -> None:
    long, plain = entry_of(pod("x" * 2000)), entry_of(pod())
    assert len(RowMaker(scope_of(), (NAME,), "v1", "None").make(long)) > 2000
    RowMaker(scope_of(), (NAME,), "v1", "None", keep=False).make(plain)
    assert long.passing is None and plain.passing is None


def test_a_change_of_columns_or_form_leaves_nothing_stale() -> None:
    entry, first, second = entry_of(pod()), (NAME,), (NAME, COLUMNS[2])
    RowMaker(scope_of(), first, "v1", "Metadata").make(entry)
    assert RowMaker(scope_of(), second, "v1", "None").find(entry) is None
    assert RowMaker(scope_of(form="g"), first, "v1", "Metadata").find(entry) is None
    made = RowMaker(scope_of(form="g"), second, "v1", "Metadata").make(entry)
    assert RowMaker(scope_of(form="g"), second, "v1", "Metadata").find(entry) == made


def test_custom_objects_are_read_in_the_served_version() -> None:
    served = b'{"apiVersion":"x/v2","kind":"X","spec":{},"metadata":{"name":"served","a":1.5}}'
    scope, entry = scope_of(render=lambda _: served, keeps_type=True), Entry("/a", b'{"metadata":{"name":"hub"}}', 1)
    maker = RowMaker(scope, (NAME,), "v1beta1", "Metadata")
    made = maker.make(entry)
    assert orjson.loads(made) == {
        "cells": ["served"],
        "object": {
            "kind": "PartialObjectMetadata",
            "apiVersion": "meta.k8s.io/v1beta1",
            "metadata": {"name": "served", "a": 1.5},
        },
    }
    assert maker.find(entry) == made


@pytest.mark.parametrize("obj", PODS)
def test_metadata_alone(obj: dict[str, Any]) -> None:
    entry = entry_of(obj)
    maker = MetadataMaker(scope_of(), "v1", lambda entry: entry.data, "meta")
    assert maker.find(entry) is None
    made = maker.make(entry)
    head = {"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1"}
    assert made == escape_html(orjson.dumps({**head, "metadata": obj["metadata"]}))
    assert maker.find(entry) == made


@pytest.mark.parametrize("found", [False, True])
async def test_others_get_their_turns_while_many_are_made(found: bool) -> None:
    """However many lists are made at a time: they share the places of a turn."""
    entries = [Entry(f"/{number}", b"", 1) for number in range(2 * PLACES * rows._MADE_A_TURN)]
    passed = 0

    async def other() -> None:
        nonlocal passed
        while True:
            await asyncio.sleep(0)
            passed += 1

    task = asyncio.create_task(other())
    key = [entry.key.encode() for entry in entries]
    lists = (make_all(entries, lambda e: e.key.encode() if found else None, lambda e: e.key.encode()) for _ in range(5))
    assert await asyncio.gather(*lists) == [key] * 5
    task.cancel()
    assert passed < 5 if found else passed >= 9
