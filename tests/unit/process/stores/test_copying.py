"""A cluster's objects taken from one kind of store to the other and back."""

import asyncio

import pytest

from pilothouse.cli.store import run
from pilothouse.process.stores.opening import StoreAddress
from pilothouse.testing.etcd_process import EtcdCluster, find_etcd
from pilothouse.testing.in_process import InProcessServer

CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"
GEARS = "/apis/example.com/v1/namespaces/default/gears"
DEFINITION = {
    "metadata": {"name": "gears.example.com"},
    "spec": {
        "group": "example.com",
        "scope": "Namespaced",
        "names": {"plural": "gears", "kind": "Gear"},
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}},
            }
        ],
    },
}


@pytest.fixture
def folder(tmp_path):
    """A --data-dir whose server has been stopped, with what its API showed."""
    with InProcessServer(data_dir=tmp_path / "first") as server:
        server.establish(DEFINITION)
        gear = {"apiVersion": "example.com/v1", "kind": "Gear", "metadata": {"name": "g"}, "spec": {"teeth": 7}}
        assert server.call("POST", GEARS, gear).status == 201
        server.call("POST", CONFIG_MAPS, {"metadata": {"name": "a", "labels": {"x": "y"}}, "data": {"k": "v"}})
        server.call("POST", "/api/v1/namespaces/default/services", {"metadata": {"name": "s"}, "spec": NODE_PORT})
    return tmp_path / "first"


NODE_PORT = {"type": "NodePort", "ports": [{"port": 80}]}


def shown(server):
    """Objects without their versions, and the newest version."""
    found = {}
    for path in (
        f"{CONFIG_MAPS}/a",
        f"{GEARS}/g",
        "/api/v1/namespaces/default/services/s",
        "/api/v1/namespaces/default",
    ):
        answer = server.call("GET", path)
        assert answer.status == 200, answer.body
        found[path] = answer.json
        found[path]["metadata"].pop("resourceVersion")
    return found, int(server.call("GET", CONFIG_MAPS).json["metadata"]["resourceVersion"])


async def leave_behind(url):
    """What a copy leaves that was interrupted while it brought the target to the source's revision."""
    async with StoreAddress(url).opened() as backend:
        await backend.create("pilothouse_copy_spacer/0", b"")
        await backend.create("pilothouse_copy_spacer/7", b"")


@pytest.mark.skipif(find_etcd() is None, reason="there is no etcd")
def test_there_and_back(folder, tmp_path, capsys):
    with InProcessServer(data_dir=folder) as server:
        before, revision = shown(server)
    with EtcdCluster() as etcd:
        url = etcd.urls[0]
        asyncio.run(leave_behind(url))
        assert run(["copy", str(folder), url]) == 0
        assert run(["copy", str(folder), url]) == 1
        assert "--resume" in capsys.readouterr().err
        assert run(["copy", str(folder), url, "--resume"]) == 0
        assert " 0 written, 0 deleted" in capsys.readouterr().out
        assert run(["check", f"--etcd-servers={url}"]) == 0
        with InProcessServer(f"--etcd-servers={url}") as server:
            on_etcd, later = shown(server)
        assert on_etcd == before
        assert later > revision
        assert run(["copy", url, str(tmp_path / "second")]) == 0
    assert run(["check", f"--data-dir={tmp_path / 'second'}"]) == 0
    with InProcessServer(data_dir=tmp_path / "second") as server:
        back, last = shown(server)
    assert back == before
    assert last > later


async def test_what_does_not_belong_is_found(folder, capsys):
    async with StoreAddress(str(folder)).opened() as backend:
        await backend.create("/registry/nothings/a", b"{}")
        await backend.create("/registry/configmaps/default/broken", b"not an object")
    assert await in_thread(run, ["check", f"--data-dir={folder}"]) == 1
    out = capsys.readouterr().out
    assert "/registry/nothings/a: belongs to nothing" in out
    assert "/registry/configmaps/default/broken: cannot be read" in out


async def in_thread(function, *args):
    import asyncio

    return await asyncio.to_thread(function, *args)


def test_a_snapshot_comes_back(folder, tmp_path, capsys):
    assert run(["snapshot", f"--data-dir={folder}", f"--to={tmp_path / 'copy.db'}"]) == 0
    assert run(["restore", f"--data-dir={tmp_path / 'other'}", f"--from={tmp_path / 'copy.db'}"]) == 0
    assert run(["restore", f"--data-dir={tmp_path / 'other'}", f"--from={tmp_path / 'copy.db'}"]) == 1
    assert "replaces nothing" in capsys.readouterr().err
    assert [path.name for path in (tmp_path / "other").iterdir() if "restoring" in path.name] == []
    (tmp_path / "text.db").write_text("no database at all, but long enough to be looked at" * 100)
    assert run(["restore", f"--data-dir={tmp_path / 'third'}", f"--from={tmp_path / 'text.db'}"]) == 1
    with InProcessServer(data_dir=tmp_path / "other") as server:
        assert server.call("GET", f"{CONFIG_MAPS}/a").status == 200
