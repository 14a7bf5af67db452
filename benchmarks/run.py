"""Measures Pilothouse on this machine, alone or beside a kube-apiserver.

    run.py [--etcd] [--json FILE] [ARGUMENTS OF rows.py]
    run.py --beside KUBE_APISERVER ETCD [--rounds 2] [--json FILE] [ARGUMENTS OF rows.py]

Starts a fresh server on a temporary data folder, runs ``rows.py`` against it, stops it, then measures what a server
with no logic reaches here (``load.py limit``), and prints both side by side with the share of the limit. A share is
worth comparing between machines and days; a rate is not. With ``--etcd`` the server keeps its objects in an etcd
that is started for it, on memory: what is measured is the server. Where the server can use several processes, some rows
are measured with one and with two.

``--beside`` measures ours and a kube-apiserver in turns (ours, theirs, ours, theirs), each time fresh, and prints
medians and ratios. Their figures include etcd's memory and processor time, ours those of the embedded store; with
``--etcd`` ours runs on the same etcd, which then counts on both sides, but for two rows of memory without it.
"""

from __future__ import annotations

import argparse
import json
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from functools import partial
from pathlib import Path
from typing import Any

import crds
import subjects

HERE = Path(__file__).parent
# Row of load.py → row of the limit without its clients, and the figure to compare.
LIMITS = {
    "get pod": ("limit: one pod", "per_s"),
    "get pod rv=0": ("limit: one pod", "per_s"),
    "list 500 pods": ("limit: 500 pods", "MB_per_s"),
    "list all pods": ("limit: 5,000 pods", "MB_per_s"),
}
FIGURES = ("per_s", "MB", "s", "p50_ms")
MEGABYTE = 1024 * 1024
LESS_IS_BETTER = frozenset({"MB", "s", "p50_ms", "cpu_us"})
WORKER_ROWS = ("create configmap, 16", "create pod, 16", "get pod, 16", "list 500 pods, 16")

Rows = dict[str, dict[str, Any]]


