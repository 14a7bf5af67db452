"""What ``pilothouse`` and ``kube-apiserver`` do with their words: find the command, run it, give its exit code.

    pilothouse [serve] [flags]     run the server; kube-apiserver is this and nothing else
    pilothouse inspect [flags]     show the server that these flags would make, without starting it
    pilothouse version             print the versions
    pilothouse help                print all flags

Exit codes: 0 after a graceful stop, 1 when the flags or the start went wrong. All faults of the flags are printed,
not only the first.
"""

from __future__ import annotations

import logging
import os
import platform
import shutil
import sys
import tempfile
from collections.abc import Callable, Sequence

from pilothouse import KUBERNETES_VERSION, __version__
from pilothouse.cli.logging import set_up_logging
from pilothouse.options import ServerOptions, StartError, UsageError, complete, parse, provision, validate

_log = logging.getLogger("pilothouse.cli")
_GIT_VERSION = f"v{KUBERNETES_VERSION}.0"
_USAGE = """\
Pilothouse is a complete Kubernetes API server: drop-in for kube-apiserver {kubernetes}.

Usage:
  {usage}

{flags}"""
_PILOTHOUSE_USAGE = """pilothouse [serve] [flags]
  pilothouse inspect [flags]
  pilothouse version
  pilothouse help"""


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
    set_up_logging(options.logs.verbosity)
    errors = validate(complete(options))
    if errors:
        return _fail(errors)
    for notice in options.derived.notices:
        _log.warning(notice)
    ineffective = options.ineffective()
    if ineffective:
        _log.warning(
            "These flags are accepted but have no effect yet: %s", ", ".join(f"--{flag}" for flag in ineffective)
        )
    provision(options)
    from pilothouse.app.run import serve as run_server  # the whole server: --help and a wrong flag need none of it

    return run_server(options)


def inspect(words: list[str], program: str) -> int:
    """Print the server that the flags would make."""
    options = parse(words, program)
    if _answered(options, program):
        return 0
    errors = validate(complete(options))
    if errors:
        return _fail(errors)
    from pilothouse.app.inspection import describe  # the whole server, as above

    # Certificates that the flags leave to the server are made aside: looking at a server changes nothing.
    with tempfile.TemporaryDirectory(prefix="pilothouse-inspect-") as folder:
        aside = complete(parse([*words, f"--data-dir={folder}"], program))
        aside.own.write_kubeconfig = ""
        provision(aside)
        print(describe(aside))
    return 0


def version(words: list[str], program: str) -> int:
    """Print our version, the one of Kubernetes, and Python's."""
    if not _answered(parse(words, program), program):
        print(f"Pilothouse {__version__}\nKubernetes {_GIT_VERSION}\nPython {platform.python_version()}")
    return 0


def print_help(words: list[str], program: str) -> int:
    """Print all flags."""
    _print_usage("pilothouse")
    return 0


_COMMANDS: dict[str, Callable[[list[str], str], int]] = {
    "serve": serve,
    "inspect": inspect,
    "version": version,
    "help": print_help,
}


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
    from pilothouse.options.usage import flag_usage  # only this needs it

    usage = "kube-apiserver [flags]" if program == "kube-apiserver" else _PILOTHOUSE_USAGE
    width = shutil.get_terminal_size((120, 24)).columns if sys.stdout.isatty() else 120
    print(_USAGE.format(kubernetes=KUBERNETES_VERSION, usage=usage, flags=flag_usage(width)), end="")


def _suggest(command: str) -> str:
    from difflib import get_close_matches  # only a mistyped command needs it

    nearest = get_close_matches(command, _COMMANDS, n=1)
    return f"\nDid you mean {nearest[0]}?" if nearest else ""


def _fail(errors: list[str]) -> int:
    for error in errors:
        print(f"Error: {error}", file=sys.stderr)
    return 1
