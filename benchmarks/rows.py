"""All rows of the benchmark against one server that runs: ``rows.py URL --token T --pid P[,P…] [OPTIONS OF load.py]``.

Those of ``load.py`` come first, then more: updates, deletes, patches that change something, writes that pass a webhook
or a policy, lists in other forms, streamed lists. Beside every rate stands the processor time that the server's
processes took for one request (for one event, where events are counted).
"""

from __future__ import annotations

import argparse
import base64
import http.client
import importlib
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote

import processor

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent / "tools"))

from launching import free_port  # noqa: E402 (after the path is known)
from pilothouse.credentials.issuing import issue_serving  # noqa: E402
from pilothouse.credentials.pki import Pki, ensure_pki  # noqa: E402

load: Any = importlib.import_module("load")  # shared with others, and without types

Row = dict[str, Any]
NS = "bench-more"
MAPS = f"/api/v1/namespaces/{NS}/configmaps"
PODS = f"/api/v1/namespaces/{load.NS}/pods"
METADATA = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
PROTOBUF = "application/vnd.kubernetes.protobuf"
ADMISSION = "/apis/admissionregistration.k8s.io/v1"
LISTED = 1000
COLLECTED = 500
NOTICED_SECONDS = 3.0
"""What servers may take to notice a webhook or policy."""


def config_map(name: str, value: str = "1", **labels: str) -> dict[str, Any]:
    """A config map as the load's own, with a name."""
    metadata = {"name": name, "labels": {"app": "bench", **labels}}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"a": value, "c": "x" * 80}}


