"""The versions named by ``--emulated-version`` and ``--min-compatibility-version``: their form, bounds and meaning.

A server of 1.37 can emulate 1.34 to 1.37, and be compatible with versions from 1.34 up to the one it emulates.
"""

from __future__ import annotations

import re

from pilothouse.apis.emulation import BINARY, Emulation, Version, version_text
from pilothouse.machinery.go_quote import quote

_VERSION = re.compile(r"v?([0-9]+(?:\.[0-9]+)*)(.*)", re.DOTALL)
_FLOOR = (BINARY[0], BINARY[1] - 3)


def check_versions(emulated: tuple[str, ...], compatible: tuple[str, ...]) -> list[str]:
    """Everything wrong with the two flags."""
    wanted, errors = _parse_all(emulated)
    oldest, more = _parse_all(compatible)
    if errors or more:
        return errors + more
    emulation, compatibility = _completed(wanted, oldest)
    if not _FLOOR <= emulation <= BINARY:
        bounds = f"[{version_text(_FLOOR)}, {version_text(BINARY)}]"
        errors.append(f"emulation version {version_text(emulation)} is not between {bounds}")
    if not _FLOOR <= compatibility <= emulation:
        errors.append(
            f"minCompatibilityVersion version {version_text(compatibility)} is not between "
            f"[{version_text(_FLOOR)}, {version_text(emulation)}]"
        )
    return errors


def read_emulation(
    emulated: tuple[str, ...], compatible: tuple[str, ...], *, serves_newer: bool, switches_newer: bool
) -> Emulation:
    """What is emulated; flags that are wrong are taken for not given."""
    version, oldest = _completed(_parse_all(emulated)[0], _parse_all(compatible)[0])
    return Emulation(version, oldest, serves_newer, switches_newer)


def _completed(emulated: Version | None, compatible: Version | None) -> tuple[Version, Version]:
    version = emulated or BINARY
    return version, compatible or max(_FLOOR, (version[0], version[1] - 1))


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
