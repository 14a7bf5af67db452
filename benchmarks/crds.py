"""Measures a server with many custom resource definitions: ``crds.py [--count 1000]``.

Starts a fresh server on a temporary data folder, creates the definitions one after another, and prints what the last
hundred cost in CPU time of the server, how much memory all of them took, and how long discovery and the OpenAPI index
take before and after. The exit code is 1 when a figure is worse than its aim.
"""

from __future__ import annotations

import argparse
import http.client
import json
import ssl
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent / "tools"))

from launching import free_port, running_server  # noqa: E402 (after the path is known)

TOKEN = "benchtoken"
CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
AGGREGATED = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
AIMS = {"memory_MB": 250.0, "cpu_ms_per_definition": 20.0, "discovery_ms": 50.0, "groups_ms": 50.0}


class Client:
    """One connection to the server."""

    def __init__(self, port: int) -> None:
        context = ssl.create_default_context()
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        self._connection = http.client.HTTPSConnection("127.0.0.1", port, context=context)

    def call(self, method: str, path: str, body: Any = None, accept: str = "application/json") -> tuple[int, bytes]:
        """One request: status and body."""
        headers = {"Authorization": f"Bearer {TOKEN}", "Accept": accept, "Content-Type": "application/json"}
        self._connection.request(method, path, None if body is None else json.dumps(body), headers)
        answer = self._connection.getresponse()
        return answer.status, answer.read()

    def timed(self, path: str, accept: str = "application/json") -> float:
        """Milliseconds of a GET that must succeed."""
        start = time.perf_counter()
        status, _ = self.call("GET", path, accept=accept)
        assert status == 200, (path, status)
        return (time.perf_counter() - start) * 1000


def definition(number: int) -> dict[str, Any]:
    """A definition of ordinary size: some dozen fields, a status, two columns."""
    names = {"plural": f"things{number}", "singular": f"thing{number}", "kind": f"Thing{number}"}
    fields: dict[str, Any] = {
        f"field{at}": {"type": "string", "description": "A field with some words about it.", "maxLength": 64 + at}
        for at in range(20)
    }
    fields["replicas"] = {"type": "integer", "minimum": 0, "default": 1}
    fields["items"] = {"type": "array", "items": {"type": "object", "properties": {"name": {"type": "string"}}}}
    schema = {
        "type": "object",
        "properties": {
            "spec": {"type": "object", "properties": fields},
            "status": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
        },
    }
    group = f"group{number // 5}.example.com"
    columns = [{"name": "Replicas", "type": "integer", "jsonPath": ".spec.replicas"}]
    version = {
        "name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema},
        "subresources": {"status": {}}, "additionalPrinterColumns": columns,
    }  # fmt: skip
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"things{number}.{group}"},
        "spec": {"group": group, "scope": "Namespaced", "names": names, "versions": [version]},
    }


def resident_bytes(pid: int) -> float:
    """The memory a process has."""
    fields = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(float(line.split()[1]) * 1024 for line in fields if line.startswith("VmRSS"))


def cpu_seconds(pid: int) -> float:
    """The CPU time a process has used."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / 100


def measure(client: Client, pid: int, count: int) -> dict[str, float]:
    """Create the definitions and take the figures."""
    for number in range(5):
        client.call("POST", CRDS, definition(1_000_000 + number))
    before = resident_bytes(pid)
    empty = client.timed("/apis", AGGREGATED)
    used = 0.0
    for number in range(count):
        if number == count - 100:
            used = cpu_seconds(pid)
        status, body = client.call("POST", CRDS, definition(number))
        assert status == 201, body
    wait_until_served(client, count - 1)
    cpu = (cpu_seconds(pid) - used) / 100 * 1000
    figures = {
        "discovery_empty_ms": empty,
        "cpu_ms_per_definition": cpu,
        "discovery_ms": client.timed("/apis", AGGREGATED),
        "discovery_again_ms": client.timed("/apis", AGGREGATED),
        "groups_ms": client.timed("/apis"),
        "openapi_index_ms": client.timed("/openapi/v3"),
        "list_definitions_ms": client.timed(CRDS),
        "memory_MB": (resident_bytes(pid) - before) / 1e6,
    }
    start = time.perf_counter()
    for number in range(count):
        client.call("GET", f"/apis/group{number // 5}.example.com/v1/things{number}")
    figures["first_list_ms"] = (time.perf_counter() - start) * 1000 / count
    figures["memory_all_used_MB"] = (resident_bytes(pid) - before) / 1e6
    return figures


def wait_until_served(client: Client, number: int) -> None:
    """Wait for the last definition."""
    deadline = time.monotonic() + 60
    path = f"/apis/group{number // 5}.example.com/v1/things{number}"
    while client.call("GET", path)[0] != 200:
        assert time.monotonic() < deadline, "the last definition is not served"
        time.sleep(0.01)


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=1000)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="pilothouse-crds-") as folder:
        tokens = Path(folder) / "tokens.csv"
        tokens.write_text(f'{TOKEN},bench,bench-uid,"system:masters"\n')
        port = free_port()
        flags = [f"--data-dir={folder}/data", f"--secure-port={port}", "--bind-address=127.0.0.1"]
        flags.append(f"--token-auth-file={tokens}")
        with running_server(flags, port, TOKEN, Path(folder) / "server.log") as server:
            figures = measure(Client(port), server.pid, options.count)
    missed = False
    for name, value in figures.items():
        aim = AIMS.get(name)
        missed = missed or (aim is not None and value > aim)
        print(f"{name:24} {value:10.2f}" + (f"   aim {aim:.0f}" if aim is not None else ""))
    return int(missed)


if __name__ == "__main__":
    sys.exit(main())
