"""Which level at which version applies: from a namespace's labels, or from the defaults where it has none.

Labels that cannot be read never open a door: enforcing falls back to restricted and latest. Warnings and audit, which
keep nobody out, fall back to privileged.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple

from pilothouse.machinery.field_errors import FieldError, Path, invalid

PREFIX: Final = "pod-security.kubernetes.io/"
PRIVILEGED: Final = "privileged"
BASELINE: Final = "baseline"
RESTRICTED: Final = "restricted"
LATEST: Final = -1
"""The newest version there is; others are minor versions of 1."""
_STRICTNESS: Final = {PRIVILEGED: 0, BASELINE: 1, RESTRICTED: 2}
_LABELS: Final = Path("metadata", "labels")
_VERSION: Final = re.compile(r"v1\.([0-9]|[1-9][0-9]*)")


class LevelVersion(NamedTuple):
    """A level as it stood at a version."""

    level: str
    minor: int = LATEST

    def __str__(self) -> str:
        return f"{self.level}:{'latest' if self.minor == LATEST else f'v1.{self.minor}'}"

    def is_equivalent(self, other: LevelVersion) -> bool:
        """Whether both demand the same."""
        return self == other or self.level == other.level == PRIVILEGED


_UNCHECKED: Final = LevelVersion(PRIVILEGED)


@dataclass(frozen=True, slots=True)
class Policy:
    """What applies in a namespace."""

    enforce: LevelVersion = _UNCHECKED
    audit: LevelVersion = _UNCHECKED
    warn: LevelVersion = _UNCHECKED

    @property
    def is_privileged(self) -> bool:
        """Whether nothing at all is checked."""
        return self.enforce.level == self.audit.level == self.warn.level == PRIVILEGED

    def is_equivalent(self, other: Policy) -> bool:
        """Whether both demand the same."""
        pairs = ((self.enforce, other.enforce), (self.audit, other.audit), (self.warn, other.warn))
        return all(mine.is_equivalent(theirs) for mine, theirs in pairs)


def is_stricter(level: str, other: str) -> bool:
    """Whether a level demands more than another."""
    return _STRICTNESS[level] > _STRICTNESS[other]


def parse_level(text: str) -> str:
    """A known level, or ValueError."""
    if text not in _STRICTNESS:
        raise ValueError(f"must be one of {', '.join(_STRICTNESS)}")
    return text


def parse_version(text: str) -> int:
    """A minor version or LATEST, or ValueError."""
    if text == "latest":
        return LATEST
    match = _VERSION.fullmatch(text)
    if match is None or len(match[1]) > 18:
        raise ValueError('must be "latest" or "v1.x"')
    return int(match[1])


def read_policy(labels: Mapping[str, str], defaults: Policy) -> tuple[Policy, list[FieldError]]:
    """The policy that labels ask for, always a usable one, and what is wrong with them."""
    if not labels:
        return defaults, []
    errs: list[FieldError] = []
    enforce = _read_mode(labels, "enforce", defaults.enforce, RESTRICTED, errs)
    audit = _read_mode(labels, "audit", defaults.audit, PRIVILEGED, errs)
    warn = _read_mode(labels, "warn", defaults.warn, PRIVILEGED, errs)
    # Whoever enforces more than he lets warn about wants the warnings too.
    silent = PREFIX + "warn" not in labels and labels.get(PREFIX + "enforce") in _STRICTNESS
    if silent and is_stricter(enforce.level, warn.level):
        minor = warn.minor if PREFIX + "warn-version" in labels else enforce.minor
        warn = LevelVersion(enforce.level, minor)
    return Policy(enforce, audit, warn), errs


def _read_mode(
    labels: Mapping[str, str], mode: str, default: LevelVersion, fallback: str, errs: list[FieldError]
) -> LevelVersion:
    level, minor = default
    text = labels.get(PREFIX + mode)
    if text is not None:
        try:
            level = parse_level(text)
        except ValueError as error:
            level = fallback
            errs.append(invalid(_LABELS.key(PREFIX + mode), text, str(error)))
    text = labels.get(f"{PREFIX}{mode}-version")
    if text is not None:
        try:
            minor = parse_version(text)
        except ValueError as error:
            minor = LATEST
            errs.append(invalid(_LABELS.key(f"{PREFIX}{mode}-version"), text, str(error)))
    return LevelVersion(level, minor)
