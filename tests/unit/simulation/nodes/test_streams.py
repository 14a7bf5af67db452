from __future__ import annotations

from typing import Any

import pytest

from pilothouse.endpoints.query import Query
from pilothouse.simulation.kubelet_api.commands import Process
from pilothouse.simulation.kubelet_api.streams import connect_echo
from pilothouse.simulation.nodes.behaviour import Behaviour
from pilothouse.simulation.nodes.streams import SimulatedStreams, printed_lines


def pod(*command: str, env: Any = ()) -> dict[str, Any]:
    container = {"name": "c", "image": "img", "command": list(command), "env": list(env)}
    return {"metadata": {"name": "p", "namespace": "d"}, "spec": {"containers": [container]}}


@pytest.mark.parametrize(
    ("command", "lines"),
    [
        (("echo", "hello", "you"), ["hello you"]),
        (("sh", "-c", "echo 'a b'; sleep 1 && echo c"), ["a b", "c"]),
        (("nginx",), ["simulated container c of image img started"]),
        (("sh", "-c", "echo 'open"), ["'open"]),
    ],
)
def test_what_a_container_says_when_it_begins(command: tuple[str, ...], lines: list[str]) -> None:
    assert printed_lines(pod(*command), "c") == lines
    assert printed_lines(pod(*command), "other") == []


def test_logs_go_with_their_pod() -> None:
    streams = SimulatedStreams()
    assert streams.log_of("d", "p", "c") is None
    streams.started(pod("nginx"), "c")
    assert streams.log_of("d", "p", "c") is not None
    streams.gone(pod("nginx"))
    assert streams.log_of("d", "p", "c") is None


@pytest.mark.parametrize(
    ("command", "output", "code"),
    [
        (["echo", "a", "b"], "a b\n", 0),
        (["hostname"], "p\n", 0),
        (["sh", "-c", "echo x"], "x\n", 0),
        (["false"], "", 1),
        (["cat"], "typed", 0),
        (["ls", "/a b"], "simulated container c: ls '/a b'\n", 0),
    ],
)
async def test_commands(command: list[str], output: str, code: int) -> None:
    streams, said, given = SimulatedStreams(), [], [b"typed", b""]
    streams.started(pod("nginx"), "c")

    async def read() -> bytes:
        return given.pop(0)

    async def write(data: bytes) -> None:
        said.append(data)

    assert await streams.run(Process(command, stdin=read, stdout=write, container=("d", "p", "c"))) == code
    assert b"".join(said).decode() == output


async def test_the_environment_is_the_pods() -> None:
    streams, said = SimulatedStreams(), []
    streams.started(pod("nginx", env=[{"name": "A", "value": "1"}]), "c")

    async def write(data: bytes) -> None:
        said.append(data)

    await streams.run(Process(["env"], stdout=write, container=("d", "p", "c")))
    assert "A=1" in b"".join(said).decode().splitlines()


async def test_ports_say_what_they_are_told() -> None:
    reader, writer = await connect_echo(80)
    writer.write(b"hello")
    await writer.drain()
    assert await reader.read(3) + await reader.read(9) == b"hello"
    writer.write_eof()
    assert await reader.read(1) == b""


async def test_what_a_rule_says() -> None:
    streams, said = SimulatedStreams(), []
    behaviour = Behaviour(log="first\nsecond", answers={"psql -c select": "1 row"})
    streams.started(pod("nginx"), "c", behaviour)
    log = streams.log_of("d", "p", "c")
    assert log is not None
    assert b"".join([piece async for piece in log.read(Query(""))]) == b"first\nsecond\n"

    async def write(data: bytes) -> None:
        said.append(data)

    assert await streams.run(Process(["psql", "-c", "select"], stdout=write, container=("d", "p", "c"))) == 0
    assert said == [b"1 row"]
