"""``pilothouse completion bash|zsh|fish``: scripts for shells, made from the commands' parsers and the declared flags.

source <(pilothouse completion bash)
pilothouse completion fish > ~/.config/fish/completions/pilothouse.fish
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping, Sequence
from importlib import import_module
from typing import Final

from pilothouse.options.server_options import declared_flags

_WITH_SERVER_FLAGS: Final = ("serve", "inspect")
_MODULES: Final = {"envtest": "envtest.assets"}
"""Where a command's parser is, if not in the module of its name."""
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
    [[ ${{#COMPREPLY[@]}} -eq 1 && ${{COMPREPLY[0]}} == *= ]] && compopt -o nospace 2>/dev/null
}}
complete -F _{name} {program}
complete -F _{name} kube-apiserver
"""


def run(words: Sequence[str], commands: Mapping[str, str]) -> int:
    """Print the script; ``commands`` are those there are, with what they do."""
    shell = parser().parse_args(words).shell
    print(_fish(commands) if shell == "fish" else _bash(commands, zsh=shell == "zsh"), end="")
    return 0


def parser() -> argparse.ArgumentParser:
    """What the command takes."""
    made = argparse.ArgumentParser(prog="pilothouse completion", description="Prints a script for a shell.")
    made.add_argument("shell", choices=("bash", "zsh", "fish"))
    return made


def words_of(command: str) -> list[str]:
    """What can follow a command that has a parser of its own: subcommands, values and long flags, each once."""
    module = import_module(f"pilothouse.cli.{_MODULES.get(command, command)}")
    return list(dict.fromkeys(_words(module.parser())))


def _words(taken: argparse.ArgumentParser) -> Iterator[str]:
    for action in taken._actions:
        if isinstance(action, argparse._SubParsersAction):
            yield from action.choices
            for each in action.choices.values():
                yield from _words(each)
        elif action.option_strings:
            yield from (word for word in action.option_strings if word.startswith("--"))
        else:
            yield from action.choices or ()


def _followed(commands: Mapping[str, str]) -> dict[str, str]:
    own = [name for name in commands if name not in (*_WITH_SERVER_FLAGS, "help")]
    return {name: " ".join(words_of(name)) for name in own}


def _bash(commands: Mapping[str, str], *, zsh: bool) -> str:
    flags = " ".join(f"--{name}=" for name in declared_flags())
    cases = [f'            {name}) words="{words}" ;;' for name, words in _followed(commands).items()]
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
    for name, words in _followed(commands).items():
        lines.append(f"complete -c pilothouse -n '__fish_seen_subcommand_from {name}' -a {_quoted(words)}")
    serving = f"__fish_use_subcommand; or __fish_seen_subcommand_from {' '.join(_WITH_SERVER_FLAGS)}"
    for name, (_, flag) in declared_flags().items():
        help = _quoted(flag.help.split(". ")[0])
        lines.append(f"complete -c pilothouse -n '{serving}' -l {name} -r -F -d {help}")
        lines.append(f"complete -c kube-apiserver -l {name} -r -F -d {help}")
    return "\n".join(lines) + "\n"


def _quoted(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"
