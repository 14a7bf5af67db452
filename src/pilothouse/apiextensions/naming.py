"""Names of custom resources: within a group no two definitions may have the same plural, singular, short name or kind.

A definition asks for names in its spec; what it got is in its status. A name that another one has is a conflict, and
the old name is kept. When names become free all definitions of the group are looked at again.
"""

from __future__ import annotations

from collections.abc import Iterable

from pilothouse.apis.apiextensions.custom_resource_definition.definitions import (
    ESTABLISHED,
    NAMES_ACCEPTED,
    condition,
    set_condition,
)
from pilothouse.machinery.field_errors import aggregate
from pilothouse.machinery.go_quote import quote
from pilothouse.machinery.objects import Object

_REASONS = {"plural": "Plural", "singular": "Singular", "kind": "Kind", "listKind": "ListKind"}


class TakenNames:
    """The names that other definitions of a group have got."""

    def __init__(self, others: Iterable[Object]) -> None:
        self.resources: set[str] = set()
        self.kinds: set[str] = set()
        for crd in others:
            names = (crd.get("status") or {}).get("acceptedNames") or {}
            self.resources |= {names.get("plural", ""), names.get("singular", ""), *(names.get("shortNames") or ())}
            self.kinds |= {names.get("kind", ""), names.get("listKind", "")}


def accept_names(crd: Object, taken: TakenNames, now: str) -> bool:
    """Settle a definition's names and the conditions that follow from them, in place; whether anything changed."""
    wanted, status = crd["spec"]["names"], crd.setdefault("status", {})
    had = status.get("acceptedNames") or {"plural": "", "kind": ""}
    if wanted == had:
        return False
    got, reason, message = _settle(wanted, had, taken)
    accepted = {
        "type": NAMES_ACCEPTED,
        "status": "False" if reason else "True",
        "reason": reason or "NoConflicts",
        "message": message or "no conflicts found",
    }
    known = condition(crd, NAMES_ACCEPTED) or {}
    if got == had and all(known.get(key) == accepted[key] for key in ("status", "reason", "message")):
        return False
    status["acceptedNames"] = got
    set_condition(crd, accepted, now)
    established = condition(crd, ESTABLISHED) or {
        "type": ESTABLISHED, "status": "False", "reason": "NotAccepted", "message": "not all names are accepted",
    }  # fmt: skip
    if established["status"] != "True" and not reason:
        established = {
            "type": ESTABLISHED, "status": "False", "reason": "Installing",
            "message": "the initial names have been accepted",
        }  # fmt: skip
    set_condition(crd, established, now)
    return True


def _settle(wanted: Object, had: Object, taken: TakenNames) -> tuple[Object, str, str]:
    """The names to have, and the last conflict's reason and message."""
    got, reason, message = dict(had), "", ""
    for key in ("plural", "singular", "shortNames", "kind", "listKind"):
        names = taken.kinds if key in ("kind", "listKind") else taken.resources
        if key == "shortNames":
            new = set(wanted.get(key) or ()).difference(had.get(key) or ())
            used = [name for name in wanted.get(key) or () if name in new and name in names]
            if used:
                reason, message = "ShortNamesConflict", aggregate(f"{quote(name)} is already in use" for name in used)
                continue
        elif wanted.get(key, "") != had.get(key, "") and wanted.get(key, "") in names:
            reason, message = f"{_REASONS[key]}Conflict", f"{quote(wanted.get(key, ''))} is already in use"
            continue
        _take(got, wanted, key)
    _take(got, wanted, "categories")
    order = ("plural", "singular", "shortNames", "kind", "listKind", "categories")
    return {key: got[key] for key in order if key in got}, reason, message


def _take(got: Object, wanted: Object, key: str) -> None:
    if wanted.get(key):
        got[key] = wanted[key]
    elif key not in ("plural", "kind"):
        got.pop(key, None)
