"""Objects from YAML and JSON files: one file, many documents, whole folders."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import yaml

from pilothouse.machinery.objects import Object

_SUFFIXES = (".yaml", ".yml", ".json")


def read_manifests(*paths: str | Path) -> list[Object]:
    """Every object of the files, those of folders (and of the folders in them) sorted by name; lists are unfolded."""
    return [obj for path in paths for file in _files(Path(path)) for obj in _objects(file)]


def _files(path: Path) -> Iterator[Path]:
    if path.is_dir():
        yield from sorted(each for each in path.rglob("*") if each.suffix in _SUFFIXES and each.is_file())
    else:
        yield path


def _objects(path: Path) -> Iterator[Object]:
    try:
        documents = list(yaml.safe_load_all(path.read_text()))
    except yaml.YAMLError as error:
        raise ValueError(f"{path} is no YAML: {error}") from None
    for document in documents:
        if document is None:
            continue
        if not isinstance(document, dict) or "kind" not in document:
            raise ValueError(f"{path} has a document that is no object with a kind")
        if document["kind"].endswith("List") and "items" in document:
            yield from document["items"]
        else:
            yield document
