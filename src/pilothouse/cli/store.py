"""``pilothouse store``: looking after the data without a server.

    pilothouse store check                   look at everything; exit code 1 if anything is wrong
    pilothouse store repair                  save what can be read into a new file; the old one is kept
    pilothouse store snapshot --to copy.db   copy one moment, also while a server runs
    pilothouse store restore --from copy.db  put a copy where a server finds it
    pilothouse store copy FROM TO            make one store equal to another; each a --data-dir, or the URLs of an etcd

Each takes ``--data-dir``, as the server does; ``check`` also ``--etcd-servers``. A subcommand is a function of its
flags and a line in ``_COMMANDS``.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from pilothouse.options.etcd import root_of
from pilothouse.options.own import OwnOptions
from pilothouse.process.stores.opening import StoreAddress
from pilothouse.storage.backends import sqlite
from pilothouse.storage.backends.contract import StorageError

_SHOWN = 100


def run(words: Sequence[str]) -> int:
    """Run a subcommand; its exit code."""
    flags = parser().parse_args(words)
    command: Callable[[argparse.Namespace], int] = flags.command
    try:
        return command(flags)
    except (StorageError, OSError) as error:
        print(f"Error: {error}", file=sys.stderr)
        return 1


def check(flags: argparse.Namespace) -> int:
    """Say what is wrong with the store."""
    if flags.etcd_servers:
        return asyncio.run(_check_objects(_address(flags, flags.etcd_servers), root_of(flags.etcd_prefix)))
    report = sqlite.examine(_path(flags))
    if report.is_sound:
        print(f"{report.objects} objects, all readable; the file is sound.")
        return asyncio.run(_check_objects(StoreAddress(flags.data_dir), root_of(flags.etcd_prefix)))
    for finding in report.findings[:_SHOWN]:
        print(f"damaged: {finding}")
    for key in report.unreadable[:_SHOWN]:
        print(f"unreadable: {key}")
    if len(report.unreadable) > _SHOWN:
        print(f"unreadable: and {len(report.unreadable) - _SHOWN} more")
    print(
        f"{len(report.unreadable)} of {report.objects} objects cannot be read. Stop the server, keep a copy of the file"
    )
    print("if it matters, and run `pilothouse store repair`.")
    return 1


async def _check_objects(address: StoreAddress, root: str) -> int:
    from pilothouse.process.stores.checking import check_store  # knows every kind, which takes a moment

    async with address.opened() as backend:
        findings = await check_store(backend, root, ProgressBar())
    for problem in findings.problems[:_SHOWN]:
        print(f"problem: {problem}")
    if len(findings.problems) > _SHOWN:
        print(f"problem: and {len(findings.problems) - _SHOWN} more")
    print(f"{findings.objects.total()} keys below {root}, {len(findings.problems)} problems.")
    return 1 if findings.problems else 0


def copy(flags: argparse.Namespace) -> int:
    """Make one store equal to another, with resourceVersions that never go back."""
    return asyncio.run(_copy(flags))


async def _copy(flags: argparse.Namespace) -> int:
    from pilothouse.process.stores.copying import NotEmpty, copy_store
    from pilothouse.process.stores.values import UnknownKey

    source, target = _address(flags, flags.source), _address(flags, flags.target)
    async with source.opened() as one, target.opened(create=True) as other:
        try:
            root = root_of(flags.etcd_prefix)
            done = await copy_store(one, other, target.media, root, ProgressBar(), resume=flags.resume)
        except (NotEmpty, UnknownKey) as refusal:
            print(f"Error: {refusal}", file=sys.stderr)
            return 1
    print(f"{done.objects} objects, {done.written} written, {done.deleted} deleted; revision {done.revision}.")
    return 0


def restore(flags: argparse.Namespace) -> int:
    """Put a copy where a server finds it; replaces nothing."""
    from pilothouse.process.stores.restoring import restore_snapshot

    revision = asyncio.run(restore_snapshot(Path(flags.source), Path(_path(flags))))
    print(f"{_path(flags)} holds the store at revision {revision}.")
    return 0


def _address(flags: argparse.Namespace, name: str) -> StoreAddress:
    return StoreAddress(name, flags.etcd_cafile, flags.etcd_certfile, flags.etcd_keyfile)


def repair(flags: argparse.Namespace) -> int:
    """Save what can be read."""
    repaired = sqlite.repair(_path(flags))
    for key in repaired.lost:
        print(f"lost: {key}")
    print(f"{repaired.kept} states of objects were saved, {len(repaired.lost)} could not be read.")
    print(f"The damaged file is {repaired.old}.")
    return 0


def snapshot(flags: argparse.Namespace) -> int:
    """Copy the store."""
    revision = sqlite.snapshot(_path(flags), flags.to)
    print(f"{flags.to} holds the store at revision {revision}.")
    return 0


def _path(flags: argparse.Namespace) -> str:
    return str(Path(flags.data_dir) / "store.db")


def parser() -> argparse.ArgumentParser:
    """What the command takes."""
    made = argparse.ArgumentParser(prog="pilothouse store", description="Looks after the data.")
    commands = made.add_subparsers(required=True, metavar="|".join(_COMMANDS))
    for name, command in _COMMANDS.items():
        sub = commands.add_parser(name, help=command.__doc__, description=command.__doc__)
        sub.add_argument("--data-dir", default=OwnOptions().data_dir, help="the folder that the server was given")
        sub.set_defaults(command=command)
        if command is snapshot:
            sub.add_argument("--to", required=True, help="the file to make")
        if command is restore:
            sub.add_argument("--from", dest="source", required=True, help="a file that `snapshot` made")
        if command is copy:
            sub.add_argument("source", metavar="FROM", help="a --data-dir, or the URLs of an etcd, comma separated")
            sub.add_argument("target", metavar="TO", help="likewise")
            sub.add_argument("--resume", action="store_true", help="go on with an interrupted copy")
        if command in (check, copy):
            _add_etcd_flags(sub)
    return made


def _add_etcd_flags(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--etcd-servers", default="", help="the URLs of an etcd, comma separated")
    parser.add_argument("--etcd-prefix", default="/registry", help="the start of every key")
    parser.add_argument("--etcd-cafile", default="", help="the authority of etcd's certificate")
    parser.add_argument("--etcd-certfile", default="", help="the client certificate shown to etcd")
    parser.add_argument("--etcd-keyfile", default="", help="its key")


class ProgressBar:
    """How far something is, on a terminal; nothing elsewhere."""

    _WIDTH = 30

    def __init__(self) -> None:
        self._shown = ("", -1)

    def __call__(self, what: str, done: int, total: int) -> None:
        filled = self._WIDTH if done >= total else self._WIDTH * done // total
        if not sys.stderr.isatty() or self._shown == (what, filled):
            return
        self._shown = what, filled
        bar = "#" * filled + "." * (self._WIDTH - filled)
        end = "\n" if filled == self._WIDTH else ""
        print(f"\r{what:10} [{bar}] {done}/{total}", end=end, file=sys.stderr, flush=True)


_COMMANDS: dict[str, Callable[[argparse.Namespace], int]] = {
    "check": check,
    "repair": repair,
    "snapshot": snapshot,
    "restore": restore,
    "copy": copy,
}
