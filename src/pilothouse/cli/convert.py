"""``pilothouse convert``: manifests of old versions as today's have them, without a server.

    pilothouse convert -f FILE_OR_FOLDER...      print everything in today's versions
        --to apps/v1                             in this version, where a kind has it
        -o FOLDER                                write files of the same names there; --in-place: over the old ones

Comments stay where their fields are. What has no successor is left as it is and told of. The exit code is 1 if
something could not be read or converted.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections.abc import Sequence
from pathlib import Path

import yaml

from pilothouse.apis.legacy.translation import translate
from pilothouse.machinery.gvk import GroupVersion, parse_group_version
from pilothouse.machinery.yaml_comments import read_comments, write_comments

_SUFFIXES = (".yaml", ".yml", ".json")
_SEPARATOR = re.compile(r"^---(?=\s|$)", re.M)
_VERSION = re.compile(r"^(apiVersion:\s*)(['\"]?)[^'\"\s#]+\2", re.M)


class _Loader(yaml.SafeLoader):
    """Times are texts, as they are in JSON."""


_Loader.yaml_implicit_resolvers = {
    start: [pair for pair in pairs if pair[0] != "tag:yaml.org,2002:timestamp"]
    for start, pairs in yaml.SafeLoader.yaml_implicit_resolvers.items()
}


class _Dumper(yaml.SafeDumper):
    """Lists are indented like kubectl's, long texts are blocks."""


def _represent_text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style="|" if "\n" in text else None)


_Dumper.add_representer(str, _represent_text)


def run(words: Sequence[str]) -> int:
    """Convert what the words name; the exit code."""
    flags = parser().parse_args(words)
    converter = Converter(parse_group_version(flags.to) if flags.to else None)
    try:
        for root, file in _files(flags.filename):
            _write(flags, file.relative_to(root), file, converter.convert(file))
    except OSError as error:
        print(f"Error: {error}", file=sys.stderr)
        return 1
    return 1 if converter.failed else 0


def parser() -> argparse.ArgumentParser:
    """What the command takes."""
    made = argparse.ArgumentParser(prog="pilothouse convert", description="Manifests in other API versions.")
    made.add_argument("-f", "--filename", action="append", required=True, type=Path, help="a file or folder")
    made.add_argument("--to", default="", help="group/version; today's version of each kind unless given")
    where = made.add_mutually_exclusive_group()
    where.add_argument("-o", "--output", type=Path, help="folder to write to; standard output unless given")
    where.add_argument("--in-place", action="store_true", help="write over the files")
    return made


def _files(names: list[Path]) -> list[tuple[Path, Path]]:
    """Files with the folder that they were found in."""
    found = []
    for name in names:
        if name.is_dir():
            inside = sorted(file for file in name.rglob("*") if file.suffix in _SUFFIXES and file.is_file())
            found += [(name, file) for file in inside]
        else:
            found.append((name.parent, name))
    return found


def _write(flags: argparse.Namespace, name: Path, file: Path, text: str) -> None:
    if flags.in_place:
        file.write_text(text)
    elif flags.output:
        target = flags.output / name
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text)
    else:
        if sys.stdout.isatty() or text:
            sys.stdout.write(text if text.startswith("---") or file.suffix == ".json" else f"---\n{text}")


class Converter:
    """Converts files and tells on standard error what there is to know."""

    def __init__(self, to: GroupVersion | None) -> None:
        self._to = to
        self.failed = False

    def convert(self, file: Path) -> str:
        """The text of a file, converted; as it is where it cannot be."""
        text = file.read_text()
        try:
            if file.suffix == ".json":
                return self._json(file, text)
            parts = _SEPARATOR.split(text)
            made = [self._document(file, part) for part in parts]
            return "---".join(made)
        except (yaml.YAMLError, ValueError) as error:
            self._tell(file, f"cannot be read: {error}", failed=True)
            return text

    def _json(self, file: Path, text: str) -> str:
        obj = json.loads(text)
        if not isinstance(obj, dict):
            return text
        made = translate(obj, self._to)
        self._note(file, made.notes, failed=made.failed)
        return text if made.object == obj else json.dumps(made.object, indent=2) + "\n"

    def _document(self, file: Path, text: str) -> str:
        obj = yaml.load(text, _Loader)  # noqa: S506 (a safe loader)
        if not isinstance(obj, dict):
            return text
        made = translate(obj, self._to)
        self._note(file, made.notes, failed=made.failed)
        if made.object == obj:
            return text
        if {**made.object, "apiVersion": obj["apiVersion"]} == obj:
            return _VERSION.sub(lambda match: match[1] + match[2] + made.object["apiVersion"] + match[2], text, count=1)
        plain = yaml.dump(made.object, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=120)
        return ("\n" if text.startswith("\n") else "") + write_comments(plain, read_comments(text))

    def _note(self, file: Path, notes: Sequence[str], *, failed: bool) -> None:
        for note in notes:
            self._tell(file, note, failed=failed)

    def _tell(self, file: Path, note: str, *, failed: bool) -> None:
        self.failed = self.failed or failed
        print(f"{file}: {note}", file=sys.stderr)
