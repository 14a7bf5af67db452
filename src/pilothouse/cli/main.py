"""What ``pilothouse`` and ``kube-apiserver`` do with their words: find the command, run it, give its exit code.

    pilothouse [serve] [flags]     run the server; kube-apiserver is this and nothing else
    pilothouse inspect [flags]     show the server that these flags would make, without starting it; -o json
    pilothouse status              is it up, since when, what does it hold; see ``cli/status.py``
    pilothouse console             sign in to the console; see ``cli/console.py``
    pilothouse kubeconfig ...      make a kubeconfig for a user; see ``cli/kubeconfig.py``
    pilothouse store ...           check, repair, save or copy the data; see ``cli/store.py``
    pilothouse convert -f ...      manifests of old versions as today's have them; see ``cli/convert.py``
    pilothouse envtest ...         binaries for controller-runtime's envtest; see ``cli/envtest``
    pilothouse completion SHELL    words for bash, zsh or fish; see ``cli/completion.py``
    pilothouse version             print the versions; -o json
    pilothouse help                print all flags

Exit codes: 0 after a graceful stop, 1 when the flags or the start went wrong. All errors of the flags are printed,
not only the first.
"""

from __future__ import annotations

import json
import logging
import os
import sys
from collections.abc import Callable, Sequence

from pilothouse import KUBERNETES_VERSION
from pilothouse.cli.logging import set_up_logging
from pilothouse.options import (
    ServerOptions,
    StartError,
    UsageError,
    claimed_folder,
    complete,
    parse,
    provision,
    validate,
)

_log = logging.getLogger("pilothouse.cli")
_GIT_VERSION = f"v{KUBERNETES_VERSION}.0"
_USAGE = """\
Pilothouse is a Kubernetes API server: drop-in for kube-apiserver {kubernetes}.

Usage:
  {usage}

{flags}"""
_PILOTHOUSE_USAGE = """pilothouse [serve] [flags]
  pilothouse inspect [flags] [-o text|json]
  pilothouse status [--data-dir folder] [-o text|json]
  pilothouse console [--open] [--data-dir folder]
  pilothouse kubeconfig --user name [--group name]...
  pilothouse store check|repair|snapshot|restore|copy [--data-dir folder]
  pilothouse convert -f file|folder [--to group/version]
  pilothouse envtest use|list
  pilothouse completion bash|zsh|fish
  pilothouse version [-o text|json]
  pilothouse help

Every command has a --help of its own."""

_OWN_USAGES = {
    "kube-apiserver": "kube-apiserver [flags]",
    "pilothouse inspect": """pilothouse inspect [flags] [-o text|json]

Prints the filters, servers, routes, checks and resources of the server that these flags would make.
Nothing is started.""",
}
"""Of programs whose help is not about all commands. Flags of the server follow."""


def main(argv: Sequence[str] | None = None, program: str | None = None) -> int:
    """Run the command line; the answer is the exit code."""
    words = list(sys.argv[1:] if argv is None else argv)
    name = program or os.path.basename(sys.argv[0])
    try:
        if name == "kube-apiserver":
            return serve(words, name)
        command = words.pop(0) if words and not words[0].startswith("-") else "serve"
        if command not in _COMMANDS:
            return _fail([f'unknown command "{command}" for "pilothouse"{_suggest(command)}'])
        return _COMMANDS[command](words, f"pilothouse {command}")
    except UsageError as refusal:
        return _fail([str(refusal)])
    except StartError as refusal:
        return _fail([str(refusal)])
    except BrokenPipeError:
        # Whoever read our output has gone; without this the interpreter complains once more when it flushes.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except KeyboardInterrupt:
        return 130


def serve(words: list[str], program: str) -> int:
    """Run the server until it is told to stop."""
    options = parse(words, program)
    if _answered(options, program):
        return 0
    set_up_logging(options.logs)
    _enliven(options, program)
    errors = validate(complete(options))
    if errors:
        return _fail(errors)
    for notice in options.derived.notices:
        _log.warning(notice)
    idle = options.idle()
    if idle:
        _log.warning("These flags are accepted but have no effect yet: %s", ", ".join(f"--{flag}" for flag in idle))
    with claimed_folder(options):
        provision(options, meanwhile=_import_server)
        from pilothouse.process.run import serve as run_server

        return run_server(options)


def _import_server() -> None:
    """The whole server: a wrong flag needs none of it, and making certificates takes as long."""
    import pilothouse.process.run  # noqa: F401


