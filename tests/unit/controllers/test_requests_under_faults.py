"""Whatever fails and whenever they are killed: migrations and questions about pools come to one end, which stays."""

from __future__ import annotations

import pytest

from pilothouse.machinery.objects import Object

from .trouble import SEEDS, TroubledControllers, once

MIGRATIONS = "storagemigration.k8s.io", "storageversionmigrations"
DRIVER = "gpu.example.com"
FLAGS = (
    "--authorization-mode=Node,RBAC",
    "--feature-gates=DRAResourcePoolStatus=true",
    "--runtime-config=resource.k8s.io/v1alpha3=true",
)


def migration(name: str, resource: str) -> Object:
    return {"metadata": {"name": name}, "spec": {"resource": {"group": "", "resource": resource}}}


def ends_of(obj: Object) -> list[str]:
    conditions = (obj.get("status") or {}).get("conditions") or ()
    return [each["type"] for each in conditions if each["type"] in ("Succeeded", "Failed")]


def one_end(migrations: list[Object]) -> None:
    assert all(len(ends_of(each)) < 2 for each in migrations), [ends_of(each) for each in migrations]


@pytest.mark.parametrize("seed", SEEDS)
async def test_storage_version_migration(seed: int) -> None:
    """Each begins at one version, which it keeps, and succeeds though its objects change and go meanwhile."""
    async with TroubledControllers(seed, "storage_migration") as cluster:
        informer = cluster.informers.of(MIGRATIONS[0], "v1", MIGRATIONS[1])
        cluster.never(informer, once(lambda obj: (obj.get("status") or {}).get("resourceVersion")))
        cluster.never(informer, once(ends_of))
        cluster.never(informer, one_end)
        maps = cluster.of("", "v1", "configmaps")
        for number in range(12):
            await maps.create({"metadata": {"name": f"m{number}", "namespace": "default"}, "data": {"a": "b"}})
        for name, resource in (("first", "configmaps"), ("second", "configmaps"), ("third", "secrets")):
            await cluster.of(MIGRATIONS[0], "v1", MIGRATIONS[1]).create(migration(name, resource))
        await cluster.suffer(1)
        for number in range(0, 12, 4):
            await maps.patch("default", f"m{number}", {"data": {"a": "c"}})
            await maps.delete("default", f"m{number + 1}")

        async def have_succeeded() -> bool:
            return [ends_of(each) for each in await cluster.all(*MIGRATIONS)] == [["Succeeded"]] * 3

        await cluster.survive(have_succeeded)
        left = {
            each["metadata"]["name"]: each["data"]
            for each in await cluster.all("", "configmaps")
            if each["metadata"]["name"].startswith("m")
        }
        wanted = {f"m{number}": {"a": "c" if number % 4 == 0 else "b"} for number in range(12) if number % 4 != 1}
        assert left == wanted


@pytest.mark.parametrize("seed", SEEDS)
async def test_pool_status(seed: int) -> None:
    """Each question is answered once, and goes when its time is over."""
    async with TroubledControllers(seed, "pool_status", flags=FLAGS) as cluster:
        requests = cluster.of("resource.k8s.io", "v1alpha3", "resourcepoolstatusrequests")
        informer = cluster.informers.of("resource.k8s.io", "v1alpha3", "resourcepoolstatusrequests")
        cluster.never(informer, once(lambda obj: obj.get("status")))
        for number in range(3):
            pool = {"name": f"p{number}", "generation": 1, "resourceSliceCount": 1}
            spec = {"driver": DRIVER, "nodeName": "n", "pool": pool, "devices": [{"name": "d"}]}
            await cluster.of("resource.k8s.io", "v1", "resourceslices").create(
                {"metadata": {"name": f"s{number}"}, "spec": spec}
            )
        names = {f"r{number}" for number in range(5)}
        for name in sorted(names):
            await requests.create({"metadata": {"name": name}, "spec": {"driver": DRIVER}})

        async def are_answered() -> bool:
            found = await cluster.all("resource.k8s.io", "resourcepoolstatusrequests", "v1alpha3")
            counts = [(each.get("status") or {}).get("poolCount") for each in found]
            return counts == [3] * len(names)

        await cluster.survive(are_answered)
        cluster.clock.advance(2 * 3600)

        async def have_gone() -> bool:
            cluster.clock.advance(600)
            return not await cluster.all("resource.k8s.io", "resourcepoolstatusrequests", "v1alpha3")

        await cluster.survive(have_gone)
