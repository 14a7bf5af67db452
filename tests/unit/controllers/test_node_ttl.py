from __future__ import annotations

import pytest

from pilothouse.controllers.node_ttl import step_for
from pilothouse.testing.running_controllers import RunningControllers


@pytest.mark.parametrize(
    ("nodes", "before", "after"),
    [(1, 0, 0), (100, 0, 0), (101, 0, 1), (95, 1, 1), (89, 1, 0), (1001, 1, 3), (5000, 0, 4), (0, 4, 0)],
)
def test_the_steps(nodes: int, before: int, after: int) -> None:
    assert step_for(nodes, before) == after


async def test_nodes_are_annotated() -> None:
    async with RunningControllers("node_ttl") as cluster:
        nodes = cluster.of("", "v1", "nodes")
        await nodes.create({"metadata": {"name": "n"}})
        node = await cluster.wait(nodes, "", "n", lambda obj: obj["metadata"].get("annotations"))
        assert node["metadata"]["annotations"] == {"node.alpha.kubernetes.io/ttl": "0"}
