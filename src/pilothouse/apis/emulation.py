"""The version that a server emulates: it serves the resources, and has the features, of an older release.

So a control plane is upgraded in two steps, of which the second can be taken back: first the programs, which go on as
the release before, then the version they emulate. What a server emulates shows in ``/version`` and ``/statusz``.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Final

from pilothouse import KUBERNETES_VERSION
from pilothouse.apis import catalogue
from pilothouse.machinery.gvk import GroupVersionKind

Version = tuple[int, int]
BINARY: Final[Version] = (int(KUBERNETES_VERSION.split(".")[0]), int(KUBERNETES_VERSION.split(".")[1]))


@dataclass(frozen=True, slots=True)
class Emulation:
    """What is emulated, and the oldest version that others on the same store may have."""

    version: Version = BINARY
    compatible: Version = (BINARY[0], BINARY[1] - 1)
    serves_newer: bool = False
    """Whether newer versions are served of resources that there are: ``--emulation-forward-compatible``."""
    switches_newer: bool = False
    """Whether flags may switch on what is newer: ``--runtime-config-emulation-forward-compatible``."""

    @property
    def is_older(self) -> bool:
        """Whether it is another version than that of the program."""
        return self.version < BINARY

    def text(self) -> str:
        """The version, as 1.36."""
        return version_text(self.version)


PRESENT: Final = Emulation()
"""Nothing is emulated."""


def version_text(version: Version) -> str:
    """A version, as 1.36."""
    return f"{version[0]}.{version[1]}"


def parse_version(text: str) -> Version:
    """The opposite."""
    major, minor = text.split(".")
    return int(major), int(minor)


@cache
def introduced() -> dict[GroupVersionKind, Version]:
    """When those kinds came that some version which can be emulated does not have."""
    found = {}
    for line in catalogue.read("introduced.txt").splitlines():
        group_version, kind, since = line.split()
        group, _, version = group_version.partition("/")
        found[GroupVersionKind(group, version, kind)] = parse_version(since)
    return found
