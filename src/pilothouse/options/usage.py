"""The text of ``--help``: every flag by section, in the layout of kube-apiserver's own.

A flag that is accepted without effect says so.
"""

from __future__ import annotations

import textwrap

from pilothouse.options.declaring import Flag
from pilothouse.options.idle_flags import IDLE_FLAGS
from pilothouse.options.option_set import OptionSet, groups_of
from pilothouse.options.server_options import ServerOptions

NO_EFFECT = "(accepted, no effect yet)"
_COLUMN = 47


def flag_usage(width: int = 120, options: type[OptionSet] = ServerOptions) -> str:
    """All sections."""
    sections = []
    for group in groups_of(options).values():
        title = group.section[:1].upper() + group.section[1:]
        lines = [
            line
            for flag in sorted(group.flags(), key=lambda f: f.name)
            if not flag.hidden
            for line in _lines(flag, width)
        ]
        sections.append(f"{title} flags:\n\n" + "\n".join(lines) + "\n")
    return "\n".join(sections)


def _lines(flag: Flag, width: int) -> list[str]:
    lead = f"  -{flag.short}, --{flag.name}" if flag.short else f"      --{flag.name}"
    if flag.kind.word:
        lead += f" {flag.kind.word}" if not flag.kind.word.startswith("version") else "  version[=true]"
    texts = textwrap.wrap(_text(flag), max(width - _COLUMN, 40), break_long_words=False, break_on_hyphens=False)
    if len(lead) < _COLUMN - 1:
        first, *rest = texts
        return [lead.ljust(_COLUMN) + first] + [" " * _COLUMN + text for text in rest]
    return [lead] + [" " * _COLUMN + text for text in texts]


def _text(flag: Flag) -> str:
    parts = [flag.help]
    if flag.default not in (False, 0, "", "0", "false", (), {}):
        parts.append(f"(default {flag.kind.show(flag.default)})")
    if flag.name in IDLE_FLAGS:
        parts.append(NO_EFFECT)
    if flag.moot:
        parts.append(f"(changes nothing: {flag.moot})")
    if flag.deprecated:
        parts.append(f"(DEPRECATED: {flag.deprecated})")
    return " ".join(parts)
