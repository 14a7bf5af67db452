"""Watches that want the same bytes get the same bytes."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from pilothouse.endpoints.negotiation import JSON, METADATA, PROTOBUF, TABLE, Media
from pilothouse.endpoints.query import Query
from pilothouse.endpoints.request_info import resolve
from pilothouse.endpoints.watch import encoding
from pilothouse.endpoints.watch.encoding import EventEncoder
from pilothouse.endpoints.watch.websocket import message_framing
from pilothouse.net.framing import CHUNKED, UNFRAMED, Framing
from pilothouse.storage.cacher import Entry, WatchEvent

DATA = b'{"metadata":{"name":"a"},"data":{"x":"y"}}'
LINE = b'{"type":"ADDED","object":{"kind":"ConfigMap","apiVersion":"v1",' + DATA[1:] + b"}\n"


def scope_of(form: str = "f") -> Any:
    head = b'{"kind":"ConfigMap","apiVersion":"v1",'
    strategy = SimpleNamespace(hidden_annotations=())
    return SimpleNamespace(form=form, head=head, render=None, strategy=strategy)


def event_of(data: bytes = DATA) -> WatchEvent:
    return WatchEvent("ADDED", Entry("/a", data, 1))


def encoder(scope: Any, framing: Framing, format: str = JSON, transform: str = "") -> EventEncoder:
    media = Media(format, transform=transform, version="v1")
    request: Any = SimpleNamespace(info=resolve("GET", "/api/v1/namespaces/default/configmaps", Query("watch=1")))
    return encoding.encoder_for(scope, request, media, framing)


@pytest.mark.parametrize("transform", ["", METADATA])
@pytest.mark.parametrize("framing", [CHUNKED, UNFRAMED, message_framing(JSON)])
def test_equal_wishes_share_one_encoding(framing: Framing, transform: str) -> None:
    scope, event = scope_of(), event_of()
    first = encoder(scope, framing, transform=transform)(event)
    assert encoder(scope, framing, transform=transform)(event) is first


def test_unequal_wishes_share_nothing() -> None:
    event = event_of()
    wishes = [
        encoder(scope_of(form), framing, transform=transform)
        for form in ("f", "g")
        for framing in (CHUNKED, UNFRAMED, message_framing(JSON), message_framing(PROTOBUF))
        for transform in ("", METADATA)
    ]
    encoded = [encode(event) for encode in wishes]
    assert len({id(data) for data in encoded}) == len(wishes)
    assert encoded[0] == b"%x\r\n" % len(LINE) + LINE + b"\r\n"
    assert encoded[2] == LINE


def test_tables_are_not_shared(monkeypatch: pytest.MonkeyPatch) -> None:
    def table_of(*_: Any) -> dict[str, Any]:
        return {"columnDefinitions": ["all"]}

    monkeypatch.setattr(encoding, "table_of", table_of)
    event, first = event_of(), encoder(scope_of(), UNFRAMED, transform=TABLE)
    assert b"all" in first(event) and b"all" not in first(event)
    assert b"all" in encoder(scope_of(), UNFRAMED, transform=TABLE)(event)
