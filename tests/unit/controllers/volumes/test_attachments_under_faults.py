"""Whatever fails and whenever they are killed: a volume for one node is attached to one, and who grows is told of."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from pilothouse.controllers.volumes.attachments import MANAGED
from pilothouse.machinery.objects import Object

from ..trouble import SEEDS, TroubledControllers

DRIVER = "d.example.com"
VOLUMES = range(3)


class Troubled(TroubledControllers):
    """Claims with volumes of a driver, bound by the test."""

    async def bind(self, name: str, **spec: Any) -> None:
        modes, amount = ["ReadWriteOnce"], {"storage": "1Gi"}
        claims, volumes = self.of("", "v1", "persistentvolumeclaims"), self.of("", "v1", "persistentvolumes")
        metadata = {"name": name, "namespace": "default"}
        wanted = {"accessModes": modes, "resources": {"requests": amount}, "volumeName": name, **spec}
        claim = await claims.create({"metadata": metadata, "spec": {"storageClassName": "", **wanted}})
        reference = {**metadata, "uid": claim["metadata"]["uid"]}
        csi = {"driver": DRIVER, "volumeHandle": name}
        made = {"capacity": amount, "accessModes": modes, "csi": csi, "claimRef": reference, **spec}
        status = {"phase": "Bound", "capacity": amount, "accessModes": modes}
        await claims.patch("default", name, {"status": status}, subresource="status")
        await volumes.create({"metadata": {"name": name}, "spec": made})

    async def pod(self, name: str, node: str, *claims: str) -> None:
        volumes = [{"name": each, "persistentVolumeClaim": {"claimName": each}} for each in claims]
        spec = {"containers": [{"name": "c", "image": "i"}], "nodeName": node, "volumes": volumes}
        await self.of("", "v1", "pods").create({"metadata": {"name": name, "namespace": "default"}, "spec": spec})

    async def node(self, name: str) -> None:
        await self.of("", "v1", "nodes").create({"metadata": {"name": name, "annotations": {MANAGED: "true"}}})

    async def attach(self) -> list[Object]:
        """Do what the driver does."""
        attachments = self.of("storage.k8s.io", "v1", "volumeattachments")
        found = await self.all("storage.k8s.io", "volumeattachments")
        for each in found:
            if not (each.get("status") or {}).get("attached"):
                await attachments.patch(
                    "", each["metadata"]["name"], {"status": {"attached": True}}, subresource="status"
                )
        return found

    async def reported(self) -> set[tuple[str, str]]:
        return {
            (node["metadata"]["name"], each["name"].rpartition("^")[2])
            for node in await self.all("", "nodes")
            for each in (node.get("status") or {}).get("volumesAttached") or ()
        }


def _where(attachment: Object) -> tuple[str, str]:
    return attachment["spec"]["nodeName"], attachment["spec"]["source"]["persistentVolumeName"]


def one_node_each(attachments: list[Object]) -> None:
    nodes = Counter(_where(each)[1] for each in attachments)
    assert not nodes or max(nodes.values()) == 1, nodes


@pytest.mark.parametrize("seed", SEEDS)
async def test_attaching(seed: int) -> None:
    async with Troubled(seed, "volumes.attachments") as cluster:
        cluster.never(cluster.informers.of("storage.k8s.io", "v1", "volumeattachments"), one_node_each)
        pods = cluster.of("", "v1", "pods")
        names = [f"v{number}" for number in VOLUMES]
        for name in names:
            await cluster.bind(name)
            for node in ("one", "two"):
                await cluster.pod(f"{name}-{node}", node, name)
        for node in ("one", "two"):
            await cluster.node(node)

        async def are_attached_once() -> bool:
            found = [_where(each) for each in await cluster.attach()]
            return {volume for _, volume in found} == {*names} and await cluster.reported() == {*found}

        await cluster.survive(are_attached_once)
        holders = {volume: node for node, volume in await cluster.reported()}
        for volume, node in holders.items():
            await pods.delete("default", f"{volume}-{node}", grace_seconds=0)

        async def have_moved() -> bool:
            found = {_where(each) for each in await cluster.attach()}
            wanted = {("two" if node == "one" else "one", volume) for volume, node in holders.items()}
            return found == wanted == await cluster.reported()

        await cluster.survive(have_moved)
        for pod in await cluster.all("", "pods"):
            await pods.delete("default", pod["metadata"]["name"], grace_seconds=0)

        async def are_detached() -> bool:
            return not await cluster.attach() and not await cluster.reported()

        await cluster.survive(are_detached)


@pytest.mark.parametrize("seed", SEEDS)
async def test_expanding(seed: int) -> None:
    """Whoever asks for more is told who will see to it; who does not is told nothing."""
    async with Troubled(seed, "volumes.expander") as cluster:
        classes = cluster.of("storage.k8s.io", "v1", "storageclasses")
        await classes.create({"metadata": {"name": "fast"}, "provisioner": DRIVER, "allowVolumeExpansion": True})
        names = {f"v{number}" for number in VOLUMES}
        for name in sorted(names):
            await cluster.bind(name, storageClassName="fast")
        more = {"spec": {"resources": {"requests": {"storage": "2Gi"}}}}
        for name in sorted(names - {"v0"}):
            await cluster.of("", "v1", "persistentvolumeclaims").patch("default", name, more)

        async def are_told() -> bool:
            events = [each for each in await cluster.all("", "events") if each["reason"] == "ExternalExpanding"]
            return {each["involvedObject"]["name"] for each in events} == names - {"v0"}

        await cluster.survive(are_told)
