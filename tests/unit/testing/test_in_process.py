"""The server that users start inside their own tests."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path

import pytest

from pilothouse.options import StartError
from pilothouse.testing.definitions import await_condition
from pilothouse.testing.in_process import InProcessServer
from pilothouse.testing.ports import free_port

MAPS = "/api/v1/namespaces/default/configmaps"


def config_map(name: str) -> dict[str, object]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}}


def running_threads() -> set[threading.Thread]:
    """All but those that a process keeps for the long and the very long work of all its servers."""
    kept = ("pilothouse-long-work", "pilothouse-very-long-work")
    return {each for each in threading.enumerate() if not each.name.startswith(kept)}


def test_in_a_thread() -> None:
    threads = running_threads()
    with InProcessServer() as server:
        assert server.url == f"https://127.0.0.1:{server.port}"
        assert server.url in server.kubeconfig.read_text()
        created = server.call("POST", MAPS, config_map("a"))
        assert created.status == 201
        assert created.headers["content-type"] == "application/json"
        assert server.call("GET", f"{MAPS}/a").json["metadata"]["uid"] == created.json["metadata"]["uid"]
        folder = server.data_dir
        assert (folder / "store.db").exists()
    assert not folder.exists()
    assert running_threads() == threads


async def test_on_the_loop_leaves_no_task_behind() -> None:
    before = asyncio.all_tasks()
    async with InProcessServer() as server:
        assert (await server.request("GET", "/readyz")).body == b"ok"
        assert len(asyncio.all_tasks()) > len(before)
    assert asyncio.all_tasks() == before


async def test_servers_run_side_by_side() -> None:
    async with InProcessServer() as one, InProcessServer() as other:
        assert one.port != other.port
        assert (await one.request("POST", MAPS, config_map("a"))).status == 201
        assert (await other.request("GET", f"{MAPS}/a")).status == 404


def test_a_given_folder_is_kept_and_used_again(tmp_path: Path) -> None:
    with InProcessServer(data_dir=tmp_path) as server:
        created = server.call("POST", MAPS, config_map("kept")).json
    with InProcessServer(data_dir=tmp_path) as server:
        assert server.call("GET", f"{MAPS}/kept").json == created


def test_flags_reach_the_server() -> None:
    with InProcessServer("--runtime-config=batch/v1=false") as server:
        assert server.call("GET", "/apis/batch/v1").status == 404


def test_wrong_flags_are_told_and_leave_nothing_behind() -> None:
    threads = running_threads()
    with pytest.raises(ValueError, match="authorization-mode"), InProcessServer("--authorization-mode=Foo"):
        pass
    assert running_threads() == threads


async def test_a_start_that_fails_is_raised(tmp_path: Path) -> None:
    (tmp_path / "store.db").write_bytes(b"this is no database " * 100)
    with pytest.raises(Exception, match=r"store\.db|database"):
        async with InProcessServer(data_dir=tmp_path):
            pass
    assert len(asyncio.all_tasks()) == 1


def test_flags_for_port_folder_and_kubeconfig_are_honoured(tmp_path: Path) -> None:
    port = free_port()
    flags = (f"--secure-port={port}", f"--data-dir={tmp_path}/data", f"--write-kubeconfig={tmp_path}/config")
    with InProcessServer(*flags) as server:
        assert server.port == port
        assert server.data_dir == tmp_path / "data"
        assert server.kubeconfig == tmp_path / "config"
        assert server.url in server.kubeconfig.read_text()
        assert server.call("GET", "/readyz").status == 200
    assert (tmp_path / "data" / "store.db").exists()


def test_a_server_can_be_entered_again_but_not_twice_at_once() -> None:
    server = InProcessServer()
    for _ in range(2):
        with server:
            with pytest.raises(RuntimeError, match="runs already"), server:
                pass
            assert server.call("GET", "/readyz").status == 200


def test_two_servers_do_not_share_a_folder(tmp_path: Path) -> None:
    with InProcessServer(data_dir=tmp_path) as first:
        before = first.kubeconfig.read_bytes()
        with pytest.raises(StartError, match=f"another server .*{first.url}"), InProcessServer(data_dir=tmp_path):
            pass
        assert first.kubeconfig.read_bytes() == before
        await_condition(
            lambda: first.call("GET", "/api/v1/namespaces/default/endpoints/kubernetes").json.get("subsets"),
            lambda subsets: bool(subsets) and subsets[0]["ports"][0]["port"] == first.port,
        )


def test_a_living_cluster() -> None:
    with InProcessServer(living=True) as server:
        accounts = "/api/v1/namespaces/default/serviceaccounts/default"
        await_condition(lambda: server.call("GET", accounts), lambda answer: answer.status == 200)
