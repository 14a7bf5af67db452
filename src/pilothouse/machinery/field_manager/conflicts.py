"""The answer to an apply that others' fields stand against."""

from __future__ import annotations

from pilothouse.machinery import errors
from pilothouse.machinery.errors import StatusError
from pilothouse.machinery.field_manager.entries import UPDATE, Manager
from pilothouse.machinery.go_quote import quote
from pilothouse.machinery.structured.paths import Path, show_path


def show_manager(manager: Manager) -> str:
    text = quote(manager.name)
    if manager.subresource:
        text += f" with subresource {quote(manager.subresource)}"
    return f"{text} using {manager.version}" if manager.operation == UPDATE else text


def conflict_error(conflicts: list[tuple[Manager, Path]]) -> StatusError:
    """The 409, with one cause a field."""
    conflicts = sorted(conflicts, key=lambda conflict: conflict[0].sort_text())
    causes = [
        {
            "reason": "FieldManagerConflict",
            "message": f"conflict with {show_manager(manager)}",
            "field": show_path(path),
        }
        for manager, path in conflicts
    ]
    return errors.apply_conflict(_message(conflicts), causes)


def _message(conflicts: list[tuple[Manager, Path]]) -> str:
    if len(conflicts) == 1:
        manager, path = conflicts[0]
        return f"Apply failed with 1 conflict: conflict with {show_manager(manager)}: {show_path(path)}"
    lines: list[str] = []
    previous: Manager | None = None
    for manager, path in conflicts:
        if manager != previous:
            lines.append(f"conflicts with {show_manager(manager)}:")
            previous = manager
        lines.append(f"- {show_path(path)}")
    return f"Apply failed with {len(conflicts)} conflicts: " + "\n".join(lines)
