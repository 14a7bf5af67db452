"""Several processes on one port and one store: the guarantees of one hold for all of them together."""

from __future__ import annotations

import gzip
import os
import re
import signal
import threading
from contextlib import ExitStack, contextmanager
from http.client import HTTPException, HTTPSConnection
from pathlib import Path

import orjson
import pytest
from tests.conftest import start_server, stop_server

from pilothouse.testing.etcd_process import EtcdCluster, find_etcd
from pilothouse.testing.waiting import until

MAPS = "/api/v1/namespaces/default/configmaps"
POLICY = "apiVersion: audit.k8s.io/v1\nkind: Policy\nrules:\n- level: Metadata\n  omitStages: [RequestReceived]\n"
PATIENCE = 120.0


def children_of(pid):
    return [int(each) for each in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


METRIC_MESSAGES = "application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily"


class Line:
    """A connection to one of the processes; ``pid`` is the process that has it."""

    def __init__(self, server):
        self.connection = HTTPSConnection("127.0.0.1", server.port, timeout=PATIENCE, context=server.tls())
        self.connection.connect()
        self.call("GET", "/version")
        self.pid = until(lambda: self._find_pid(server))

    def _find_pid(self, server):
        mine = self.connection.sock.getsockname()[1]
        ends = f":{server.port:04X} ", f":{mine:04X} "
        rows = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
        inodes = {row[9] for row in rows if row[1] + " " == f"0100007F{ends[0]}" and row[2].endswith(ends[1].strip())}
        for pid in (server.process.pid, *children_of(server.process.pid)):
            for descriptor in Path(f"/proc/{pid}/fd").iterdir():
                found = re.fullmatch(r"socket:\[(\d+)\]", os.readlink(descriptor)) if descriptor.is_symlink() else None
                if found and found[1] in inodes:
                    return pid
        return None

    def call(self, method, path, body=None, headers=None):
        data = None if body is None else orjson.dumps(body)
        kind = {"Content-Type": "application/json"} if data else {}
        self.connection.request(method, path, data, {**kind, **(headers or {})})
        answer = self.connection.getresponse()
        content = answer.read()
        is_json = answer.getheader("Content-Type", "").startswith("application/json")
        return answer.status, orjson.loads(content) if is_json else content

    def close(self):
        self.connection.close()


@contextmanager
def lines_to_each(server, each=1):
    """So many connections to every process."""
    with ExitStack() as stack:
        found = {pid: [] for pid in (server.process.pid, *children_of(server.process.pid))}
        while any(len(lines) < each for lines in found.values()):
            line = Line(server)
            stack.callback(line.close)
            found[line.pid].append(line)
        yield [line for lines in found.values() for line in lines[:each]]


def config_map(name, **data):
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data}


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    folder = tmp_path_factory.mktemp("workers")
    (folder / "policy.yaml").write_text(POLICY)
    flags = (f"--audit-policy-file={folder / 'policy.yaml'}", f"--audit-log-path={folder / 'audit.log'}")
    server = start_server(folder / "data", "--workers=2", "--simulate-nodes=1", *flags)
    yield server
    crew = children_of(server.process.pid)
    assert len(crew) == 1
    assert stop_server(server) == 0
    assert not [pid for pid in crew if Path(f"/proc/{pid}").exists()]
    assert "Traceback" not in server.log.read_text()
    for line in (folder / "audit.log").read_bytes().splitlines():
        assert orjson.loads(line)["kind"] == "Event"


