"""The entries of ``managedFields``, as stored and as sets by manager.

A manager is told apart by name, operation and subresource, and when it updates also by version: an applier has one
entry whatever version it applies in. Entries are written sorted by operation, time, name, version and subresource. An
entry that nothing happened to is passed on as it came.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple

from pilothouse.machinery.go_quote import quote
from pilothouse.machinery.structured import field_sets
from pilothouse.machinery.structured.ownership import Managers, Owned
from pilothouse.machinery.structured.paths import PathError, write_json
from pilothouse.machinery.times import parse_time

APPLY = "Apply"
UPDATE = "Update"

Entry = dict[str, Any]


class InvalidEntries(ValueError):
    """managedFields that cannot be read."""


class Manager(NamedTuple):
    """Who owns fields. ``version`` is empty for appliers."""

    name: str
    operation: str
    version: str
    subresource: str

    def sort_text(self) -> str:
        """What messages sort managers by."""
        shown = {
            "manager": self.name,
            "operation": self.operation,
            "apiVersion": self.version,
            "subresource": self.subresource,
        }
        return write_json({key: value for key, value in shown.items() if value})


@dataclass(slots=True)
class Managed:
    """All managers of an object: what they own and when they last wrote."""

    managers: Managers = field(default_factory=dict)
    times: dict[Manager, str | None] = field(default_factory=dict)
    stored: dict[Manager, Entry] = field(default_factory=dict)
    """The entries as they came."""


_TEXTS = ("manager", "operation", "apiVersion", "fieldsType", "subresource")


def are_entries(value: Any) -> bool:
    """Whether Go reads a value as entries. Where it does not, it takes an object for one that has none."""
    return isinstance(value, list) and all(map(_is_entry, value))


def _is_entry(item: Any) -> bool:
    if not isinstance(item, dict) or not all(isinstance(item.get(name, ""), str | None) for name in _TEXTS):
        return False
    try:
        return item.get("time") is None or bool(parse_time(item["time"]))
    except (TypeError, ValueError):
        return False


def manager_of_entry(entry: Entry) -> Manager:
    operation = entry.get("operation") or ""
    version = "" if operation == APPLY else entry.get("apiVersion") or ""
    return Manager(entry.get("manager") or "", operation, version, entry.get("subresource") or "")


def read_entries(entries: list[Entry] | None, *, trusted: bool = False) -> Managed:
    """Sets by manager. Entries that this server wrote itself are trusted to have sets in stored form."""
    managed = Managed()
    for position, entry in enumerate(entries or ()):
        _check(position, entry)
        manager = manager_of_entry(entry)
        fields = entry.get("fieldsV1") or {}
        if not trusted:
            try:
                fields = field_sets.read(fields)
            except PathError as error:
                raise InvalidEntries(f"error decoding set: {error}") from None
        managed.managers[manager] = Owned(fields, entry["apiVersion"], entry["operation"] == APPLY)
        managed.times[manager] = entry.get("time")
        managed.stored[manager] = entry
    return managed


def check_entries(entries: list[Entry] | None) -> None:
    """Raise ``InvalidEntries`` if the entries, changed by somebody else, cannot be read."""
    read_entries(entries)


def _check(position: int, entry: Entry) -> None:
    if entry.get("operation") not in (APPLY, UPDATE):
        raise InvalidEntries("operation must be `Apply` or `Update`")
    if not entry.get("apiVersion"):
        raise InvalidEntries("apiVersion must not be empty")
    kind = entry.get("fieldsType") or ""
    if not kind:
        raise InvalidEntries(f"missing fieldsType in managed fields entry {position}")
    if kind != "FieldsV1":
        raise InvalidEntries(f"invalid fieldsType {quote(kind)} in managed fields entry {position}")


def write_entries(managed: Managed) -> list[Entry]:
    """The entries as they are stored."""
    entries = [_write(manager, managed) for manager in managed.managers]
    if len(entries) > 1:
        entries.sort(key=_order)
    return entries


def _write(manager: Manager, managed: Managed) -> Entry:
    owned = managed.managers[manager]
    time = managed.times.get(manager)
    stored = managed.stored.get(manager)
    if (
        stored is not None
        and stored.get("fieldsV1") is owned.fields
        and stored.get("time") == time
        and stored["apiVersion"] == owned.version
    ):
        return stored
    entry: Entry = {"manager": manager.name} if manager.name else {}
    entry["operation"] = APPLY if owned.applied else manager.operation
    entry["apiVersion"] = owned.version
    if time is not None:
        entry["time"] = time
    entry["fieldsType"] = "FieldsV1"
    entry["fieldsV1"] = owned.fields
    if manager.subresource:
        entry["subresource"] = manager.subresource
    return entry


def _order(entry: Entry) -> tuple[str, ...]:
    return (
        entry["operation"],
        entry.get("time") or "",
        entry.get("manager", ""),
        entry["apiVersion"],
        entry.get("subresource", ""),
    )


def is_reset(entries: list[Entry] | None) -> bool:
    """Whether a client asks to forget all managers: an empty list, or one empty entry."""
    return entries is not None and (not entries or entries == [{}])
