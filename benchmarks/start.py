"""How a server starts on many pods: ``start.py [--pods 150000] [--nodes 10000] [--folder DIR] [--mode Node,RBAC]``.

A server makes one pod, which is then put into its store under as many names, on as many nodes. A fresh server is
started on that. Printed are when it answers a request for something else, when it is ready, when it has listed all pods
in the forms that were asked for, and its processor time and memory by then (beyond those of an empty server, as a
multiple of the pods' JSON). With ``--folder`` the store is kept there, and found again by the next run.

The exit code is 1 when the server is not ready after 10 s of processor time, or holds more than 1.6 times the JSON.
"""

from __future__ import annotations

import argparse
import http.client
import re
import sqlite3
import ssl
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Iterator
from pathlib import Path

import processor
import subjects
import uvloop
from cluster import CORE, a_pod, memory_of
from kube_client import Api, Latencies

from launching import free_port, stop

NAMESPACES = 500
MOST_SECONDS, MOST_TIMES = 10.0, 1.6
LATER_SECONDS = 90
"""What lists left behind on purpose has gone by then."""
FORMS = {
    "json": "application/json",
    "pretty": "application/json",
    "table": "application/json;as=Table;v=v1;g=meta.k8s.io",
    "protobuf": "application/vnd.kubernetes.protobuf",
    "metadata alone": "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io",
    "watch": "application/json",
    "watch in protobuf": "application/vnd.kubernetes.protobuf;stream=watch",
}
QUERIES = {
    "pretty": "resourceVersion=0&pretty=true",
    "watch": "watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true",
}
END_OF_LIST = b"initial-events-end"
"""Is in what ends the list that a watch begins with."""


async def make_first(subject: subjects.Subject) -> None:
    """One pod as it is while it runs, which everything else is made of."""
    api = Api(subject.url, subjects.TOKEN, 1, Latencies())
    path = f"{CORE}/namespaces/default"
    await api.call("", "POST", f"{path}/serviceaccounts", {"metadata": {"name": "default"}})
    pod = a_pod("pod-0", "app-0")
    pod["spec"]["nodeName"] = "node-0"
    (container,) = pod["spec"]["containers"]
    for unwanted in ("env", "livenessProbe", "ports"):
        del container[unwanted]
    status, answer = await api.call("", "POST", f"{path}/pods", pod)
    assert status == 201, answer
    running = {"phase": "Running", "podIP": "10.1.2.3", "conditions": [{"type": "Ready", "status": "True"}]}
    kind = "application/strategic-merge-patch+json"
    status, answer = await api.call("", "PATCH", f"{path}/pods/pod-0/status", {"status": running}, kind)
    assert status == 200, answer
    api.close()


def multiply(file: Path, pods: int, nodes: int) -> int:
    """Put the pod into the store under further names; bytes of all."""
    store = sqlite3.connect(file)
    prefix = "/registry/pods/"
    (value,) = store.execute(
        "SELECT value FROM log WHERE key = ? ORDER BY revision DESC", (f"{prefix}default/pod-0",)
    ).fetchone()
    first = store.execute("SELECT MAX(revision) FROM log").fetchone()[0]
    (own,) = re.findall(rb'"uid":"([^"]{36})"', value)
    size = 0

    def rows() -> Iterator[tuple[object, ...]]:
        nonlocal size
        for number in range(1, pods):
            space, name = f"ns-{number % NAMESPACES}", f"pod-{number}"
            copy = value
            for old, new in (
                (b'"pod-0"', f'"{name}"'),
                (b'"namespace":"default"', f'"namespace":"{space}"'),
                (b'"node-0"', f'"node-{number % nodes}"'),
                (b'"app-0"', f'"app-{number % 500}"'),
                (own, str(uuid.uuid4())),
            ):
                copy = copy.replace(old, new.encode())
            size += len(copy)
            yield first + number, f"{prefix}{space}/{name}", first + number, 0, 0, None, copy

    with store:
        store.executemany("INSERT INTO log VALUES (?, ?, ?, ?, ?, ?, ?)", rows())
    store.close()
    return size


def first_answer(port: int, path: str, process: subprocess.Popen[bytes], pause: float) -> None:
    """Return when a request is answered with 200; asked again after pauses."""
    unverified = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    unverified.check_hostname, unverified.verify_mode = False, ssl.CERT_NONE
    while process.poll() is None:
        connection = http.client.HTTPSConnection("127.0.0.1", port, timeout=60, context=unverified)
        try:
            connection.request("GET", path, headers={"Authorization": f"Bearer {subjects.TOKEN}"})
            if connection.getresponse().status == 200:
                return
        except (OSError, http.client.HTTPException):
            pass
        finally:
            connection.close()
        time.sleep(pause)
    raise SystemExit("the server ended")


