"""``pilothouse completion bash|zsh|fish``: scripts for shells, made from the commands and the declared flags.

source <(pilothouse completion bash)
pilothouse completion fish > ~/.config/fish/completions/pilothouse.fish
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from typing import Final

from pilothouse.options.server_options import declared_flags

_WITH_SERVER_FLAGS: Final = ("serve", "inspect")
_SUBCOMMANDS: Final = {
    "store": "check repair snapshot restore copy",
    "completion": "bash zsh fish",
    "envtest": "use list",
    "status": "--data-dir --output --count",
    "kubeconfig": "--user --group --days --server --data-dir --output",
    "convert": "--filename --to --output --in-place",
    "version": "--output",
}
_BASH: Final = """\
_{name}() {{
    local word="${{COMP_WORDS[COMP_CWORD]}}" command="${{COMP_WORDS[1]}}" words
    if [[ $COMP_CWORD -eq 1 && $word != -* ]]; then
        words="{commands}"
    else
        case "$command" in
{cases}
            *) words="{flags}" ;;
        esac
    fi
    COMPREPLY=($(compgen -W "$words" -- "$word"))
    [[ ${{#COMPREPLY[@]}} -eq 0 ]] && COMPREPLY=($(compgen -f -- "${{word#*=}}"))
    [[ ${{#COMPREPLY[@]}} -eq 1 && ${{COMPREPLY[0]}} == *= ]] && compopt -o nospace
}}
complete -F _{name} {program}
complete -F _{name} kube-apiserver
"""


def run(words: Sequence[str], commands: Mapping[str, str]) -> int:
    """Print the script; ``commands`` are those there are, with what they do."""
    parser = argparse.ArgumentParser(prog="pilothouse completion", description="Prints a script for a shell.")
    parser.add_argument("shell", choices=("bash", "zsh", "fish"))
    shell = parser.parse_args(words).shell
    print(_fish(commands) if shell == "fish" else _bash(commands, zsh=shell == "zsh"), end="")
    return 0


def _bash(commands: Mapping[str, str], *, zsh: bool) -> str:
    flags = " ".join(f"--{name}=" for name in declared_flags())
    cases = [f'            {name}) words="{words}" ;;' for name, words in _SUBCOMMANDS.items() if name in commands]
    script = _BASH.format(
        name="pilothouse", program="pilothouse", commands=" ".join(commands), cases="\n".join(cases), flags=flags
    )
    return f"autoload -U +X bashcompinit && bashcompinit\n{script}" if zsh else script


def _fish(commands: Mapping[str, str]) -> str:
    lines = ["complete -c pilothouse -f"]
    lines += (
        f"complete -c pilothouse -n __fish_use_subcommand -a {name} -d {_quoted(help)}"
        for name, help in commands.items()
    )
    for name, words in _SUBCOMMANDS.items():
        if name in commands:
            lines.append(f"complete -c pilothouse -n '__fish_seen_subcommand_from {name}' -a {_quoted(words)}")
    serving = f"__fish_use_subcommand; or __fish_seen_subcommand_from {' '.join(_WITH_SERVER_FLAGS)}"
    for name, (_, flag) in declared_flags().items():
        help = _quoted(flag.help.split(". ")[0])
        lines.append(f"complete -c pilothouse -n '{serving}' -l {name} -r -F -d {help}")
        lines.append(f"complete -c kube-apiserver -l {name} -r -F -d {help}")
    return "\n".join(lines) + "\n"


def _quoted(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"
