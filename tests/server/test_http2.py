"""A whole server over HTTP/2, asked by clients of others: httpx (h2), curl and client-go in kubectl."""

from __future__ import annotations

import asyncio
import json
import shutil
import ssl
import subprocess
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from pilothouse.net.http2.connection import Http2Connection
from pilothouse.testing.in_process import InProcessServer

MAPS = "/api/v1/namespaces/default/configmaps"


@pytest.fixture
async def running() -> AsyncIterator[InProcessServer]:
    async with InProcessServer() as server:
        yield server


def client(server: InProcessServer, **options: Any) -> httpx.AsyncClient:
    return httpx.AsyncClient(
        http2=True, http1=False, verify=server.ssl_context(), base_url=server.url, timeout=60, **options
    )


async def test_requests_side_by_side_on_one_connection(running: InProcessServer) -> None:
    async with client(running) as http:
        made = await asyncio.gather(*(http.post(MAPS, json=config_map(number)) for number in range(50)))
        assert [answer.status_code for answer in made] == [201] * 50
        assert {answer.http_version for answer in made} == {"HTTP/2"}
        read = await asyncio.gather(*(http.get(f"{MAPS}/m{number}") for number in range(50)))
        assert [answer.json()["data"]["n"] for answer in read] == [str(number) for number in range(50)]
        assert len(running.process.serving.http.connections) == 1
        listed = await http.get(MAPS, params={"limit": "20"})
        assert len(listed.json()["items"]) == 20


def config_map(number: int) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": f"m{number}"}, "data": {"n": str(number)}}


async def test_large_bodies_both_ways(running: InProcessServer) -> None:
    large = {**config_map(0), "data": {"large": "x" * 900_000}}
    async with client(running) as http:
        assert (await http.post(MAPS, json=large)).status_code == 201
        assert (await http.get(f"{MAPS}/m0")).json()["data"] == large["data"]
        assert len((await http.get("/openapi/v2")).content) > 1_000_000


async def test_a_watch_beside_the_writes_it_tells_of(running: InProcessServer) -> None:
    async with client(running) as http, http.stream("GET", MAPS, params={"watch": "1"}) as watch:
        lines = watch.aiter_lines()
        for number in range(3):
            await http.post(MAPS, json=config_map(number))
            while True:
                event = json.loads(await anext(lines))
                if event["object"]["metadata"]["name"] == f"m{number}":
                    break


async def agreed_protocol(server: InProcessServer) -> str | None:
    context = server.ssl_context()
    context.set_alpn_protocols(["h2", "http/1.1"])
    _, writer = await asyncio.open_connection("127.0.0.1", server.port, ssl=context)
    tls: ssl.SSLObject = writer.get_extra_info("ssl_object")
    writer.close()
    return tls.selected_alpn_protocol()


async def test_it_can_be_switched_off(running: InProcessServer) -> None:
    assert await agreed_protocol(running) == "h2"
    async with InProcessServer("--disable-http2-serving") as other:
        assert await agreed_protocol(other) == "http/1.1"


async def test_the_flags_of_streams() -> None:
    async with InProcessServer("--http2-max-streams-per-connection=3", "--goaway-chance=0.02") as server:
        options = server.process.serving.http.http2
        assert (options.max_streams, options.goaway_chance) == (3, 0.02)
        async with client(server) as http:
            answers = await asyncio.gather(*(http.get("/version") for _ in range(20)), return_exceptions=True)
        assert any(isinstance(answer, httpx.Response) and answer.status_code == 200 for answer in answers)


async def test_kubectl_comes_by_http_2_and_its_watch_ends_properly_when_the_server_stops(kubectl: Any) -> None:
    async with InProcessServer() as server:
        watching = await asyncio.create_subprocess_exec(
            *(kubectl.path, "--kubeconfig", str(server.kubeconfig), "get", "namespaces", "-w", "-o", "name"),
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        assert watching.stdout is not None
        assert (await watching.stdout.readline()).startswith(b"namespace/")
        assert {type(each) for each in server.process.serving.http.connections} == {Http2Connection}
    _, complaints = await watching.communicate()
    assert (watching.returncode, complaints) == (0, b"")


@pytest.mark.skipif(shutil.which("curl") is None, reason="no curl")
async def test_curl(running: InProcessServer, tmp_path: Path) -> None:
    pki = running.pki
    words = ["--http2", "--cacert", str(pki.ca_cert), "--cert", str(pki.admin_cert), "--key", str(pki.admin_key)]
    body = tmp_path / "body"
    body.write_text(json.dumps(config_map(7)))
    made = ["-H", "Content-Type: application/json", "-d", f"@{body}", "-w", " %{http_version} %{http_code}"]
    told = await asyncio.to_thread(
        subprocess.run, ["curl", "-sS", *words, *made, running.url + MAPS], capture_output=True, check=True
    )
    assert told.stdout.endswith(b" 2 201")
