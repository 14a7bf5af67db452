"""Watches that want the same bytes get the same bytes; what cannot be sent at once is left to wait."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from pilothouse.endpoints.negotiation import JSON, METADATA, PROTOBUF, TABLE, Media
from pilothouse.endpoints.verbs import watch, watch_encoding
from pilothouse.endpoints.verbs.watch_encoding import EventEncoder, Framing
from pilothouse.endpoints.websocket_watch import message_framing
from pilothouse.net.writing import WriteGate, chunk, unframed
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
    return watch_encoding.encoder_for(scope, None, media, framing)  # type: ignore[arg-type]


@pytest.mark.parametrize("transform", ["", METADATA])
@pytest.mark.parametrize("framing", [chunk, unframed, message_framing(JSON)])
def test_equal_wishes_share_one_encoding(framing: Framing, transform: str) -> None:
    scope, event = scope_of(), event_of()
    first = encoder(scope, framing, transform=transform)(event)
    assert encoder(scope, framing, transform=transform)(event) is first


def test_unequal_wishes_share_nothing() -> None:
    event = event_of()
    wishes = [
        encoder(scope_of(form), framing, transform=transform)
        for form in ("f", "g")
        for framing in (chunk, unframed, message_framing(JSON), message_framing(PROTOBUF))
        for transform in ("", METADATA)
    ]
    encoded = [encode(event) for encode in wishes]
    assert len({id(data) for data in encoded}) == len(wishes)
    assert encoded[0] == b"%x\r\n" % len(LINE) + LINE + b"\r\n"
    assert encoded[2] == LINE


def test_tables_are_not_shared(monkeypatch: pytest.MonkeyPatch) -> None:
    def table_of(*_: Any) -> dict[str, Any]:
        return {"columnDefinitions": ["all"]}

    monkeypatch.setattr(watch_encoding, "table_of", table_of)
    event, first = event_of(), encoder(scope_of(), unframed, transform=TABLE)
    assert b"all" in first(event) and b"all" not in first(event)
    assert b"all" in encoder(scope_of(), unframed, transform=TABLE)(event)


class Transport:
    def is_closing(self) -> bool:
        return False


def sender_of(transport: Transport, *, slow: bool = False, form: str = "") -> watch._Sender:
    gate = WriteGate(transport)  # type: ignore[arg-type]
    gate.paused = slow
    return watch._Sender(EventEncoder(lambda event: event.entry.data, unframed, form), gate)


def test_a_piece_of_output_leaves_at_once_and_the_rest_is_left() -> None:
    transport, events = Transport(), [event_of(b"x" * (watch.PIECE // 2)) for _ in range(5)]
    assert sender_of(transport).take(events) == (transport, b"x" * watch.PIECE)
    assert len(events) == 3


def test_one_event_leaves_whole_however_large() -> None:
    transport, events = Transport(), [event_of(b"x" * (3 * watch.PIECE))]
    assert sender_of(transport).take(events) == (transport, b"x" * (3 * watch.PIECE))
    assert events == []


def test_two_senders_of_one_form_send_the_same_bytes() -> None:
    event, sent = event_of(b"abc"), []
    for _ in range(2):
        outgoing = sender_of(Transport(), form="f").take([event])
        assert outgoing is not None
        sent.append(outgoing[1])
    assert sent[0] is sent[1] is event.memo["f"]


def test_a_slow_client_is_left_everything() -> None:
    events = [event_of(), event_of()]
    assert sender_of(Transport(), slow=True).take(events) is None
    assert len(events) == 2
