"""Pages of the documentation that are made from the declarations they describe, so that they cannot drift.

``PAGES`` names them by their place in the site; ``tools/site_hooks.py`` puts them there when the site is built. Nothing
of mkdocs is needed to make them.
"""

from __future__ import annotations

import contextlib
import io
from collections.abc import Callable, Iterable
from typing import Final

from pilothouse.apis.gates import Gate, known_gates
from pilothouse.cli.main import commands, main
from pilothouse.options.declaring import Flag
from pilothouse.options.idle_flags import IDLE_FLAGS
from pilothouse.options.option_set import groups_of
from pilothouse.options.server_options import ServerOptions

_NOTHING: Final[tuple[object, ...]] = (False, 0, "", "0", "false", (), {})
_FLAGS: Final = """\
# Flags

Every flag of `pilothouse serve` and `kube-apiserver`, with its type, its default and what it does; `pilothouse help`
prints the same. All flags of kube-apiserver {release} are taken, with its types, defaults and checks. {idle} of the
{all} are accepted **without effect**, which is said beside each; one line at start lists those you gave.

"""
_GATES: Final = """\
# Feature gates

The gates of Kubernetes {release}, switched with `--feature-gates=Name=true`. Fields, resources and rules of features
that are off are not there. `AllAlpha` and `AllBeta` switch a whole stage; a gate that is locked cannot be switched.

| gate | stage | default | needs |
|---|---|---|---|
"""
_COMMANDS: Final = """\
# Commands

What each command says when asked for `--help`. `kube-apiserver` is `pilothouse serve` without controllers, scheduler
and nodes, and knows no commands. Exit codes are 0 for success, 1 for a failure or wrong flags, 2 for words that a
command does not know; `status` has 3 for a server that does not run.

| command | what it does |
|---|---|
"""


def flags_page() -> str:
    """Every flag by section."""
    from pilothouse import KUBERNETES_VERSION

    groups = groups_of(ServerOptions).values()
    shown = [(group.section, _shown(group.flags())) for group in groups]
    everything = [flag for _, flags in shown for flag in flags]
    idle = sum(flag.name in IDLE_FLAGS for flag in everything)
    text = [_FLAGS.format(release=KUBERNETES_VERSION, idle=idle, all=len(everything))]
    for section, flags in shown:
        text.append(f"## {section[:1].upper()}{section[1:]}\n\n| flag | type | default | effect |\n|---|---|---|---|\n")
        text += map(_flag_row, flags)
        text.append("\n")
    return "".join(text)


def gates_page() -> str:
    """Every feature gate."""
    from pilothouse import KUBERNETES_VERSION

    rows = (_gate_row(gate) for _, gate in sorted(known_gates().items()))
    return _GATES.format(release=KUBERNETES_VERSION) + "".join(rows)


def commands_page() -> str:
    """Every command with its help; that of the server's own flags is a page of its own."""
    found = {name: text for name, text in commands().items() if name != "help"}
    rows = "".join(f"| `pilothouse {name}` | {text} |\n" for name, text in found.items())
    sections = (_command_section([name]) for name in found if name not in ("serve", "inspect"))
    return (
        _COMMANDS
        + rows
        + "\nThe flags of `serve` and `inspect` are [a page of their own](flags.md).\n\n"
        + "".join(sections)
    )


def _command_section(words: list[str]) -> str:
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed), contextlib.suppress(SystemExit):
        main([*words, "--help"], "pilothouse")
    return f"## {' '.join(words)}\n\n```text\n{printed.getvalue().strip()}\n```\n\n"


def _shown(flags: Iterable[Flag]) -> list[Flag]:
    return sorted((flag for flag in flags if not flag.hidden), key=lambda flag: flag.name)


def _flag_row(flag: Flag) -> str:
    default = "" if flag.default in _NOTHING else f"`{flag.kind.show(flag.default)}`"
    effect = _cell(flag.help)
    if flag.name in IDLE_FLAGS:
        effect += " **No effect yet.**"
    if flag.moot:
        effect += f" Changes nothing: {_cell(flag.moot)}."
    if flag.deprecated:
        effect += f" Deprecated: {_cell(flag.deprecated)}"
    return f"| `{flag.title}` | {flag.kind.word or 'bool'} | {_cell(default)} | {effect} |\n"


def _gate_row(gate: Gate) -> str:
    default = ("on" if gate.on else "off") + (", locked" if gate.locked else "")
    return f"| `{gate.name}` | {gate.stage} | {default} | {', '.join(f'`{name}`' for name in gate.needs)} |\n"


def _cell(text: str) -> str:
    """Text that stays within its cell of a table."""
    return text.replace("|", "\\|").replace("*", "\\*").replace("<", "&lt;").replace("\n", " ")


PAGES: Final[dict[str, Callable[[], str]]] = {
    "reference/flags.md": flags_page,
    "reference/feature-gates.md": gates_page,
    "reference/commands.md": commands_page,
}