def write_and_read(lines, rounds):
    """Write through one connection and read through another, every time; the versions that came of it."""
    versions = []
    for number in range(rounds):
        writer, reader = lines[number % len(lines)], lines[(number // len(lines) + number + 1) % len(lines)]
        status, made = writer.call("POST", MAPS, config_map(f"own-{number}"))
        assert status == 201
        versions.append(int(made["metadata"]["resourceVersion"]))
        status, read = reader.call("GET", f"{MAPS}/own-{number}")
        assert (status, read["metadata"].get("resourceVersion")) == (200, str(versions[-1]))
        status, listed = reader.call("GET", MAPS)
        assert f"own-{number}" in {item["metadata"]["name"] for item in listed["items"]}
        assert reader.call("DELETE", f"{MAPS}/own-{number}")[0] == 200
        assert writer.call("GET", f"{MAPS}/own-{number}")[0] == 404
    return versions


def test_a_client_reads_its_own_writes_whichever_process_answers(server):
    with lines_to_each(server, 2) as lines:
        versions = write_and_read(lines, 60)
    assert versions == sorted(set(versions))


def test_a_watch_on_any_process_sees_everything_once(server):
    with lines_to_each(server, 1) as watching, lines_to_each(server, 2) as writing:
        for line in watching:
            line.connection.request("GET", f"{MAPS}?watch=true&resourceVersion={_newest(line)}&labelSelector=seen")
            line.answer = line.connection.getresponse()

        def write(line, number):
            for count in range(10):
                made = config_map(f"seen-{number}-{count}")
                made["metadata"]["labels"] = {"seen": ""}
                assert line.call("POST", MAPS, made)[0] == 201
                assert line.call("DELETE", f"{MAPS}/seen-{number}-{count}")[0] == 200

        threads = [threading.Thread(target=write, args=(line, number)) for number, line in enumerate(writing)]
        for thread in threads:
            thread.start()
        seen = [[orjson.loads(line.answer.readline()) for _ in range(80)] for line in watching]
        for thread in threads:
            thread.join()
        versions = [[int(event["object"]["metadata"]["resourceVersion"]) for event in events] for events in seen]
        assert versions[0] == sorted(set(versions[0]))
        assert versions[1] == versions[0]
        assert [event["type"] for event in seen[0]].count("DELETED") == 40


def _newest(line):
    return line.call("GET", MAPS)[1]["metadata"]["resourceVersion"]


def test_what_decides_about_requests_holds_on_all_processes_at_once(server):
    definition = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "oars.boats.example.com"},
        "spec": {
            "group": "boats.example.com",
            "scope": "Cluster",
            "names": {"plural": "oars", "singular": "oar", "kind": "Oar", "listKind": "OarList"},
            "versions": [
                {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": {"type": "object"}}}
            ],
        },
    }
    path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
    roles = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings"
    with lines_to_each(server) as (one, other):
        assert one.call("POST", path, definition)[0] == 201

        def established():
            status = one.call("GET", f"{path}/oars.boats.example.com")[1].get("status") or {}
            conditions = status.get("conditions") or []
            return [each for each in conditions if each["type"] == "Established" and each["status"] == "True"]

        until(established)
        for line in (one, other):
            assert line.call("GET", "/apis/boats.example.com/v1/oars")[0] == 200
        for number in range(10):
            user = {"Impersonate-User": f"rower-{number}"}
            assert other.call("GET", MAPS, headers=user)[0] == 403
            binding = {
                "metadata": {"name": f"rower-{number}"},
                "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "view"},
                "subjects": [{"kind": "User", "name": f"rower-{number}", "apiGroup": "rbac.authorization.k8s.io"}],
            }
            assert one.call("POST", roles, binding)[0] == 201
            assert other.call("GET", MAPS, headers=user)[0] == 200


def test_addresses_and_ports_are_given_once(server):
    with lines_to_each(server, 2) as lines:
        made = []

        def make(line, number):
            for count in range(5):
                spec = {"type": "NodePort", "ports": [{"port": 80}]}
                service = {"metadata": {"name": f"s-{number}-{count}"}, "spec": spec}
                status, answer = line.call("POST", "/api/v1/namespaces/default/services", service)
                assert status == 201
                made.append((answer["spec"]["clusterIP"], answer["spec"]["ports"][0]["nodePort"]))

        threads = [threading.Thread(target=make, args=(line, number)) for number, line in enumerate(lines)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(made) == len({address for address, _ in made}) == len({port for _, port in made}) == 20


def test_metrics_are_those_of_all(server):
    counted = rb'apiserver_request_total\{verb="LIST"[^}]*resource="limitranges"[^}]*\} (\d+)'
    with lines_to_each(server) as (one, other):
        for line, times in ((one, 3), (other, 4)):
            for _ in range(times):
                assert line.call("GET", "/api/v1/limitranges")[0] == 200
        for line in (one, other):
            status, page = line.call("GET", "/metrics")
            assert (status, re.findall(counted, page)) == (200, [b"7"])
            assert page.count(b"# TYPE apiserver_request_total ") == 1
            assert re.search(rb"kubernetes_build_info\{[^}]*\} 1\n", page)
            assert b"kubernetes_healthcheck" in line.call("GET", "/metrics/slis")[1]
            messages = {"accept": f"{METRIC_MESSAGES};encoding=compact-text"}
            text = line.call("GET", "/metrics?name[]=apiserver_request_duration_seconds", headers=messages)[1].decode()
            (series,) = (each for each in text.split("metric:") if 'value:"limitranges"' in each)
            assert re.search(r"histogram:\{sample_count:7 .* schema:3 .* positive_span:", series)
        assert one.call("DELETE", "/metrics")[1] == b"metrics reset\n"
        for line in (one, other):
            assert re.findall(counted, line.call("GET", "/metrics")[1]) == []


def test_every_process_says_how_the_whole_is(server):
    with lines_to_each(server) as lines:
        pages = [line.call("GET", "/readyz?verbose") for line in lines]
    assert pages[0] == pages[1]
    assert pages[0][0] == 200
    assert b"poststarthook/rbac/bootstrap-roles ok" in pages[0][1]


def test_simulated_kubelets_are_reached_from_every_process(server):
    server.namespace("default")
    spec = {"nodeName": "node-1", "containers": [{"name": "main", "image": "nginx"}]}
    pods = "/api/v1/namespaces/default/pods"
    assert server.call("POST", pods, {"metadata": {"name": "web"}, "spec": spec})[0] == 201
    until(lambda: server.call("GET", f"{pods}/web")[2]["status"].get("phase") == "Running")
    with lines_to_each(server) as lines:
        logs = [line.call("GET", f"{pods}/web/log") for line in lines]
    assert logs[0][0] == 200
    assert logs[0] == logs[1]


def test_a_worker_that_is_stopped_gets_no_connections(server):
    """Nor keeps those that were on their way to it; once it goes on it gets its share again."""
    (worker,) = children_of(server.process.pid)
    os.kill(worker, signal.SIGSTOP)
    try:
        with ExitStack() as stack:
            for _ in range(6):
                line = Line(server)
                stack.callback(line.close)
                assert line.pid == server.process.pid
    finally:
        os.kill(worker, signal.SIGCONT)
    with lines_to_each(server) as lines:
        assert {line.pid for line in lines} == {server.process.pid, worker}


def test_a_worker_that_is_killed_is_replaced_and_nothing_is_lost(server):
    (before,) = children_of(server.process.pid)
    acknowledged = []
    with lines_to_each(server) as lines:
        (doomed,) = [line for line in lines if line.pid == before]

        def write():
            for name in (f"kept-{number}" for number in range(100_000)):
                try:
                    status, _ = doomed.call("POST", MAPS, config_map(name))
                except (OSError, HTTPException):
                    return
                assert status == 201
                acknowledged.append(name)

        thread = threading.Thread(target=write)
        thread.start()
        until(lambda: len(acknowledged) > 20)
        os.kill(before, signal.SIGKILL)
        thread.join()
    status, _, listed = server.call("GET", MAPS)
    assert status == 200
    assert set(acknowledged) <= {item["metadata"]["name"] for item in listed["items"]}
    until(lambda: [pid for pid in children_of(server.process.pid) if pid != before])
    until(lambda: server.log.read_text().count(" serves") == 2)
    with lines_to_each(server) as lines:
        assert all(line.call("GET", f"{MAPS}/{acknowledged[-1]}")[0] == 200 for line in lines)


@pytest.mark.skipif(find_etcd() is None, reason="there is no etcd")
def test_on_etcd_every_process_follows_by_itself_and_none_outlives_the_first(launch, tmp_path):
    with EtcdCluster() as cluster:
        server = launch(tmp_path / "data", "--workers=2", f"--etcd-servers={','.join(cluster.urls)}")
        with lines_to_each(server) as lines:
            write_and_read(lines, 10)
        (worker,) = children_of(server.process.pid)
        server.process.kill()
        server.process.wait()
        until(lambda: not Path(f"/proc/{worker}").exists())
        assert "the first process of this server has gone" in server.log.read_text()


def test_debugging_pages_are_about_all_processes(server):
    pids = [server.process.pid, *children_of(server.process.pid)]
    with lines_to_each(server) as lines:
        for line in lines:
            for page in ("goroutine", "heap"):
                status, text = line.call("GET", f"/debug/pprof/{page}")
                assert status == 200
                assert all(f"process {pid}:\n".encode() in text for pid in pids)
            _, rows = line.call("GET", "/debug/api_priority_and_fairness/dump_queues")
            assert rows.count(b"\nworkload-low,") == 2 * 128
            _, levels = line.call("GET", "/debug/api_priority_and_fairness/dump_priority_levels")
            assert levels.count(b"\nworkload-low,") == 1
        _, profile = lines[0].call("GET", "/debug/pprof/profile?seconds=1")
        assert all(f"process {pid}".encode() in gzip.decompress(profile) for pid in pids)
        assert lines[0].call("PUT", "/debug/flags/v", 3)[0] == 200
        for number, line in enumerate(lines):
            line.call("GET", f"/api/v1/namespaces/here-{number}")
        until(lambda: all(f"here-{number}" in server.log.read_text() for number in range(2)))
        assert lines[0].call("PUT", "/debug/flags/v", 0)[0] == 200


def test_a_worker_that_comes_later_logs_as_much_as_the_others(server):
    with lines_to_each(server) as lines:
        assert lines[0].call("PUT", "/debug/flags/v", 3)[0] == 200
    (before,) = children_of(server.process.pid)
    os.kill(before, signal.SIGKILL)
    until(lambda: (crew := children_of(server.process.pid)) and crew != [before])
    with lines_to_each(server) as lines:
        for number, line in enumerate(lines):
            line.call("GET", f"/api/v1/namespaces/later-{number}")
        until(lambda: all(f"later-{number}" in server.log.read_text() for number in range(2)))
        assert lines[0].call("PUT", "/debug/flags/v", 0)[0] == 200
