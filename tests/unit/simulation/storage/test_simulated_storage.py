"""A cluster whose storage is simulated: claims get volumes, pods get them attached, all of it goes again."""

from __future__ import annotations

from typing import Any

from pilothouse.simulation.storage.storage import SimulatedStorage
from pilothouse.testing.running_controllers import RunningControllers

MODULES = ("volumes.binder", "volumes.claim_protection", "volumes.volume_protection", "volumes.attachments")


def claim(name: str, **spec: Any) -> dict[str, Any]:
    spec = {"resources": {"requests": {"storage": "1Gi"}}, "accessModes": ["ReadWriteOnce"], **spec}
    return {"metadata": {"name": name, "namespace": "default"}, "spec": spec}


async def test_a_volume_from_beginning_to_end() -> None:
    async with RunningControllers(*MODULES) as cluster:
        await SimulatedStorage(cluster.clients, cluster.informers, cluster.supervisor).start()
        claims, volumes = cluster.of("", "v1", "persistentvolumeclaims"), cluster.of("", "v1", "persistentvolumes")
        await claims.create(claim("c"))
        bound = await cluster.wait(claims, "default", "c", lambda obj: obj["status"].get("phase") == "Bound")
        assert bound["spec"]["storageClassName"] == "standard"
        name = bound["spec"]["volumeName"]
        assert name == f"pvc-{bound['metadata']['uid']}"

        pods, nodes = cluster.of("", "v1", "pods"), cluster.of("", "v1", "nodes")
        annotations = {"volumes.kubernetes.io/controller-managed-attach-detach": "true"}
        await nodes.create({"metadata": {"name": "one", "annotations": annotations}})
        used = {"name": "v", "persistentVolumeClaim": {"claimName": "c"}}
        spec = {"nodeName": "one", "containers": [{"name": "c", "image": "i"}], "volumes": [used]}
        await pods.create({"metadata": {"name": "p", "namespace": "default"}, "spec": spec})
        await cluster.wait(nodes, "", "one", lambda obj: (obj.get("status") or {}).get("volumesAttached"))

        await claims.patch("default", "c", {"spec": {"resources": {"requests": {"storage": "2Gi"}}}})
        await cluster.wait(claims, "default", "c", lambda obj: obj["status"]["capacity"] == {"storage": "2Gi"})
        assert (await volumes.get("", name))["spec"]["capacity"] == {"storage": "2Gi"}

        await claims.delete("default", "c")
        await pods.delete("default", "p", grace_seconds=0)
        await cluster.wait_gone(claims, "default", "c")
        await cluster.wait_gone(volumes, "", name)
        assert not [each async for each in cluster.of("storage.k8s.io", "v1", "volumeattachments").items()]


async def test_a_registered_driver_is_left_alone() -> None:
    async with RunningControllers("volumes.binder") as cluster:
        await SimulatedStorage(cluster.clients, cluster.informers, cluster.supervisor).start()
        await cluster.of("storage.k8s.io", "v1", "csidrivers").create(
            {"metadata": {"name": "real.example.com"}, "spec": {}}
        )
        for name in ("real.example.com", "unreal.example.com"):
            storage_class = {"metadata": {"name": name}, "provisioner": name}
            await cluster.of("storage.k8s.io", "v1", "storageclasses").create(storage_class)
        claims = cluster.of("", "v1", "persistentvolumeclaims")
        await claims.create(claim("real", storageClassName="real.example.com"))
        await cluster.wait_event("default", "ExternalProvisioning", "real")
        await claims.create(claim("unreal", storageClassName="unreal.example.com"))
        await cluster.wait(claims, "default", "unreal", lambda obj: obj["status"].get("phase") == "Bound")
        assert (await claims.get("default", "real"))["status"]["phase"] == "Pending"
