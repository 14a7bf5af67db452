"""The contract of transformers, and the chain that finds out by a prefix which of them wrote a value.

The first of a chain writes; all of them read. A value that another than the first wrote, or that was written with an
old key, is stale: it is readable, and to be written anew at the next chance.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Final, Protocol

_ENCRYPTED: Final = b"k8s:enc:"


class TransformFailed(Exception):
    """A value cannot be encrypted or decrypted. The text never holds any of it."""


class KeyMissing(Exception):
    """A key has to be asked for elsewhere first; try again after ``fetch``, which raises ``TransformFailed``."""

    def __init__(self, fetch: Callable[[], Awaitable[None]]) -> None:
        super().__init__("a key has to be fetched")
        self.fetch = fetch


class Transformer(Protocol):
    """Turns values into what is stored and back. ``context`` is the key of the object; values do not fit elsewhere."""

    def to_storage(self, data: bytes, context: bytes) -> bytes:
        """Encrypt. Raises TransformFailed."""
        ...

    def from_storage(self, data: bytes, context: bytes) -> tuple[bytes, bool]:
        """Decrypt; also whether the value is stale. Raises TransformFailed and KeyMissing."""
        ...


class Identity:
    """Keeps values as they are, and refuses to take encrypted ones for plain."""

    def to_storage(self, data: bytes, context: bytes) -> bytes:
        """The same."""
        return data

    def from_storage(self, data: bytes, context: bytes) -> tuple[bytes, bool]:
        """The same."""
        if data.startswith(_ENCRYPTED):
            raise TransformFailed("identity transformer tried to read encrypted data")
        return data, False


class Prefixed:
    """A chain of transformers told apart by the prefix of what they write; an empty prefix takes everything."""

    def __init__(
        self, transformers: Sequence[tuple[bytes, Transformer]], unknown: str = "no matching prefix found"
    ) -> None:
        self._transformers = tuple(transformers)
        self._unknown = unknown

    def to_storage(self, data: bytes, context: bytes) -> bytes:
        """What the first makes of it, behind its prefix."""
        prefix, transformer = self._transformers[0]
        return prefix + transformer.to_storage(data, context)

    def from_storage(self, data: bytes, context: bytes) -> tuple[bytes, bool]:
        """What the first that can read it makes of it."""
        faults: list[str] = []
        for position, (prefix, transformer) in enumerate(self._transformers):
            if not data.startswith(prefix):
                continue
            try:
                found, stale = transformer.from_storage(data[len(prefix) :], context)
            except TransformFailed as fault:
                if prefix:
                    faults.append(str(fault))
                continue
            return found, stale or position > 0
        if faults:
            raise TransformFailed(faults[0] if len(faults) == 1 else f"[{', '.join(faults)}]")
        raise TransformFailed(self._unknown)
