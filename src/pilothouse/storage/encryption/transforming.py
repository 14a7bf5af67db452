"""The contract of transformers, and the chain that finds out by a prefix which of them wrote a value.

The first of a chain writes; all of them read. A value that another than the first wrote, or that was written with an
old key, is stale: it is readable, and to be written anew at the next chance.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Sequence
from typing import Final, Protocol

from pilothouse.storage.encryption.metrics import UNKNOWN_CODE

_ENCRYPTED: Final = b"k8s:enc:"


class TransformFailed(Exception):
    """A value cannot be encrypted or decrypted. The text never holds any of it; ``code`` is that of a failed call."""

    def __init__(self, message: str, code: str = UNKNOWN_CODE) -> None:
        super().__init__(message)
        self.code = code


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


Note = Callable[[str, float, str], object]
"""Is told the prefix of a transformer, the seconds it took, and the code of its failure or ``OK``."""


def note_nothing(prefix: str, seconds: float, code: str) -> None:
    """For chains that nobody counts."""


class Prefixed:
    """A chain of transformers told apart by the prefix of what they write; an empty prefix takes everything."""

    def __init__(
        self,
        transformers: Sequence[tuple[bytes, Transformer]],
        unknown: str = "no matching prefix found",
        *,
        note_sealed: Note = note_nothing,
        note_opened: Note = note_nothing,
    ) -> None:
        self._transformers = tuple(transformers)
        self._unknown = unknown
        self._note_sealed, self._note_opened = note_sealed, note_opened

    def to_storage(self, data: bytes, context: bytes) -> bytes:
        """What the first makes of it, behind its prefix."""
        prefix, transformer = self._transformers[0]
        started, code = time.perf_counter(), "OK"
        try:
            return prefix + transformer.to_storage(data, context)
        except TransformFailed as error:
            code = error.code
            raise
        finally:
            self._note_sealed(prefix.decode(), time.perf_counter() - started, code)

    def from_storage(self, data: bytes, context: bytes) -> tuple[bytes, bool]:
        """What the first that can read it makes of it."""
        errs: list[str] = []
        for position, (prefix, transformer) in enumerate(self._transformers):
            if not data.startswith(prefix):
                continue
            started = time.perf_counter()
            try:
                found, stale = transformer.from_storage(data[len(prefix) :], context)
            except TransformFailed as error:
                self._note_opened(prefix.decode(), time.perf_counter() - started, error.code)
                if prefix:
                    errs.append(str(error))
                continue
            self._note_opened(prefix.decode(), time.perf_counter() - started, "OK")
            return found, stale or position > 0
        if errs:
            raise TransformFailed(errs[0] if len(errs) == 1 else f"[{', '.join(errs)}]")
        raise TransformFailed(self._unknown)
