"""A well-behaved client in a process of its own, which does not compete with the attacker for Python's lock.

``python second_client.py PORT FOLDER_OF_CERTIFICATES PID_OF_THE_SERVER`` says that it is connected, makes one small
request after the other until its input ends, and prints for each how long it waited, and for how much of the server's
work: the processor time of all its threads meanwhile, less what they did while this client itself waited for a
processor. So neither an attacker nor a busy machine makes a difference to the second figure.
"""

from __future__ import annotations

import gc
import os
import ssl
import sys
import threading
import time
from contextlib import suppress
from http.client import HTTPException, HTTPSConnection
from pathlib import Path


def processor_seconds(pid: str) -> float:
    """Of all threads of a process; a thread that has ended meanwhile takes its share along."""
    total = 0
    for task in os.listdir(f"/proc/{pid}/task"):
        with suppress(OSError):
            total += int(Path(f"/proc/{pid}/task/{task}/schedstat").read_bytes().split()[0])
    return total / 1e9


def run_delay() -> float:
    """How long this thread has waited for a processor."""
    return int(Path("/proc/thread-self/schedstat").read_bytes().split()[1]) / 1e9


def await_end(over: threading.Event) -> None:
    sys.stdin.read()
    over.set()


def main(port: str, pki: str, pid: str) -> None:
    gc.disable()
    context = ssl.create_default_context(cafile=f"{pki}/ca.crt")
    context.load_cert_chain(f"{pki}/admin.crt", f"{pki}/admin.key")
    connection = HTTPSConnection("127.0.0.1", int(port), timeout=120, context=context)
    connection.connect()
    print("connected", flush=True)
    over = threading.Event()
    threading.Thread(target=await_end, args=(over,), daemon=True).start()
    served = False
    while not over.is_set() or not served:
        started, spent, delay = time.monotonic(), processor_seconds(pid), run_delay()
        try:
            connection.request("GET", "/api/v1/namespaces/default")
            assert connection.getresponse().read()
        except (OSError, HTTPException):
            connection.close()
            if over.is_set():
                break
            continue
        spent, delay = processor_seconds(pid) - spent, run_delay() - delay
        print(time.monotonic() - started, max(0.0, spent - delay), flush=True)
        served = True
        over.wait(0.002)


if __name__ == "__main__":
    main(*sys.argv[1:])
