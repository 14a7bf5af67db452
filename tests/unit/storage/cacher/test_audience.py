"""Who waits for one value of a field or label hears what he would without, and is asked about nothing else."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from pilothouse.storage.cacher.audience import Audience
from pilothouse.storage.cacher.changes import Change
from pilothouse.storage.cacher.entries import Entry
from pilothouse.storage.cacher.traits import Attribute, Trait

PODS = "/registry/pods/"
FIELD, LABEL = "spec.nodeName", "node"


class Codec:
    def restamp(self, entry: Entry, revision: int) -> Entry:
        return Entry(entry.key, b"", revision, entry.namespace, entry.name, entry.labels, entry.fields)


class Seat:
    """A watcher of pods of a node that notes what it is asked about and what it is offered."""

    def __init__(self, node: str, trait: Trait | None, prefix: str = PODS) -> None:
        self.prefix, self.trait, self._node = prefix, trait, node
        self.asked: list[str] = []
        self.offered: list[tuple[str, str]] = []

    def matches(self, entry: Entry) -> bool:
        self.asked.append(entry.name)
        return entry.fields.get(FIELD, "") == self._node

    def offer(self, event: Any) -> None:
        self.offered.append((event.type, event.entry.name))


def pod(name: str, node: str | None, revision: int) -> Entry | None:
    if node is None:
        return None
    fields, labels = ({FIELD: node}, {LABEL: node}) if node else ({}, {})
    return Entry(f"{PODS}ns/{name}", b"", revision, "ns", name, labels, fields)


def happen(audience: Audience, history: list[tuple[str, str | None]]) -> None:
    known: dict[str, Entry | None] = {}
    for revision, (name, node) in enumerate(history, 1):
        entry, previous = pod(name, node, revision), known.get(name)
        if entry is not None or previous is not None:
            codec: Any = Codec()
            audience.dispatch(Change(f"{PODS}ns/{name}", revision, entry, previous, codec, 0.0))
        known[name] = entry


def of_field(node: str) -> Trait:
    return Trait(Attribute(FIELD), node)


def of_label(node: str) -> Trait:
    return Trait(Attribute(LABEL, is_label=True), node)


nodes = st.sampled_from(["n1", "n2", ""])


@given(st.lists(st.tuples(st.sampled_from(["a", "b"]), st.none() | nodes), max_size=12))
def test_the_same_is_heard_with_a_trait_as_without(history: list[tuple[str, str | None]]) -> None:
    audience = Audience(PODS)
    traits = [of_field("n1"), of_field("n2"), of_field(""), of_label("n1"), of_label("n2")]
    pairs = [(Seat(trait.value, trait, prefix), Seat(trait.value, None, prefix)) for trait in traits
             for prefix in (PODS, f"{PODS}ns/")]  # fmt: skip
    for seat in (seat for pair in pairs for seat in pair):
        audience.add(seat)  # type: ignore[arg-type]
    happen(audience, history)
    for found, plain in pairs:
        assert found.offered == plain.offered
        assert len(found.asked) <= len(plain.asked)


def test_nobody_is_asked_about_what_cannot_concern_him() -> None:
    audience = Audience(PODS)
    seats: list[Any] = [Seat(f"n{number}", of_field(f"n{number}")) for number in range(100)]
    named: Any = Seat("n1", Trait(Attribute("metadata.name"), "a"))
    for seat in [*seats, named]:
        audience.add(seat)
    assert len(audience) == 101
    assert set(audience) == {*seats, named}
    happen(audience, [("a", "n1"), ("b", "n2"), ("b", "n3")])
    assert [number for number, seat in enumerate(seats) if seat.asked] == [1, 2, 3]
    assert named.offered == [("ADDED", "a")]
    for seat in [*seats, named, SimpleNamespace(prefix=PODS, trait=Trait(Attribute("metadata.namespace"), "x"))]:
        audience.discard(seat)
    assert len(audience) == 0 and audience._groups == {}


def test_who_comes_or_goes_between_changes_is_noticed() -> None:
    audience, codec = Audience(PODS), Codec()

    def change(revision: int) -> None:
        made: Any = codec
        audience.dispatch(Change(f"{PODS}ns/a", revision, pod("a", "n1", revision), None, made, 0.0))

    everywhere, here, elsewhere = Seat("n1", None), Seat("n1", None, f"{PODS}ns/"), Seat("n1", None, f"{PODS}other/")
    seats: Any = (everywhere, here, elsewhere, Seat("n1", None, f"{PODS}ns/a"))
    for revision, seat in enumerate(seats):
        audience.add(seat)
        change(revision)
    for seat in seats:
        audience.discard(seat)
        change(0)
    assert [len(seat.offered) for seat in seats] == [4, 4, 0, 4]
