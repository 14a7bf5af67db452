"""The small rules that validation of built-in kinds is made of.

Each takes a value, the path of the struct that holds it, the field's name and the list of errors. The field's own path
is made only when there is something to say, so a valid object costs one comparison a rule:

    errs: list[FieldError] = []
    non_negative(spec.get("replicas", 0), path, "replicas", errs)
    one_of(spec.get("type", ""), ("ClusterIP", "NodePort"), path, "type", errs)
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import Any, Final

from pilothouse.machinery import quantity
from pilothouse.machinery.field_errors import FieldError, Path, invalid, not_supported, required

NEGATIVE: Final = "must be greater than or equal to 0"
NOT_POSITIVE: Final = "must be greater than zero"
IMMUTABLE: Final = "field is immutable"
_FINALIZERS: Final = ("kubernetes", "orphan", "foregroundDeletion")

Check = Callable[[str], list[str]]


def repeats(values: Iterable[Hashable]) -> set[int]:
    """The positions of values that stood before, found in one pass: lists may be as long as a request."""
    seen: set[Hashable] = set()
    found: set[int] = set()
    for position, value in enumerate(values):
        if value in seen:
            found.add(position)
        seen.add(value)
    return found


def non_negative(value: int, path: Path, name: str, errs: list[FieldError]) -> None:
    """Zero or more."""
    if value < 0:
        errs.append(invalid(path.child(name), value, NEGATIVE))


def positive(value: int, path: Path, name: str, errs: list[FieldError]) -> None:
    """One or more."""
    if value <= 0:
        errs.append(invalid(path.child(name), value, NOT_POSITIVE))


def one_of(value: str, supported: Sequence[str], path: Path, name: str, errs: list[FieldError]) -> None:
    """A member of an enumeration; ``supported`` is listed in the message in its order."""
    if value not in supported:
        errs.append(not_supported(path.child(name), value, supported))


def one_of_required(
    value: str, supported: Sequence[str], path: Path, name: str, errs: list[FieldError], *, plain: bool = False
) -> None:
    """A member of an enumeration that may not be left open; ``plain`` where it is shown as any text."""
    if not value:
        errs.append(required(path.child(name), ""))
    elif value not in supported:
        errs.append(not_supported(path.child(name), value, supported, plain=plain))


def present(value: Any, path: Path, name: str, errs: list[FieldError], detail: str = "") -> bool:
    """Neither missing nor empty; tells whether it is there."""
    if not value:
        errs.append(required(path.child(name), detail))
        return False
    return True


def well_formed(value: str, check: Check, path: Path, name: str, errs: list[FieldError]) -> None:
    """A text in a format of ``machinery.names``; every error is an error of its own."""
    errs += [invalid(path.child(name), value, message) for message in check(value)]


def unchanged(new: Any, old: Any, path: Path, name: str, errs: list[FieldError]) -> None:
    """A field that is set once and for all."""
    if new != old:
        errs.append(invalid(path.child(name), new, IMMUTABLE))


def standard_finalizers(metadata: dict[str, Any], errs: list[FieldError]) -> None:
    """Finalizers are qualified or the system's own: a rule of most built-in kinds on top of those for all objects."""
    for position, name in enumerate(metadata.get("finalizers") or ()):
        if "/" not in name and name not in _FINALIZERS:
            why = "name is neither a standard finalizer name nor is it fully qualified"
            errs.append(invalid(Path("metadata").child("finalizers").index(position), name, why))


def in_range(value: int, least: int, most: int, path: Path, name: str, errs: list[FieldError]) -> None:
    """A number between two limits, both allowed."""
    if not least <= value <= most:
        errs.append(invalid(path.child(name), value, f"must be between {least} and {most}, inclusive"))


def non_negative_quantity(text: str, path: Path, errs: list[FieldError]) -> None:
    """An amount of zero or more; ``path`` is the amount's own."""
    if text.startswith("-") and quantity.parse(text).sign < 0:
        errs.append(invalid(path, text, NEGATIVE))
