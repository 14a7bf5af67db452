"""A well-behaved client in a process of its own, which does not compete with the attacker for Python's lock.

``python second_client.py PORT FOLDER_OF_CERTIFICATES PID_OF_THE_SERVER`` visits the server from one line of its input
to the next: it says that it is connected, makes one small request after the other, prints for each how long it waited,
for how much of the server's work, how slow the processor is just then, and how long the server had none since the last
visit, and says when it is over.

The work is the processor time of all of the server meanwhile, and no more than the time that passed, less the times in
which this client or the loop of the server was ready to go on and was given no processor: what other threads of the
server do then keeps nobody waiting. So neither an attacker nor a busy machine makes a difference to the second figure,
but for processors that share their caches and units with others, and for what attackers pile up before a server that is
not given a processor: the third and the fourth one tell by how much. Visits cost the server and the machine as much as
some attacks, so it hurries only until there are enough of them to tell what one in a hundred is like.
"""

from __future__ import annotations

import gc
import os
import re
import select
import socket
import ssl
import sys
import time
from collections.abc import Callable

REQUEST = b"GET /api/v1/namespaces/default HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"
LENGTH = re.compile(rb"\r\nContent-Length: (\d+)\r\n", re.IGNORECASE)
HURRIED_VISITS = 150
HURRIED_PAUSE_SECONDS = 0.002
PAUSE_SECONDS = 0.02
ADDITIONS = 2_000
ADDING_SECONDS = 6e-5
"""What so many additions take of a processor that nobody shares, on the machines where the bounds were found."""


def processor_seconds(pid: int) -> Callable[[], float]:
    """The processor time of a process, by its clock: see clock_getcpuclockid(3), which Python does not offer."""
    clock = ~pid << 3 | 2
    return lambda: time.clock_gettime(clock)


def run_delays(task: str) -> Callable[[], float]:
    """How long a thread has waited for a processor; of a process, its first one: a server's loop."""
    file = os.open(f"/proc/{task}/schedstat", os.O_RDONLY)
    return lambda: int(os.pread(file, 128, 0).split()[1]) / 1e9


def slowness() -> float:
    """How many times as long as usual the same work takes now."""
    started, total = time.thread_time(), 0
    for number in range(ADDITIONS):
        total += number
    return (time.thread_time() - started) / ADDING_SECONDS


def is_over(seconds: float) -> bool:
    return bool(select.select([sys.stdin], [], [], seconds)[0])


def ask(connection: ssl.SSLSocket) -> None:
    """One request, and all of its answer. Raises ``OSError``."""
    connection.sendall(REQUEST)
    answer = b""
    while True:
        more = connection.recv(65536)
        if not more:
            raise ConnectionError("the server hung up")
        answer += more
        head, end, body = answer.partition(b"\r\n\r\n")
        length = LENGTH.search(head + b"\r\n")
        if end and length is not None and len(body) >= int(length[1]):
            return


def visit(
    connect: Callable[[], ssl.SSLSocket],
    worked: Callable[[], float],
    run_delay: Callable[[], float],
    server_delay: Callable[[], float],
) -> None:
    """Say so when connected, then one request after the other until there is a line to read; one in any case."""
    connection: ssl.SSLSocket | None = connect()
    print("connected", flush=True)
    served, delayed = 0, server_delay()
    while not (is_over(HURRIED_PAUSE_SECONDS if served < HURRIED_VISITS else PAUSE_SECONDS) and served):
        started, spent, put_off = time.monotonic(), worked(), run_delay() + server_delay()
        try:
            connection = connection or connect()
            ask(connection)
        except OSError:
            if connection is not None:
                connection.close()
                connection = None
            if is_over(0):
                break
            continue
        before, delayed = delayed, server_delay()
        spent, put_off = worked() - spent, run_delay() + delayed - put_off
        waited = time.monotonic() - started
        print(waited, max(0.0, min(spent, waited - put_off)), slowness(), delayed - before, flush=True)
        served += 1
    if connection is not None:
        connection.close()


def main(port: str, pki: str, pid: str) -> None:
    gc.disable()
    context = ssl.create_default_context(cafile=f"{pki}/ca.crt")
    context.load_cert_chain(f"{pki}/admin.crt", f"{pki}/admin.key")

    def connect() -> ssl.SSLSocket:
        return context.wrap_socket(socket.create_connection(("127.0.0.1", int(port)), 120), server_hostname="127.0.0.1")

    run_delay, server_delay = run_delays("thread-self"), run_delays(pid)
    while sys.stdin.readline():
        visit(connect, processor_seconds(int(pid)), run_delay, server_delay)
        sys.stdin.readline()
        print("over", flush=True)
        gc.collect()


if __name__ == "__main__":
    main(*sys.argv[1:])
