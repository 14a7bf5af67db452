"""Operations by path, and the parameters that all operations of a path have in common."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from pilothouse.openapi.operations import Operation
from pilothouse.openapi.parameters import Parameter


def by_path(operations: Iterable[Operation]) -> list[tuple[str, list[Operation]]]:
    """Paths in order, each with its operations."""
    found: dict[str, list[Operation]] = {}
    for operation in operations:
        found.setdefault(operation.path, []).append(operation)
    return sorted(found.items())


def split_shared(operations: list[Operation]) -> tuple[list[Parameter], list[list[Parameter]]]:
    """What all operations share by name and place, and what each has of its own, sorted."""
    counts = Counter(parameter[:2] for operation in operations for parameter in operation.parameters)
    common = {key for key, count in counts.items() if count == len(operations)}
    shared = {p[:2]: p for operation in operations for p in operation.parameters if p[:2] in common}
    own = [sorted(p for p in operation.parameters if p[:2] not in common) for operation in operations]
    return sorted(shared.values()), own
