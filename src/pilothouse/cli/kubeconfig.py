"""``pilothouse kubeconfig``: a kubeconfig for anybody, signed by the server's own authority; no server need run.

What the user may do is a matter of RBAC: a new one may do what every authenticated user may, and what their groups may.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from pilothouse.credentials.folder_claim import holder_of
from pilothouse.credentials.kubeconfig import kubeconfig, store_kubeconfig
from pilothouse.credentials.pki import Pki
from pilothouse.options.own import OwnOptions

_DEFAULT_URL = "https://127.0.0.1:6443"


def run(words: Sequence[str]) -> int:
    """Make it; the exit code."""
    from pilothouse.credentials.issuing import issue_client  # imports cryptography

    flags = parser().parse_args(words)
    folder = Path(flags.data_dir).absolute()
    pki, holder = Pki(folder / "pki"), holder_of(folder)
    try:
        pair = issue_client(pki, flags.user, flags.group, flags.days * 86400.0, time.time())
        url = flags.server or (holder.url if holder is not None else _DEFAULT_URL)
        text = kubeconfig(url, pki.ca_cert.read_bytes(), flags.user, pair=pair)
        if flags.output:
            store_kubeconfig(Path(flags.output), text)
        else:
            print(text, end="")
    except OSError as error:
        print(
            f"Error: {error}. Is --data-dir {folder} that of a server which made its own certificates?", file=sys.stderr
        )
        return 1
    return 0


def parser() -> argparse.ArgumentParser:
    """What the command takes."""
    made = argparse.ArgumentParser(
        prog="pilothouse kubeconfig", description="Makes a kubeconfig for a user, signed by the server's own authority."
    )
    made.add_argument("--user", required=True, help="the user's name, as RBAC knows it")
    made.add_argument("--group", action="append", default=[], help="a group of theirs; may be given several times")
    made.add_argument("--days", type=float, default=365.0, help="how long it is good (default: %(default)g)")
    made.add_argument("--server", default="", help="URL of the server (default: that of the one running)")
    made.add_argument("--data-dir", default=OwnOptions().data_dir, help="the server's folder (default: %(default)s)")
    made.add_argument("-o", "--output", default="", help="file to write, for its owner alone (default: print it)")
    return made
