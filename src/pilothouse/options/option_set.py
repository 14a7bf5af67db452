"""A set of options: flag groups as attributes, parsed from one command line.

Each program has its own class: ``ServerOptions`` is that of kube-apiserver, aggregated servers have a smaller one.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Hashable
from dataclasses import dataclass, fields
from functools import cache
from typing import Any, cast

from pilothouse.options.declaring import Flag, FlagGroup
from pilothouse.options.kinds import STRING_ARRAY, STRINGS
from pilothouse.options.start_errors import explain


@dataclass
class OptionSet(ABC):
    """Subclasses have one attribute for every flag group, in the order of ``--help``."""

    given: frozenset[str] = frozenset()
    """The flags on the command line."""

    def group(self, name: str) -> FlagGroup:
        """The group behind an attribute's name."""
        found = getattr(self, name)
        assert isinstance(found, FlagGroup)
        return found

    def shown(self) -> dict[str, str]:
        """Every flag and its present value as text."""
        values = {f.name: (f, getattr(self.group(group), f.attribute)) for group, f in flags_of(type(self)).values()}
        return {name: _shown(f, value) for name, (f, value) in values.items()}

    def explain(self, error: Exception) -> str:
        """Why a start failed, with the flag that is the matter and what to do, in a line."""
        return explain(error, self.shown(), self.given)

    @abstractmethod
    def notice(self, text: str) -> None:
        """Keep something the user should know: worth a warning, no error."""


def _shown(declared: Flag, value: Any) -> str:
    if isinstance(value, str):
        return value
    return declared.kind.show(value) or ("[]" if declared.kind in (STRINGS, STRING_ARRAY) else "")


def groups_of(kind: type[OptionSet]) -> dict[str, type[FlagGroup]]:
    """Attribute name → group class, in the order of ``--help``."""
    return _groups(cast("Hashable", kind))


def flags_of(kind: type[OptionSet]) -> dict[str, tuple[str, Flag]]:
    """Flag name → (attribute of its group, declaration)."""
    return _flags(cast("Hashable", kind))


@cache
def _groups(kind: Any) -> dict[str, type[FlagGroup]]:
    groups: dict[str, type[FlagGroup]] = {}
    for each in fields(kind):
        factory: Any = each.default_factory
        if isinstance(factory, type) and issubclass(factory, FlagGroup):
            groups[each.name] = factory
    return groups


@cache
def _flags(kind: Any) -> dict[str, tuple[str, Flag]]:
    return {flag.name: (name, flag) for name, group in _groups(kind).items() for flag in group.flags()}