def inspect(words: list[str], program: str) -> int:
    """Print the server that the flags would make."""
    words, output = _taken_output(words)
    options = parse(words, program)
    if _answered(options, program):
        return 0
    _enliven(options, program)
    errors = validate(complete(options))
    if errors:
        return _fail(errors)
    from tempfile import TemporaryDirectory

    from pilothouse.process.inspection import as_text, describe  # the whole server, as above

    # Certificates that the flags leave to the server are made aside: looking at a server changes nothing.
    with TemporaryDirectory(prefix="pilothouse-inspect-") as folder:
        aside = parse([*words, f"--data-dir={folder}"], program)
        _enliven(aside, program)
        complete(aside)
        aside.own.write_kubeconfig = ""
        provision(aside)
        found = describe(aside)
    print(json.dumps(found, indent=2) if output == "json" else as_text(found))
    return 0


def _taken_output(words: list[str]) -> tuple[list[str], str]:
    """The words without ``-o json`` or ``-o text``, and which it was: a flag of the command, not of the server."""
    kept, output, following = list[str](), "text", False
    for word in words:
        if following or word.startswith("--output="):
            output, following = word.removeprefix("--output="), False
        elif word in ("-o", "--output"):
            following = True
        else:
            kept.append(word)
    if output not in ("text", "json"):
        raise UsageError(f'invalid argument "{output}" for "-o, --output" flag: must be text or json')
    return kept, output


def store(words: list[str], program: str) -> int:
    """Check, repair, save or copy the data."""
    from pilothouse.cli.store import run  # opens databases, which nothing else here does

    return run(words)


def status(words: list[str], program: str) -> int:
    """Tell whether a server is up, and how it is."""
    from pilothouse.cli.status import run

    return run(words)


def console(words: list[str], program: str) -> int:
    """Sign in to the console of a running server."""
    from pilothouse.cli.console import run

    return run(words)


def kubeconfig(words: list[str], program: str) -> int:
    """Make a kubeconfig for a user."""
    from pilothouse.cli.kubeconfig import run

    return run(words)


def convert(words: list[str], program: str) -> int:
    """Bring manifests to other versions."""
    from pilothouse.cli.convert import run  # knows every kind

    return run(words)


def envtest(words: list[str], program: str) -> int:
    """Make binaries for controller-runtime's envtest."""
    from pilothouse.cli.envtest.assets import run

    return run(words)


def completion(words: list[str], program: str) -> int:
    """Print a script that completes words in a shell."""
    from pilothouse.cli.completion import run

    return run(words, commands())


def version(words: list[str], program: str) -> int:
    """Print the versions."""
    from pilothouse.cli.version import run

    return run(words)


def print_help(words: list[str], program: str) -> int:
    """Print all flags."""
    _print_usage("pilothouse")
    return 0


_COMMANDS: dict[str, Callable[[list[str], str], int]] = {
    "serve": serve,
    "inspect": inspect,
    "status": status,
    "console": console,
    "kubeconfig": kubeconfig,
    "store": store,
    "convert": convert,
    "envtest": envtest,
    "completion": completion,
    "version": version,
    "help": print_help,
}


def commands() -> dict[str, str]:
    """The commands, each with what it does in a few words."""
    return {name: (command.__doc__ or "").rstrip(".") for name, command in _COMMANDS.items()}


def _enliven(options: ServerOptions, program: str) -> None:
    """``pilothouse`` is a living cluster, ``kube-apiserver`` the API server alone, unless flags say otherwise."""
    if program != "kube-apiserver":
        options.living.enliven(options.given)


def _answered(options: ServerOptions, program: str) -> bool:
    """Deal with --help and --version, which print something and end the program."""
    if options.global_flags.help:
        _print_usage(program)
    elif options.global_flags.version == "true":
        print(f"Kubernetes {_GIT_VERSION}")
    elif options.global_flags.version == "raw":
        major, minor = KUBERNETES_VERSION.split(".")[:2]
        print(f'version.Info{{Major:"{major}", Minor:"{minor}", GitVersion:"{_GIT_VERSION}"}}')
    else:
        return False
    return True


def _print_usage(program: str) -> None:
    from shutil import get_terminal_size

    from pilothouse.options.usage import flag_usage  # only this needs it

    usage = _OWN_USAGES.get(program, _PILOTHOUSE_USAGE)
    width = get_terminal_size((120, 24)).columns if sys.stdout.isatty() else 120
    print(_USAGE.format(kubernetes=KUBERNETES_VERSION, usage=usage, flags=flag_usage(width)), end="")


def _suggest(command: str) -> str:
    from difflib import get_close_matches  # only a mistyped command needs it

    nearest = get_close_matches(command, _COMMANDS, n=1)
    return f"\nDid you mean {nearest[0]}?" if nearest else ""


def _fail(errors: list[str]) -> int:
    for error in errors:
        print(f"Error: {error}", file=sys.stderr)
    return 1
