"""The structural part of a schema: which fields there are, what may be kept beyond them, and their defaults.

Nodes are made once for each version of a definition from its (validated) JSON and never change. Value validations
(limits, patterns, combinations) are not here: ``values`` compiles them from the same JSON.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

Schema = dict[str, Any]


class _Missing:
    """Marks a node without a default: null is a default too, though one that has no effect."""

    def __repr__(self) -> str:
        return "NO_DEFAULT"


NO_DEFAULT: Final = _Missing()


class Node:
    """What a schema says about one place of an object."""

    __slots__ = (
        "additional", "closes_additional", "default", "embedded", "has_defaults", "has_embedded", "has_formats",
        "has_lists",
        "int_or_string", "items", "list_keys", "list_type", "map_type", "nullable", "preserves", "properties", "source",
        "type",
    )  # fmt: skip

    def __init__(self, source: Schema) -> None:
        self.source = source
        self.type: str = source.get("type", "")
        self.nullable = bool(source.get("nullable"))
        self.preserves = bool(source.get("x-kubernetes-preserve-unknown-fields"))
        self.embedded = bool(source.get("x-kubernetes-embedded-resource"))
        self.int_or_string = bool(source.get("x-kubernetes-int-or-string"))
        self.list_type: str = source.get("x-kubernetes-list-type") or ""
        self.list_keys: tuple[str, ...] = tuple(source.get("x-kubernetes-list-map-keys") or ())
        self.map_type: str = source.get("x-kubernetes-map-type") or ""
        default = source.get("default")
        self.default: Any = NO_DEFAULT if default is None else default
        self.properties: dict[str, Node] = {k: Node(v) for k, v in (source.get("properties") or {}).items()}
        items = source.get("items")
        self.items: Node | None = Node(items) if isinstance(items, dict) else None
        additional = source.get("additionalProperties")
        self.additional: Node | None = Node(additional) if isinstance(additional, dict) else None
        self.closes_additional = additional is not None and self.additional is None
        """Other fields are allowed but nothing is known about them: what is inside objects there is dropped."""
        below = list(self.children())
        self.has_defaults: bool = any(child.default is not NO_DEFAULT or child.has_defaults for child in below)
        self.has_embedded: bool = self.embedded or any(child.has_embedded for child in below)
        self.has_formats: bool = bool(source.get("format")) or any(child.has_formats for child in below)
        """Lists pass for strings that have a format: what is valid need not fit the types."""
        self.has_lists: bool = self.list_type in ("set", "map") or any(child.has_lists for child in below)

    def children(self) -> Iterator[Node]:
        """The nodes right below."""
        yield from self.properties.values()
        if self.items is not None:
            yield self.items
        if self.additional is not None:
            yield self.additional

    def below(self, name: str) -> Node | None:
        """The node of a field, by its name or for any name."""
        return self.properties.get(name) or self.additional
