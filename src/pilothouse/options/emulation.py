"""The versions named by ``--emulated-version`` and ``--min-compatibility-version``: their form and their bounds.

A server of 1.37 can emulate 1.34 to 1.37, and be compatible with versions from 1.34 up to the one it emulates.
"""

from __future__ import annotations

import re

from pilothouse import KUBERNETES_VERSION
from pilothouse.machinery.go_quote import quote

_VERSION = re.compile(r"v?([0-9]+(?:\.[0-9]+)*)(.*)", re.DOTALL)
_BINARY = (int(KUBERNETES_VERSION.split(".")[0]), int(KUBERNETES_VERSION.split(".")[1]))
_FLOOR = (_BINARY[0], _BINARY[1] - 3)

Version = tuple[int, int]


def check_versions(emulated: tuple[str, ...], compatible: tuple[str, ...]) -> list[str]:
    """Everything wrong with the two flags."""
    wanted, errors = _parse_all(emulated)
    oldest, more = _parse_all(compatible)
    if errors or more:
        return errors + more
    emulation = wanted or _BINARY
    compatibility = oldest or max(_FLOOR, (emulation[0], emulation[1] - 1))
    if not _FLOOR <= emulation <= _BINARY:
        errors.append(f"emulation version {_text(emulation)} is not between [{_text(_FLOOR)}, {_text(_BINARY)}]")
    if not _FLOOR <= compatibility <= emulation:
        errors.append(
            f"minCompatibilityVersion version {_text(compatibility)} is not between "
            f"[{_text(_FLOOR)}, {_text(emulation)}]"
        )
    return errors


def _parse_all(entries: tuple[str, ...]) -> tuple[Version | None, list[str]]:
    seen: dict[str, str] = {}
    found: Version | None = None
    for entry in entries:
        component, equals, text = entry.partition("=")
        if not equals:
            component, text = "kube", entry
        component, text = component.strip(), text.strip()
        parsed = _parse(text)
        if isinstance(parsed, str):
            return None, [parsed]
        if len(parsed) > 2 and parsed[2] != 0:
            return None, [f"patch version not allowed, got: {component}={text.removeprefix('v')}"]
        version = ".".join(map(str, parsed))
        if component in seen:
            return None, [f"duplicate version flag, {component}={seen[component]} and {component}={version}"]
        if component != "kube":
            return None, [f"component not registered: {component}"]
        seen[component], found = version, (parsed[0], parsed[1])
    return found, []


def _parse(text: str) -> tuple[int, ...] | str:
    match = _VERSION.fullmatch(text)
    if not match or len(text) > 64:
        return f"could not parse {quote(text)} as version"
    numbers = match[1].split(".")
    if len(numbers) < 2:
        return f"illegal version string {quote(text)}"
    if len(numbers[0]) > 1 and numbers[0].startswith("0"):
        return f"illegal zero-prefixed version component {quote(numbers[0])} in {quote(text)}"
    return tuple(int(number) for number in numbers)


def _text(version: Version) -> str:
    return f"{version[0]}.{version[1]}"
