"""Several clusters in one process, side by side in one store."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from pilothouse.cluster.cluster import Cluster
from pilothouse.controllers.runtime.client import ResourceClient
from pilothouse.machinery.errors import StatusError
from pilothouse.machinery.user import User
from pilothouse.options import complete, parse, provision
from pilothouse.process.process import Process
from pilothouse.testing.ports import free_port


@pytest.fixture
async def clusters(tmp_path: Path) -> AsyncIterator[tuple[Cluster, Cluster]]:
    """The cluster of a process, and another under a root of its own."""
    words = [f"--data-dir={tmp_path}", "--bind-address=127.0.0.1", f"--secure-port={free_port()}"]
    options = complete(parse(words))
    provision(options)
    process = Process(options)
    second = Cluster(options, "/second", process.shared)
    await process.start()
    try:
        await second.start()
        await second.run_hooks()
        yield process.cluster, second
    finally:
        await second.close()
        await process.stop()


def config_map(name: str) -> dict[str, Any]:
    return {"metadata": {"name": name, "namespace": "default"}, "data": {"a": name}}


async def permitted(client: ResourceClient, obj: dict[str, Any]) -> None:
    """Create an object as soon as a new binding is known to the authorizer."""
    async with asyncio.timeout(60):
        while True:
            try:
                await client.create(obj)
            except StatusError as error:
                assert error.code == 403
                await asyncio.sleep(0.01)
            else:
                return


async def test_clusters_share_a_store_and_nothing_else(clusters: tuple[Cluster, Cluster]) -> None:
    first, second = (cluster.clients.api_server().of("", "v1", "configmaps") for cluster in clusters)
    await first.create(config_map("mine"))
    with pytest.raises(StatusError) as caught:
        await second.get("default", "mine")
    assert caught.value.code == 404
    await second.create(config_map("mine"))
    assert (await second.get("default", "mine"))["data"] == {"a": "mine"}


async def test_rights_in_one_cluster_are_none_in_the_other(clusters: tuple[Cluster, Cluster]) -> None:
    bindings = clusters[0].clients.api_server().of("rbac.authorization.k8s.io", "v1", "clusterrolebindings")
    await bindings.create(
        {
            "metadata": {"name": "all"},
            "subjects": [{"kind": "User", "name": "ann", "apiGroup": "rbac.authorization.k8s.io"}],
            "roleRef": {"kind": "ClusterRole", "name": "cluster-admin", "apiGroup": "rbac.authorization.k8s.io"},
        }
    )
    ann = [cluster.clients.as_user(User("ann"), "test").of("", "v1", "configmaps") for cluster in clusters]
    await permitted(ann[0], config_map("hers"))
    with pytest.raises(StatusError) as caught:
        await ann[1].create(config_map("hers"))
    assert caught.value.code == 403
