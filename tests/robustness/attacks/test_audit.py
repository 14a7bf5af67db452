"""A server that writes everything down: long objects, long lists, long paths, and nobody who takes what was written."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from http.client import HTTPSConnection
from pathlib import Path

import orjson
import pytest
from tests.robustness.attacks.conftest import Victim

MAPS = "/api/v1/namespaces/default/configmaps"
MERGE = "application/merge-patch+json"
POLICY = "apiVersion: audit.k8s.io/v1\nkind: Policy\nrules: [{level: RequestResponse}]\n"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("audit")


@pytest.fixture(scope="module")
def audited(launch_victim: Callable[..., Victim], folder: Path) -> Victim:
    """A server that writes down requests and answers, whole."""
    policy = folder / "policy.yaml"
    policy.write_text(POLICY)
    return launch_victim(f"--audit-policy-file={policy}", f"--audit-log-path={folder / 'audit.log'}")


def long_map(name: str, keys: int) -> dict[str, object]:
    data = {f"k{number}": "v" for number in range(keys)}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data}


def test_a_long_object(audited: Victim) -> None:
    path = f"{MAPS}/long"
    with audited.attacked("an object of a megabyte, written down"):
        answers = [
            audited.call("POST", MAPS, long_map("long", 60_000)),
            audited.call("PATCH", path, {"data": {f"k{number}": "w" for number in range(60_000)}}, MERGE),
            audited.call("GET", path),
            audited.call("DELETE", path),
        ]
    assert [answer.status for answer in answers] == [201, 200, 200, 200]


def test_a_long_list(audited: Victim, folder: Path) -> None:
    for number in range(12):
        assert audited.call("POST", MAPS, long_map(f"m{number}", 60_000)).status == 201
    with audited.attacked("a list of 9 MB, written down", allowance=100 << 20):
        found = audited.call("GET", f"{MAPS}?limit=100")
    lines = (folder / "audit.log").read_bytes().splitlines()
    written = [line for line in lines if b'"requestURI":"/api/v1/namespaces/default/configmaps?limit=100"' in line]
    assert orjson.loads(written[-1])["responseObject"] == found.json


def test_long_paths(audited: Victim) -> None:
    """Nothing is remembered of what anybody may think of."""
    connection = HTTPSConnection("127.0.0.1", audited.port, timeout=120, context=audited.contexts[True])
    with closing(connection), audited.attacked("100 paths of 500 KB, written down", allowance=16 << 20):
        for number in range(100):
            connection.request("GET", f"/{number}{'x' * 500_000}")
            answer = connection.getresponse()
            answer.read()
            assert answer.status == 403


@contextmanager
def pipe_without_reader(path: Path) -> Iterator[int]:
    """A pipe that is open at its other end, where nobody reads; it is emptied at last."""
    os.mkfifo(path)
    end = os.open(path, os.O_RDWR)
    try:
        yield end
    finally:
        threading.Thread(target=empty, args=(end,), daemon=True).start()


def empty(end: int) -> None:
    """Read all that comes, as long as the tests run: a server that stops has something to say."""
    while os.read(end, 1 << 20):
        pass


def test_a_pipe_that_nobody_reads(launch_victim: Callable[..., Victim], tmp_path: Path) -> None:
    """Whoever is written down waits for it, as in kube-apiserver; all others are served."""
    policy = tmp_path / "policy.yaml"
    rules = 'rules: [{level: Metadata, resources: [{group: "", resources: [secrets]}]}, {level: None}]'
    policy.write_text(f"apiVersion: audit.k8s.io/v1\nkind: Policy\n{rules}\n")
    with pipe_without_reader(tmp_path / "pipe"):
        flags = (f"--audit-policy-file={policy}", f"--audit-log-path={tmp_path / 'pipe'}")
        piped = launch_victim(*flags, "--audit-log-mode=blocking-strict")

        def ask() -> None:
            while piped.call("GET", "/api/v1/namespaces/default/secrets", timeout=1).status:
                pass

        with piped.attacked("an audit log that is a pipe nobody reads"):
            askers = [threading.Thread(target=ask) for _ in range(8)]
            for asker in askers:
                asker.start()
            for asker in askers:
                asker.join()
            assert piped.call("GET", "/api/v1/namespaces/default", timeout=5).status == 200