def peak_of(pid: int) -> float:
    """The most megabytes that a process has held."""
    found = re.search(r"VmHWM:\s+(\d+)", Path(f"/proc/{pid}/status").read_text())
    return int(found[1]) / 1024 if found else 0.0


async def list_all(url: str, form: str) -> int:
    """All pods in a form; bytes of the answer."""
    api = Api(url, subjects.TOKEN, 1, Latencies())
    reader, writer = await api.connect()
    head = f"Authorization: Bearer {subjects.TOKEN}\r\nAccept: {FORMS[form]}\r\nConnection: close\r\nHost: here\r\n\r\n"
    query = QUERIES.get(form.removesuffix(" in protobuf"), "resourceVersion=0")
    writer.write(f"GET {CORE}/pods?{query} HTTP/1.1\r\n{head}".encode())
    status = await reader.readline()
    if b" 200 " not in status:
        raise SystemExit(f"{form}: {status.decode().strip()}")
    size, last = 0, b""
    while data := await reader.read(1 << 20):
        size += len(data)
        last = last[-100:] + data
        if form.startswith("watch") and END_OF_LIST in last:
            break
    writer.transport.abort()
    return size


def measure(folder: Path, size: float, empty: float, flags: list[str], forms: list[str]) -> bool:
    """Start a server on what is there; whether it keeps to the aims. An empty server holds ``empty`` megabytes."""
    port = free_port()
    words = [
        subjects.BINARY, f"--data-dir={folder}/data", f"--secure-port={port}", "--bind-address=127.0.0.1",
        f"--token-auth-file={folder}/tokens.csv", *flags,
    ]  # fmt: skip
    with (folder / "server.log").open("wb") as log:
        started = time.monotonic()
        process = subprocess.Popen(words, stdout=log, stderr=log)
        try:

            def told(what: str) -> tuple[float, float]:
                spent, memory = processor.seconds_of([process.pid]), memory_of(processor.with_children([process.pid]))
                times = (memory - empty) * 1048576 / size
                print(
                    f"{what:32} after {time.monotonic() - started:6.2f} s, {spent:6.2f} s of processor time, "
                    f"{memory:6,.0f} MB, {times:.2f} of the JSON, at most {peak_of(process.pid):,.0f} MB",
                    flush=True,
                )
                return spent, times

            first_answer(port, f"{CORE}/namespaces/default", process, 0.02)
            told("a namespace is read")
            first_answer(port, "/readyz", process, 0.25)
            spent, times = told("ready")
            for form in forms:
                began = processor.seconds_of([process.pid])
                answered = uvloop.run(list_all(f"https://127.0.0.1:{port}", form))
                took = processor.seconds_of([process.pid]) - began
                _, times = told(f"{form}, {answered / 1e6:,.0f} MB, {took:.1f} s")
            if forms:
                time.sleep(LATER_SECONDS)
                _, times = told(f"{LATER_SECONDS} s later")
            return spent <= MOST_SECONDS and times <= MOST_TIMES
        finally:
            stop(process)


def main() -> int:
    """Make a store if there is none, and measure."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pods", type=int, default=150_000)
    parser.add_argument("--nodes", type=int, default=10_000)
    parser.add_argument("--folder")
    parser.add_argument("--mode", default="Node,RBAC")
    parser.add_argument("--forms", default="json", help=f"lists to ask for, of {', '.join(FORMS)}; or all, or none")
    options = parser.parse_args()
    forms = {"all": list(FORMS), "none": []}.get(options.forms, options.forms.split(","))
    with tempfile.TemporaryDirectory(prefix="pilothouse-bench-") as name:
        folder = Path(options.folder or name)
        folder.mkdir(exist_ok=True)
        made = folder / f"made-{options.pods}"
        if not made.exists():
            with subjects.pilothouse(folder) as subject:
                uvloop.run(make_first(subject))
                empty = memory_of(processor.with_children(subject.pids))
            (file,) = folder.glob("data/*.db")
            made.write_text(f"{multiply(file, options.pods, options.nodes)} {empty:.1f}")
        size, empty = map(float, made.read_text().split())
        print(f"{options.pods:,} pods, {size / options.pods:,.0f} bytes each, {size / 1e6:,.0f} MB of JSON")
        return 0 if measure(folder, size, empty, [f"--authorization-mode={options.mode}"], forms) else 1


if __name__ == "__main__":
    sys.exit(main())
