"""How columns of storage kinds are made."""

from __future__ import annotations

from typing import Any

from pilothouse.apis.strategy import Doc
from pilothouse.machinery.objects import Object


def of_spec(name: str, otherwise: Any) -> Any:
    """The cell of a field of the spec, with what to show where it is not set."""

    def cell(obj: Object) -> Any:
        return obj["spec"].get(name, otherwise)

    return cell


def doc(kind: str, field: str) -> Doc:
    """The description of a field of a storage kind."""
    return Doc(f"storage.v1.{kind}", field)
