"""Measures Pilothouse on this machine: ``run.py [--etcd] [--json FILE] [ARGUMENTS OF load.py]``.

Starts a fresh server on a temporary data folder, runs ``load.py`` against it, stops it, then measures what a server
with no logic reaches here (``load.py limit``), and prints both side by side with the share of the limit. A share is
worth comparing between machines and days; a rate is not. With ``--etcd`` the server keeps its objects in an etcd
that is started for it, on memory: what is measured is the server.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent / "tools"))

from launching import free_port, running_server  # noqa: E402 (after the path is known)
from pilothouse.testing.etcd_process import EtcdCluster  # noqa: E402

TOKEN = "benchtoken"
# Row of load.py → row of the limit without its clients, and the figure to compare.
LIMITS = {
    "get pod": ("limit: one pod", "per_s"),
    "get pod rv=0": ("limit: one pod", "per_s"),
    "list 500 pods": ("limit: 500 pods", "MB_per_s"),
    "list all pods": ("limit: 5,000 pods", "MB_per_s"),
}

Rows = dict[str, dict[str, Any]]


def main() -> int:
    """Measure, print the table, and keep the figures when asked to."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", help="write the figures to this file")
    parser.add_argument("--etcd", action="store_true", help="measure on etcd instead of the embedded store")
    options, passed = parser.parse_known_args()
    if shutil.which("wrk") is None:
        print("The benchmark needs wrk on the PATH (Debian and Ubuntu: apt install wrk).", file=sys.stderr)
        return 1
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="pilothouse-bench-")))
        urls = stack.enter_context(EtcdCluster()).urls if options.etcd else ()
        rows = measure_server(folder, passed, urls)
        limits = measure_limit(folder)
    print_table(rows, limits)
    if options.json:
        Path(options.json).write_text(json.dumps({**rows, **limits}, indent=1))
    return 0


def measure_server(folder: Path, passed: list[str], etcd: tuple[str, ...] = ()) -> Rows:
    """The figures of a fresh server."""
    tokens = folder / "tokens.csv"
    tokens.write_text(f'{TOKEN},bench,bench-uid,"system:masters"\n')
    port = free_port()
    flags = [
        f"--data-dir={folder}/data",
        f"--secure-port={port}",
        "--bind-address=127.0.0.1",
        f"--token-auth-file={tokens}",
        *([f"--etcd-servers={','.join(etcd)}"] if etcd else []),
    ]
    with running_server(flags, port, TOKEN, folder / "server.log") as server:
        print(f"ready after {server.seconds_to_ready:.2f} s", flush=True)
        call_load([server.url, "--token", TOKEN, "--pid", str(server.pid), *passed], folder / "rows.json")
        rows = json.loads((folder / "rows.json").read_text())
    return {"start to ready": {"s": server.seconds_to_ready}, **rows}


def measure_limit(folder: Path) -> Rows:
    """The figures of a server with no logic, with the same certificate."""
    pki = folder / "data" / "pki"
    call_load(["limit", str(pki / "apiserver.crt"), str(pki / "apiserver.key")], folder / "limit.json")
    rows: Rows = json.loads((folder / "limit.json").read_text())
    return rows


def call_load(arguments: list[str], result: Path) -> None:
    """Run load.py in a process of its own and let it print as it goes."""
    subprocess.run([sys.executable, str(HERE / "load.py"), *arguments, "--json", str(result)], check=True)


def print_table(rows: Rows, limits: Rows) -> None:
    """Ours, the limit, and our share of it."""
    print(f"\n{'':42s}{'ours':>14s}{'limit':>14s}{'share':>9s}")
    for name, row in rows.items():
        base, _, clients = name.partition(", ")
        limit_name, figure = LIMITS.get(base, ("", ""))
        figure = figure or next((key for key in ("per_s", "MB", "s", "p50_ms") if key in row), "")
        if figure not in row:
            print(f"{name:42s}  {row.get('error', 'no figure')}")
            continue
        line = f"{name + ' ' + figure:42s}{row[figure]:14,.2f}"
        limit = limits.get(f"{limit_name}, {clients}", {}).get(figure)
        if limit:
            line += f"{limit:14,.2f}{row[figure] / limit:9.0%}"
        print(line + (f"   FAILED {row['failed']}" if "failed" in row else ""))


if __name__ == "__main__":
    sys.exit(main())
