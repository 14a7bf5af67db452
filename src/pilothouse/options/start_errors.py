"""Why a server could not start, told to the person who started it: the flag, the path, and what to do.

Parts of the server raise what the operating system said; only here is it known which flag named the file. One reading
for all flags, so that a new flag needs nothing for it.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator, Mapping, Set
from pathlib import Path


def explain(error: Exception, flags: Mapping[str, str], given: Set[str]) -> str:
    """One line for the log or the terminal; ``flags`` are all with their values, ``given`` those of the user."""
    if not isinstance(error, OSError) or error.errno is None:
        return str(error)
    reason = os.strerror(error.errno)
    data_dir = flags.get("data-dir", "")
    path = os.fsdecode(error.filename) if isinstance(error.filename, str | bytes) else ""
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return f"{reason} (writing {path or data_dir}): free some space, or name another folder with --data-dir"
    if not path:
        return str(error)
    for flag, value in _paths(flags, given):
        if os.path.abspath(value) == os.path.abspath(path):
            return f"--{flag}: cannot open {path}: {reason}{_remedy(error.errno)}"
    if Path(data_dir).absolute() in Path(path).absolute().parents:
        return f"--data-dir: cannot use {path}: {reason}{_remedy(error.errno)}"
    return f"{path}: {reason}"


def _remedy(number: int) -> str:
    match number:
        case errno.ENOENT:
            return ". Make the file, or correct the flag"
        case errno.EACCES | errno.EPERM | errno.EROFS:
            return f". It must be open to the user of this process (uid {os.getuid()})"
        case errno.ENOTDIR | errno.EEXIST | errno.EISDIR:
            return ". Name another path"
    return ""


def _paths(flags: Mapping[str, str], given: Set[str]) -> Iterator[tuple[str, str]]:
    """The flags whose value is, or lists, something like a path; those that were given first."""
    for flag in sorted(flags, key=lambda name: name not in given):
        for value in flags[flag].strip("[]").split(","):
            if "/" in value or flag in given:
                yield flag, value
