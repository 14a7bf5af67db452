"""The documents in the manifest files of a folder, in the order of the files' names."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from pilothouse.machinery.go_quote import quote

_ENDINGS: Final = frozenset({".yaml", ".yml", ".json"})
_SEPARATOR: Final = re.compile(rb"^---.*\n?", re.MULTILINE)


class ManifestError(ValueError):
    """What is wrong with manifests."""


@dataclass(frozen=True, slots=True)
class Document:
    """One document and its file."""

    path: str
    data: bytes


def read_documents(folder: str) -> tuple[list[Document], str]:
    """All documents, and a hash of the files; empty when there is nothing in them. Raises ManifestError."""
    digest = hashlib.sha256()
    found: list[Document] = []
    filled = False
    for path in _files(folder):
        try:
            data = path.read_bytes()
        except OSError as error:
            raise ManifestError(f"failed to read file {quote(str(path))}: {describe(error)}") from None
        if data:
            digest.update(data + b"\0")
            filled = True
            found += [Document(str(path), part) for part in _split(data)]
    return found, f"sha256:{digest.hexdigest()}" if filled else ""


def describe(error: OSError, what: str = "open") -> str:
    """A failure to read as Go tells it."""
    return f"{what} {error.filename}: {(error.strerror or '').lower()}"


def _files(folder: str) -> list[Path]:
    try:
        entries = sorted(Path(folder).iterdir(), key=lambda path: path.name)
    except OSError as error:
        raise ManifestError(f"failed to read manifest directory {quote(folder)}: {describe(error)}") from None
    return [path for path in entries if path.suffix.lower() in _ENDINGS and not path.is_dir()]


def _split(data: bytes) -> Iterator[bytes]:
    for part in _SEPARATOR.split(data):
        if part := part.strip():
            yield part
