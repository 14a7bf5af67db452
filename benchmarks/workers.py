"""What several processes bring and cost: ``workers.py [--counts 1,2] [--rounds 2] [--seconds 3] [--clients 16]``.

For each number of workers in turn, and that several times over, a fresh server is asked by so many clients at once:
get of a config map, list of 100, create. Printed are the medians of the rate and of the processor time that all
processes of the server took for a request, with the share of the first one, and the memory of all.

The load generator (wrk, one thread) needs processors, too. Where there are as few as processes of the server, it takes
from them what it needs: the rate then says little, the processor time of a request says what the workers cost.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE.parent / "tools")]

import load as loading  # noqa: E402

from launching import free_port, running_server  # noqa: E402 (after the path is known)

TOKEN = "benchtoken"
WRK: Any = loading.wrk
CLIENT: Any = loading.Client
TICKS = os.sysconf("SC_CLK_TCK")
PAGE = os.sysconf("SC_PAGE_SIZE")
MAPS = "/api/v1/namespaces/default/configmaps"
Row = tuple[float, float, float]
Load = Callable[[], dict[str, float]]
MAP = {"apiVersion": "v1", "kind": "ConfigMap", "data": {"a": "1", "b": "two", "c": "x" * 80}}


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--counts", default="1,2", help="numbers of workers")
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--seconds", type=int, default=3, help="of each load")
    parser.add_argument("--clients", type=int, default=16)
    flags = parser.parse_args()
    counts = [int(each) for each in flags.counts.split(",")]
    found: dict[int, dict[str, list[Row]]] = {count: {} for count in counts}
    for _ in range(flags.rounds):
        for count in counts:
            for name, figures in measure(count, flags.seconds, flags.clients).items():
                found[count].setdefault(name, []).append(figures)
    print(f"{'':10} {'workers':>7} {'per s':>8} {'µs of processor':>16} {'of the first':>13}")
    for name in found[counts[0]]:
        for count in counts:
            rate, cost, first = (statistics.median(each) for each in zip(*found[count][name], strict=True))
            if name == "memory":
                print(f"{name:10} {count:7} {rate:8.0f} MB")
            else:
                print(f"{name:10} {count:7} {rate:8.0f} {cost:16.0f} {first:12.0%}")
    return 0


def measure(count: int, seconds: int, clients: int) -> dict[str, Row]:
    """Rate, processor time of a request in microseconds, and the first process's share of it, by kind of request."""
    with tempfile.TemporaryDirectory(prefix="pilothouse-bench-") as name:
        folder, port = Path(name), free_port()
        (folder / "tokens.csv").write_text(f'{TOKEN},bench,1,"system:masters"\n')
        flags = [
            f"--workers={count}",
            f"--data-dir={folder}/data",
            f"--secure-port={port}",
            "--bind-address=127.0.0.1",
            f"--token-auth-file={folder / 'tokens.csv'}",
        ]
        with running_server(flags, port, TOKEN, folder / "server.log") as server:
            url, client = server.url, CLIENT(server.url, TOKEN)
            for number in range(100):
                client.call("POST", MAPS, {**MAP, "metadata": {"name": f"m-{number}"}})
            pids = [server.pid, *map(int, Path(f"/proc/{server.pid}/task/{server.pid}/children").read_text().split())]
            loads: dict[str, Load] = {
                "get": lambda: WRK(url, TOKEN, f"{MAPS}/m-1", seconds, clients),
                "list 100": lambda: WRK(url, TOKEN, MAPS, seconds, clients),
                "create": lambda: WRK(
                    url, TOKEN, "/api/v1/namespaces/kube-public/configmaps", seconds, clients, "POST",
                    {**MAP, "metadata": {"generateName": "b-"}},
                ),
            }  # fmt: skip
            for load in loads.values():
                load()  # what is imported and loaded at first use
            rows = {kind: costed(load, pids, seconds) for kind, load in loads.items()}
            return {**rows, "memory": (sum(map(resident, pids)) / 1e6, 0.0, 0.0)}


def costed(load: Load, pids: list[int], seconds: float) -> Row:
    """Run a load; rate, processor time a request, and the share of the first process."""
    before = [processor_seconds(pid) for pid in pids]
    row = load()
    used = [processor_seconds(pid) - earlier for pid, earlier in zip(pids, before, strict=True)]
    requests = row["per_s"] * seconds
    return row["per_s"], sum(used) / requests * 1e6, used[0] / (sum(used) or 1.0)


def processor_seconds(pid: int) -> float:
    """User and system time of a process so far."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


def resident(pid: int) -> int:
    """Bytes of memory that a process has."""
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * PAGE


if __name__ == "__main__":
    sys.exit(main())
