"""How an option is declared: once, as a field of its group's dataclass.

    @dataclass
    class SecureServingOptions(FlagGroup):
        section = "secure serving"
        secure_port: int = flag("secure-port", INT, 6443, "Port to serve HTTPS on.")

The declaration gives the flag's name, type, default and help; parsing and ``--help`` are made from it. Whether a flag
has an effect is not declared: ``idle_flags`` lists those that nothing reads, and is made from the source.
"""

from __future__ import annotations

from collections.abc import Set
from dataclasses import dataclass, field, fields, replace
from typing import Any, ClassVar, TypeVar, cast

from pilothouse.options.kinds import Kind

T = TypeVar("T")
_METADATA_KEY = "flag"


@dataclass(frozen=True, slots=True)
class Flag:
    """One declared flag. ``attribute`` is the field that holds its value."""

    name: str
    kind: Kind[Any]
    default: Any
    help: str
    short: str = ""
    deprecated: str = ""
    hidden: bool = False
    attribute: str = ""
    moot: str = ""
    """Why there is nothing for it to change, here or in kube-apiserver."""

    @property
    def title(self) -> str:
        """The flag as error messages name it: ``--secure-port`` or ``-v, --v``."""
        return f"-{self.short}, --{self.name}" if self.short else f"--{self.name}"


def flag(
    name: str,
    kind: Kind[T],
    default: T,
    help: str,
    *,
    short: str = "",
    deprecated: str = "",
    hidden: bool = False,
    moot: str = "",
) -> T:
    """Declare one option; the result is the dataclass field that holds it."""
    declared = Flag(name, kind, default, help, short, deprecated, hidden, moot=moot)
    metadata = {_METADATA_KEY: declared}
    if isinstance(default, dict):
        return cast(T, field(default_factory=default.copy, metadata=metadata))
    return field(default=default, metadata=metadata)


@dataclass
class FlagGroup:
    """A section of the command line; every option of the group is a field made by ``flag``."""

    section: ClassVar[str] = ""

    def validate(self, given: Set[str]) -> list[str]:
        """Everything wrong with the group's values; ``given`` names the flags set explicitly."""
        return []

    @classmethod
    def flags(cls) -> list[Flag]:
        """The group's flags in the order declared."""
        found = []
        for each in fields(cls):
            declared: Flag | None = each.metadata.get(_METADATA_KEY)
            if declared is not None:
                found.append(_with_attribute(declared, each.name))
        return found


def _with_attribute(declared: Flag, attribute: str) -> Flag:
    return replace(declared, attribute=attribute)
