"""A well-behaved client in a process of its own, which does not compete with the attacker for Python's lock.

``python second_client.py PORT FOLDER_OF_CERTIFICATES PID_OF_THE_SERVER`` visits the server from one line of its input
to the next: it says that it is connected, makes one small request after the other, prints for each how long it waited,
for how much of the server's work, and how slow the processor is just then, and says when it is over. The work is the
processor time of the whole process meanwhile, less what it did while this client itself waited for a processor. So
neither an attacker nor a busy machine makes a difference to the second figure, but for processors that share their
caches and units with others: the third one tells by how much.
"""

from __future__ import annotations

import gc
import select
import ssl
import sys
import time
from collections.abc import Callable
from http.client import HTTPException, HTTPSConnection
from pathlib import Path

PAUSE_SECONDS = 0.002
ADDITIONS = 2_000
ADDING_SECONDS = 6e-5
"""What so many additions take of a processor that nobody shares, on the machines where the bounds were found."""


def processor_seconds(pid: int) -> Callable[[], float]:
    """The processor time of a process, by its clock: see clock_getcpuclockid(3), which Python does not offer."""
    clock = ~pid << 3 | 2
    return lambda: time.clock_gettime(clock)


def run_delay() -> float:
    """How long this thread has waited for a processor."""
    return int(Path("/proc/thread-self/schedstat").read_bytes().split()[1]) / 1e9


def slowness() -> float:
    """How many times as long as usual the same work takes now."""
    started, total = time.thread_time(), 0
    for number in range(ADDITIONS):
        total += number
    return (time.thread_time() - started) / ADDING_SECONDS


def is_over(seconds: float) -> bool:
    return bool(select.select([sys.stdin], [], [], seconds)[0])


def visit(connection: HTTPSConnection, worked: Callable[[], float]) -> None:
    """One request after the other until there is a line to read; one is served in any case."""
    served = False
    while not (is_over(PAUSE_SECONDS) and served):
        started, spent, delay = time.monotonic(), worked(), run_delay()
        try:
            connection.request("GET", "/api/v1/namespaces/default")
            assert connection.getresponse().read()
        except (OSError, HTTPException):
            connection.close()
            if is_over(0):
                break
            continue
        spent, delay = worked() - spent, run_delay() - delay
        waited = time.monotonic() - started
        print(waited, max(0.0, spent - delay), slowness(), flush=True)
        served = True


def main(port: str, pki: str, pid: str) -> None:
    gc.disable()
    context = ssl.create_default_context(cafile=f"{pki}/ca.crt")
    context.load_cert_chain(f"{pki}/admin.crt", f"{pki}/admin.key")
    while sys.stdin.readline():
        connection = HTTPSConnection("127.0.0.1", int(port), timeout=120, context=context)
        connection.connect()
        print("connected", flush=True)
        visit(connection, processor_seconds(int(pid)))
        sys.stdin.readline()
        connection.close()
        print("over", flush=True)
        gc.collect()


if __name__ == "__main__":
    main(*sys.argv[1:])
