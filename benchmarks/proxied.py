"""Measures what passing a request on costs: ``proxied.py [--seconds N] [--profile FILE] [--other URL PID TOKEN]``.

A backend with no logic (``limit.py``) is asked directly and then through a fresh server, as an aggregated API. Beside
the rates it prints the processor time that the server takes for one request, which does not depend on who else is busy
on the machine. ``--other`` measures a second server that runs already, such as a kube-apiserver, as proxy of the same
backend in the same run.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import socket
import ssl
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from contextlib import ExitStack
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent / "tools"))

from launching import free_port, running_server  # noqa: E402 (after the path is known)

TOKEN = "benchtoken"
PATH = "/apis/bench.example.com/v1/things"
OWN_PATH = "/api/v1/namespaces/default/services/bench"


def main() -> int:
    """Measure directly, through ours, through the other one."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=int, default=5)
    parser.add_argument("--connections", type=int, default=16)
    parser.add_argument("--profile", help="write a flame graph of ours to this file (needs py-spy)")
    parser.add_argument("--other", nargs=3, metavar=("URL", "PID", "TOKEN"))
    options = parser.parse_args()
    if shutil.which("wrk") is None:
        print("The benchmark needs wrk on the PATH (Debian and Ubuntu: apt install wrk).", file=sys.stderr)
        return 1
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="pilothouse-bench-")))
        (folder / "tokens.csv").write_text(f'{TOKEN},bench,bench-uid,"system:masters"\n')
        port, behind = free_port(), free_port()
        flags = [
            f"--data-dir={folder}/data",
            f"--secure-port={port}",
            "--bind-address=127.0.0.1",
            f"--token-auth-file={folder}/tokens.csv",
        ]
        server = stack.enter_context(running_server(flags, port, TOKEN, folder / "server.log"))
        pki = folder / "data" / "pki"
        command = [str(HERE / "limit.py"), str(behind), str(pki / "apiserver.crt"), str(pki / "apiserver.key")]
        backend = subprocess.Popen([sys.executable, *command])
        stack.callback(backend.wait)
        stack.callback(backend.kill)
        await_listening(behind)
        measure("direct", f"https://127.0.0.1:{behind}", TOKEN, backend.pid, options)
        register(server.url, TOKEN, behind)
        measure("an object of ours", server.url, TOKEN, server.pid, options, OWN_PATH)
        if options.profile:
            profiler = [
                "py-spy",
                "record",
                "-o",
                options.profile,
                "-f",
                "raw",
                "--nonblocking",
                "-r",
                "200",
                "-d",
                str(options.seconds),
            ]
            stack.enter_context(subprocess.Popen([*profiler, "-p", str(server.pid)], stdout=subprocess.DEVNULL))
        measure("through ours", server.url, TOKEN, server.pid, options)
        if options.other:
            url, pid, token = options.other
            register(url, token, behind)
            measure("through the other", url, token, int(pid), options)
    return 0


def await_listening(port: int) -> None:
    """Return when somebody listens."""
    for _ in range(100):
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.1)


def register(url: str, token: str, port: int) -> None:
    """Put the backend behind a server and wait until it answers."""
    service = {"type": "ExternalName", "externalName": "localhost", "ports": [{"port": port}]}
    reference = {"namespace": "default", "name": "bench", "port": port}
    spec = {"group": "bench.example.com", "version": "v1", "groupPriorityMinimum": 100, "versionPriority": 10}
    spec |= {"insecureSkipTLSVerify": True, "service": reference}
    there = {"metadata": {"name": "bench"}, "spec": service}
    while call(url + "/api/v1/namespaces/default/services", token, there) == 404:
        time.sleep(0.1)  # the namespace comes soon after the start
    name = {"metadata": {"name": "v1.bench.example.com"}, "spec": spec}
    call(url + "/apis/apiregistration.k8s.io/v1/apiservices", token, name)
    for _ in range(300):
        if call(url + PATH, token) == 200:
            return
        time.sleep(0.1)
    raise SystemExit("the backend does not answer through the server")


def call(url: str, token: str, body: dict[str, Any] | None = None) -> int:
    """The status of one request."""
    headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
    request = urllib.request.Request(url, None if body is None else json.dumps(body).encode(), headers)
    try:
        context = ssl._create_unverified_context()
        return int(urllib.request.urlopen(request, context=context).status)
    except urllib.error.HTTPError as error:
        return error.code


def measure(name: str, url: str, token: str, pid: int, options: argparse.Namespace, path: str = PATH) -> None:
    """Print rate, latency and processor time of a request."""
    before = processor_seconds(pid)
    command = [
        "wrk",
        "-t1",
        f"-c{options.connections}",
        f"-d{options.seconds}s",
        "-s",
        str(HERE / "wrk.lua"),
        url + path,
    ]
    found = subprocess.run(command, env={**os.environ, "TOKEN": token}, capture_output=True, text=True, check=True)
    used = processor_seconds(pid) - before
    line = next(line for line in found.stdout.splitlines() if line.startswith("RESULT"))
    rate, median, slow, failed, refused, _ = map(float, line.split()[1:])
    cost = used / (rate * options.seconds) * 1e6
    print(
        f"{name:20s}{rate:10,.0f}/s  {median:7.2f} ms half, {slow:7.2f} ms 99%  {cost:7.1f} µs of processor a request",
        end="",
    )
    print(f"  FAILED {failed + refused:.0f}" if failed or refused else "", flush=True)


def processor_seconds(pid: int) -> float:
    """User and system time of a process so far."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


if __name__ == "__main__":
    sys.exit(main())