def main() -> int:
    """Measure, print the table, and keep the figures when asked to."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", help="write the figures to this file")
    parser.add_argument("--etcd", action="store_true", help="measure on etcd instead of the embedded store")
    parser.add_argument("--beside", nargs=2, metavar=("KUBE_APISERVER", "ETCD"), help="the other's binaries")
    parser.add_argument("--rounds", type=int, default=2, help="how often each is measured, with --beside")
    parser.add_argument("--definitions", type=int, default=1000, help="with how many definitions to start; 0 for none")
    options, passed = parser.parse_known_args()
    if shutil.which("wrk") is None:
        print("The benchmark needs wrk on the PATH (Debian and Ubuntu: apt install wrk).", file=sys.stderr)
        return 1
    figures = measure_beside(options, passed) if options.beside else measure_alone(options, passed)
    if options.json:
        Path(options.json).write_text(json.dumps(figures, indent=1))
    return 0


# Alone


def measure_alone(options: argparse.Namespace, passed: list[str]) -> Rows:
    """Ours beside the limit of this machine."""
    with tempfile.TemporaryDirectory(prefix="pilothouse-bench-") as name:
        folder = Path(name)
        rows = measure(partial(subjects.pilothouse, etcd=options.etcd), folder / "ours", passed)
        rows |= measure_definitions(folder / "definitions", options.definitions)
        rows |= measure_workers(folder / "workers", passed)
        limits = measure_limit(folder / "ours")
    print_shares(rows, limits)
    return {**rows, **limits}


def measure(
    start: Callable[[Path], AbstractContextManager[subjects.Subject]], folder: Path, passed: Sequence[str]
) -> Rows:
    """The figures of a fresh server."""
    folder.mkdir(parents=True)
    with start(folder) as subject:
        print(f"\n{subject.name}: ready after {subject.seconds_to_ready:.2f} s", flush=True)
        alone: Rows = {"memory of the server alone, ready": {"MB": crds.resident_bytes(subject.pids[0]) / MEGABYTE}}
        pids = ",".join(map(str, subject.pids))
        result = folder / "rows.json"
        call("rows.py", [subject.url, "--token", subjects.TOKEN, "--pid", pids, *passed], result)
        rows: Rows = json.loads(result.read_text())
        alone["memory of the server alone, after the load"] = {"MB": crds.resident_bytes(subject.pids[0]) / MEGABYTE}
    return {"start to ready": {"s": subject.seconds_to_ready}, **rows, **(alone if len(subject.pids) > 1 else {})}


def measure_definitions(folder: Path, count: int) -> Rows:
    """How long a start takes that finds many custom resource definitions."""
    if not count:
        return {}
    folder.mkdir()
    with subjects.pilothouse(folder) as subject:
        client = crds.Client(int(subject.url.rsplit(":", 1)[1]))
        for number in range(count):
            client.call("POST", crds.CRDS, crds.definition(number))
    with subjects.pilothouse(folder) as again:
        return {f"start to ready, {count:,} definitions": {"s": again.seconds_to_ready}}


def measure_workers(folder: Path, passed: Sequence[str]) -> Rows:
    """Some rows with one process and with two; nothing where the server knows no such flag."""
    shown = subprocess.run([subjects.BINARY, "--help"], capture_output=True, text=True).stdout
    if "--workers" not in shown:
        return {}
    rows: Rows = {}
    chosen = [word for row in WORKER_ROWS for word in ("--only", row)]
    for number in (1, 2):
        start = partial(subjects.pilothouse, flags=(f"--workers={number}",))
        found = measure(start, folder / str(number), [*passed, *chosen])
        rows |= {f"{name}, {number} workers": row for name, row in found.items()}
    return rows


def measure_limit(folder: Path) -> Rows:
    """The figures of a server with no logic, with the same certificate."""
    pki = folder / "data" / "pki"
    call("load.py", ["limit", str(pki / "apiserver.crt"), str(pki / "apiserver.key")], folder / "limit.json")
    rows: Rows = json.loads((folder / "limit.json").read_text())
    return rows


def call(script: str, arguments: list[str], result: Path) -> None:
    """Run a script in a process of its own and let it print as it goes."""
    subprocess.run([sys.executable, str(HERE / script), *arguments, "--json", str(result)], check=True)


def print_shares(rows: Rows, limits: Rows) -> None:
    """Ours, the limit, and our share of it."""
    print(f"\n{'':52s}{'ours':>14s}{'µs of CPU':>12s}{'limit':>14s}{'share':>9s}")
    for name, row in rows.items():
        base, _, clients = name.partition(", ")
        limit_name, figure = LIMITS.get(base, ("", ""))
        figure = figure or next((key for key in FIGURES if key in row), "")
        if figure not in row:
            print(f"{name:52s}  {row.get('error', 'no figure')}")
            continue
        line = f"{name + ' ' + figure:52s}{row[figure]:14,.2f}{_cell(row.get('cpu_us'), 12)}"
        limit = limits.get(f"{limit_name}, {clients}", {}).get(figure)
        if limit:
            line += f"{limit:14,.2f}{row[figure] / limit:9.0%}"
        print(line + (f"   FAILED {row['failed']}" if "failed" in row else ""))


# Beside another


def measure_beside(options: argparse.Namespace, passed: list[str]) -> dict[str, Rows]:
    """Ours and theirs in turns."""
    binary, etcd = options.beside
    ours: list[Rows] = []
    theirs: list[Rows] = []
    with tempfile.TemporaryDirectory(prefix="pilothouse-bench-") as name:
        for number in range(options.rounds):
            folder = Path(name) / str(number)
            start = partial(subjects.pilothouse, etcd=options.etcd, etcd_binary=etcd)
            ours.append(measure(start, folder / "ours", passed))
            other = measure(partial(subjects.kube_apiserver, binary=binary, etcd=etcd), folder / "theirs", passed)
            theirs.append(other)
    medians = {"pilothouse": median(ours), "kube-apiserver": median(theirs)}
    print_ratios(medians["pilothouse"], medians["kube-apiserver"])
    return medians


def median(rounds: Sequence[Rows]) -> Rows:
    """Of every figure; a row that failed in one round is taken from the others."""
    found: Rows = {}
    for name in dict.fromkeys(name for rows in rounds for name in rows):
        good = [rows[name] for rows in rounds if name in rows and "error" not in rows[name]]
        keys = dict.fromkeys(key for row in good for key in row)
        found[name] = {key: statistics.median(row[key] for row in good if key in row) for key in keys}
    return found


def print_ratios(ours: Rows, theirs: Rows) -> None:
    """Both, and by how much ours is better, as a table in Markdown; below 1 theirs is."""
    print("\n| | unit | Pilothouse | kube-apiserver | better by | CPU, µs | CPU of theirs | less by |")
    print("|---|---|---|---|---|---|---|---|")
    for name, row in ours.items():
        other = theirs.get(name, {})
        figure = next((key for key in FIGURES if key in row and key in other), "")
        if figure:
            cpu, theirs_cpu = row.get("cpu_us"), other.get("cpu_us")
            cells = [name, figure, _number(row[figure]), _number(other[figure]), _ratio(figure, row, other)]
            cells += [_number(cpu), _number(theirs_cpu), _ratio("cpu_us", row, other)]
            print("| " + " | ".join(cells) + " |" + (f" FAILED {row['failed']}" if row.get("failed") else ""))


def _ratio(figure: str, row: dict[str, Any], other: dict[str, Any]) -> str:
    if not row.get(figure) or not other.get(figure):
        return ""
    ratio = row[figure] / other[figure]
    return f"{1 / ratio if figure in LESS_IS_BETTER else ratio:.1f} ×"


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:,.0f}" if value >= 100 else f"{value:,.1f}"


def _cell(value: float | None, width: int) -> str:
    return f"{_number(value):>{width}s}"


if __name__ == "__main__":
    sys.exit(main())