class Rows:
    """The rows beyond those of load.py."""

    def __init__(self, options: Any) -> None:
        self._options = options
        self._client = load.Client(options.url, options.token)
        self._base, self._seconds = options.url.rstrip("/"), options.seconds
        self.rows: dict[str, Row] = {}

    def measure(self) -> None:
        """All of them, in order."""
        client = self._client
        client.call("POST", "/api/v1/namespaces", {"metadata": {"name": NS}})
        pod = client.call("GET", f"{PODS}?limit=1")[1]["items"][0]["metadata"]["name"]
        client.call("POST", MAPS, config_map("one"))
        self._changes(pod)
        self._deletions()
        self._lists()
        with self._webhook():
            self._row("create configmap, webhook, 16 clients", self._create(f"hooked-{os.getpid()}"))
        self._policy()

    def _changes(self, pod: str) -> None:
        one = f"{MAPS}/one"
        row, varied = self._row, self._varied
        row("update configmap, 1 client", lambda: varied("PUT", one, config_map("one", "@N@")))
        status = {"status": {"conditions": [{"type": "Bench", "status": "True", "message": "@N@"}]}}
        merge = "application/merge-patch+json"
        row("status patch pod, 1 client", lambda: varied("PATCH", f"{PODS}/{pod}/status", status, kind=merge))
        found = self._client.call("GET", f"{PODS}/{pod}")[1]
        found["metadata"].pop("resourceVersion")
        found["status"] = status["status"]
        row("status update pod, 1 client", lambda: varied("PUT", f"{PODS}/{pod}/status", found))
        patch = [{"op": "replace", "path": "/data/a", "value": "@N@"}]
        row("JSON patch configmap, 1 client", lambda: varied("PATCH", one, patch, kind="application/json-patch+json"))
        row("merge patch configmap, 16 clients", lambda: varied("PATCH", one, {"data": {"a": "@N@"}}, 16, kind=merge))
        applied, apply = config_map("applied-anew", "@N@"), "application/apply-patch+yaml"
        target = f"{MAPS}/applied-anew?fieldManager=bench&force=true"
        row("apply configmap that changes, 1 client", lambda: varied("PATCH", target, applied, kind=apply))

    def _deletions(self) -> None:
        def delete() -> Row:
            made = self._varied("POST", MAPS, config_map("gone-@N@"), 16)
            seconds = max(1, int(self._seconds // 2))
            row = self._varied("DELETE", f"{MAPS}/gone-@N@", None, 16, seconds)
            if row.get("failed") and row["requests"] > made["requests"]:  # there were none left
                return {"error": f"{row['requests']} deletes in {seconds} s are more than there were objects"}
            return row

        self._row("delete configmap, 16 clients", delete)
        self._row("delete collection of 500", self._delete_collection)

    def _delete_collection(self) -> Row:
        for number in range(COLLECTED):
            self._client.call("POST", MAPS, config_map(f"many-{number}", many="yes"))
        before, start = processor.seconds_of(self._pids), time.perf_counter()
        status, _ = self._client.call("DELETE", f"{MAPS}?labelSelector=many%3Dyes")
        elapsed = time.perf_counter() - start
        spent = processor.seconds_of(self._pids) - before
        row = {"per_s": COLLECTED / elapsed, "cpu_us": spent / COLLECTED * 1e6}
        return row if status == 200 else {"error": f"status {status}"}

    def _lists(self) -> None:
        client = self._client
        for number in range(LISTED):
            client.call("POST", MAPS, config_map(f"listed-{number}", slot=str(number % 10)))
        selected = f"{MAPS}?resourceVersion=0&labelSelector={quote('slot=3')}"
        self._row("list by label (10% of 1,000 match), 1 client", lambda: self._get(selected))
        everything = f"{PODS}?resourceVersion=0"
        self._row("list metadata of all pods, 1 client", lambda: self._get(everything, METADATA))
        self._row("list all pods in protobuf, 1 client", lambda: self._get(everything, PROTOBUF))
        self._row("watch list of all pods, 1 client", self._watch_list)

    def _watch_list(self) -> Row:
        """Streamed lists, one after the other: objects a second."""
        target = f"{PODS}?watch=1&sendInitialEvents=true&allowWatchBookmarks=true"
        target += "&resourceVersionMatch=NotOlderThan&resourceVersion=0&timeoutSeconds=60"
        before, start, objects = processor.seconds_of(self._pids), time.perf_counter(), 0
        while time.perf_counter() - start < self._seconds:
            client = load.Client(self._options.url, self._options.token)
            client.call("GET", "/version")
            head = {"Authorization": f"Bearer {self._options.token}", "Accept": "application/json"}
            client.conn.request("GET", target, None, head)
            stream = client.conn.getresponse()
            for line in stream:
                if b"k8s.io/initial-events-end" in line:
                    break
                objects += 1
            client.conn.close()
        elapsed = time.perf_counter() - start
        spent = processor.seconds_of(self._pids) - before
        return {"per_s": objects / elapsed, "cpu_us": spent / max(objects, 1) * 1e6}

    @contextmanager
    def _webhook(self) -> Iterator[None]:
        """Config maps of the namespace pass a webhook."""
        with tempfile.TemporaryDirectory(prefix="pilothouse-bench-") as name:
            folder, port = Path(name), free_port()
            ensure_pki(folder, dns_names=["localhost"], ip_addresses=["127.0.0.1"])
            pki = Pki(folder / "pki")
            cert, key = folder / "hook.crt", folder / "hook.key"
            issue_serving(pki, cert, key, ["localhost"], ["127.0.0.1"], time.time())
            process = subprocess.Popen([sys.executable, str(HERE / "webhook.py"), str(port), str(cert), str(key)])
            try:
                authority = base64.b64encode(pki.ca_cert.read_bytes()).decode()
                hook = {
                    "name": "bench.example.com",
                    "clientConfig": {"url": f"https://localhost:{port}/allow", "caBundle": authority},
                    "rules": [_RULE],
                    "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": NS}},
                    "sideEffects": "None",
                    "admissionReviewVersions": ["v1"],
                }
                configuration = {"metadata": {"name": "bench"}, "webhooks": [hook]}
                self._client.call("POST", f"{ADMISSION}/validatingwebhookconfigurations", configuration)
                time.sleep(NOTICED_SECONDS)
                yield
            finally:
                self._client.call("DELETE", f"{ADMISSION}/validatingwebhookconfigurations/bench")
                process.kill()
                process.wait()

    def _policy(self) -> None:
        """Config maps of the namespace pass an expression."""
        spec = {
            "matchConstraints": {"resourceRules": [_RULE]},
            "validations": [{"expression": "object.data.all(key, size(object.data[key]) < 1000)"}],
        }
        bound = {
            "policyName": "bench",
            "validationActions": ["Deny"],
            "matchResources": {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": NS}}},
        }
        made = {"metadata": {"name": "bench"}}
        self._client.call("POST", f"{ADMISSION}/validatingadmissionpolicies", {**made, "spec": spec})
        self._client.call("POST", f"{ADMISSION}/validatingadmissionpolicybindings", {**made, "spec": bound})
        time.sleep(NOTICED_SECONDS)
        self._row("create configmap, policy, 16 clients", self._create(f"judged-{os.getpid()}"))
        self._client.call("DELETE", f"{ADMISSION}/validatingadmissionpolicybindings/bench")
        self._client.call("DELETE", f"{ADMISSION}/validatingadmissionpolicies/bench")

    def _create(self, prefix: str) -> Callable[[], Row]:
        return lambda: self._varied("POST", MAPS, config_map(f"{prefix}-@N@"), 16)

    @property
    def _pids(self) -> list[int]:
        return pids_of(self._options)

    def _row(self, name: str, action: Callable[[], Row]) -> None:
        if self._options.only and not any(only in name for only in self._options.only):
            return
        row = self.rows[name] = action()
        shown = (f"{key}={value:,.2f}" if isinstance(value, float) else f"{key}={value}" for key, value in row.items())
        print(f"{name:44s} " + "  ".join(shown), flush=True)

    def _get(self, path: str, accept: str = "application/json") -> Row:
        row: Row = load.wrk(self._base, self._options.token, path, self._seconds, 1, accept=accept)
        return row

    def _varied(
        self, method: str, target: str, body: Any, connections: int = 1, seconds: float = 0, kind: str = ""
    ) -> Row:
        """What wrk.lua measures, with requests that differ."""
        seconds = seconds or self._seconds
        environment = {
            **os.environ,
            "TOKEN": self._options.token,
            "METHOD": method,
            "TARGET": target,
            "BODY": "" if body is None else json.dumps(body),
            "CONTENT_TYPE": kind or "application/json",
        }
        command = ["wrk", "-t1", f"-c{connections}", f"-d{seconds}s", "--timeout", "120s"]
        before = processor.seconds_of(self._pids)
        out = subprocess.run(
            [*command, "-s", str(HERE / "varied.lua"), self._base + "/"],
            env=environment,
            capture_output=True,
            text=True,
        ).stdout
        spent = processor.seconds_of(self._pids) - before
        match = re.search(r"RESULT ([\d.]+) ([\d.]+) ([\d.]+) (\d+) (\d+) ([\d.]+) (\d+)", out)
        if match is None:
            return {"error": out[-300:]}
        rate, p50, p99, errors, bad, _, count = match.groups()
        row: Row = {"per_s": float(rate), "p50_ms": float(p50), "p99_ms": float(p99), "requests": int(count)}
        row["cpu_us"] = spent / max(int(count), 1) * 1e6
        if int(errors) or int(bad):
            row["failed"] = int(errors) + int(bad)
        return row


_RULE = {"operations": ["CREATE"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"]}


def pids_of(options: Any) -> list[int]:
    """The processes that are measured."""
    return [int(pid) for pid in options.pid.split(",")] if options.pid else []


def count_processor_time(pids: list[int]) -> None:
    """Let the measurements of load.py, which is shared with others and stays as it is, tell processor time too."""

    def counting(measure: Callable[..., Row], count: Callable[[Row, tuple[Any, ...]], float]) -> Callable[..., Row]:
        def measured(*arguments: Any, **named: Any) -> Row:
            before = processor.seconds_of(pids)
            row = measure(*arguments, **named)
            spent = processor.seconds_of(pids) - before
            if "error" not in row:
                row["cpu_us"] = spent / max(count(row, arguments), 1) * 1e6
            return row

        return measured

    load.wrk = counting(load.wrk, lambda row, arguments: row["per_s"] * arguments[3])
    load.h2load = counting(load.h2load, lambda row, arguments: float(arguments[3]))
    load.fan_out = counting(load.fan_out, lambda row, arguments: row["per_s"] * row["elapsed_s"])
    load.watch_latency = counting(load.watch_latency, lambda row, arguments: float(arguments[2]))


def stay_connected() -> None:
    """Let the client of load.py connect anew: servers close connections that are idle while others are measured."""
    call = load.Client.call

    def calling(client: Any, *arguments: Any, **named: Any) -> Any:
        try:
            return call(client, *arguments, **named)
        except (http.client.RemoteDisconnected, BrokenPipeError):
            client.conn = None
            return call(client, *arguments, **named)

    load.Client.call = calling


def main() -> None:
    """Measure, print as it goes, and keep the figures."""
    options = _parser().parse_args()
    stay_connected()
    count_processor_time(pids_of(options))
    kept = options.json
    with tempfile.TemporaryDirectory(prefix="pilothouse-bench-") as folder:
        options.json = str(Path(folder) / "rows.json")
        load.measure(options)
        rows = json.loads(Path(options.json).read_text())
    more = Rows(options)
    more.measure()
    if kept:
        Path(kept).write_text(json.dumps({**rows, **more.rows}, indent=1))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("url")
    parser.add_argument("--token", default="admintoken")
    parser.add_argument("--pid", default="")
    parser.add_argument("--pods", type=int, default=5000)
    parser.add_argument("--seconds", type=int, default=4)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--only", action="append")
    parser.add_argument("--json")
    return parser


if __name__ == "__main__":
    main()
