"""``pilothouse status``: is a server up, since when, what does it hold, and when do its certificates end."""

from __future__ import annotations

import argparse
import json
import os
import ssl
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.request import urlopen

from pilothouse.cli.colours import coloured
from pilothouse.credentials.folder_claim import holder_of
from pilothouse.credentials.pki import Pki
from pilothouse.options.own import OwnOptions
from pilothouse.storage.backends import sqlite
from pilothouse.storage.backends.contract import StorageError

_SECONDS = 5.0
_SOON_DAYS = 30


def run(words: Sequence[str]) -> int:
    """Print it; the exit code is 0 if the server is ready, 3 if there is none, 1 if it is not well."""
    flags = parser().parse_args(words)
    found = look(Path(flags.data_dir).absolute())
    if flags.output == "json":
        print(json.dumps(found, indent=2))
    else:
        print(_text(found, colours=sys.stdout.isatty() and "NO_COLOR" not in os.environ))
    if not found["running"]:
        return 3
    return 0 if found["ready"] else 1


def look(folder: Path) -> dict[str, Any]:
    """All there is to know of the server in a folder."""
    holder, pki, store = holder_of(folder), Pki(folder / "pki"), folder / "store.db"
    found: dict[str, Any] = {"dataDir": str(folder), "running": holder is not None, "ready": False}
    if holder is not None:
        found |= {"pid": holder.pid, "url": holder.url, "since": _stamp(holder.since), "notReady": []}
        found["workers"] = holder.workers
        found["ready"], found["notReady"] = _ask(holder.url, pki)
    if store.exists():
        found |= {"storeBytes": sqlite.size(str(store)), "objects": _count(store)}
    found["certificates"] = {path.name: _stamp(_end(path)) for path in pki.files() if _is_certificate(path)}
    return found


def _ask(url: str, pki: Pki) -> tuple[bool, list[str]]:
    """Whether it is ready, and what is not."""
    context = ssl.create_default_context(cafile=str(pki.ca_cert) if pki.ca_cert.exists() else None)
    if pki.admin_cert.exists():
        context.load_cert_chain(pki.admin_cert, pki.admin_key)
    try:
        with urlopen(f"{url}/readyz?verbose", timeout=_SECONDS, context=context):
            return True, []
    except HTTPError as error:
        with error:
            lines = error.read().decode(errors="replace").splitlines()
        return False, [line for line in lines if line.startswith("[-]")] or [str(error)]
    except (URLError, OSError) as error:
        return False, [str(error)]


def _count(store: Path) -> int | str:
    try:
        return sqlite.count_objects(str(store))
    except (StorageError, OSError) as error:
        return str(error)


def _is_certificate(path: Path) -> bool:
    return path.suffix == ".crt" and path.exists()


def _end(path: Path) -> float:
    from cryptography import x509  # nothing else here needs it

    return x509.load_pem_x509_certificate(path.read_bytes()).not_valid_after_utc.timestamp()


def _stamp(seconds: float) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(seconds))


def _text(found: dict[str, Any], *, colours: bool) -> str:
    if not found["running"]:
        state = coloured("not running", "red", colours)
    else:
        state = coloured("ready", "green", colours) if found["ready"] else coloured("not ready", "yellow", colours)
    lines = [f"Server        {state}"]
    if found["running"]:
        lines.append(f"  Address     {found['url']} (pid {found['pid']})")
        lines.append(f"  Since       {found['since']}")
        if found["workers"] > 1:
            lines.append(f"  Workers     {found['workers']} processes, of which pid {found['pid']} is the first")
        lines += (f"  {line}" for line in found["notReady"])
    lines.append(f"Data          {found['dataDir']}")
    if "storeBytes" in found:
        lines.append(f"  Store       {found['storeBytes'] / 1e6:.1f} MB")
    if "objects" in found:
        lines.append(f"  Objects     {found['objects']}")
    soon = _stamp(time.time() + _SOON_DAYS * 86400)
    for name, end in found["certificates"].items():
        lines.append(f"  {name:24}until {coloured(end, 'red' if end < soon else '', colours)}")
    return "\n".join(lines)


def parser() -> argparse.ArgumentParser:
    """What the command takes."""
    made = argparse.ArgumentParser(
        prog="pilothouse status", description="Is the server of a data folder up, since when, and what does it hold?"
    )
    made.add_argument("--data-dir", default=OwnOptions().data_dir, help="the server's folder (default: %(default)s)")
    made.add_argument("-o", "--output", choices=("text", "json"), default="text")
    return made
