"""Whatever fails and whenever the binder is killed: one claim, one volume, and everything settles."""

from __future__ import annotations

import asyncio
from random import Random
from typing import Any

import pytest

from pilothouse.testing.faults import Faults
from pilothouse.testing.running_controllers import RunningControllers

CLAIMS, VOLUMES = 6, 5


class Watched(RunningControllers):
    """Notes every pair that ever named each other."""

    def watch(self) -> dict[str, set[str]]:
        owners: dict[str, set[str]] = {}

        def seen(volume: dict[str, Any]) -> None:
            uid = (volume["spec"].get("claimRef") or {}).get("uid")
            if uid:
                owners.setdefault(volume["metadata"]["name"], set()).add(uid)

        self.informers.of("", "v1", "persistentvolumes").add_handler(seen, lambda old, new: seen(new), name="test")
        return owners

    async def settle(self, condition: Any) -> None:
        async with asyncio.timeout(60):
            while not await condition():
                await asyncio.sleep(0.02)


@pytest.mark.parametrize("seed", [1, 2, 3])
async def test_pairs(seed: int) -> None:
    rng, faults = Random(seed), Faults(seed)
    async with Watched(
        "volumes.binder", "volumes.claim_protection", "volumes.volume_protection", faults=faults
    ) as cluster:
        owners = cluster.watch()
        claims, volumes = cluster.of("", "v1", "persistentvolumeclaims"), cluster.of("", "v1", "persistentvolumes")
        work = [("claim", number) for number in range(CLAIMS)] + [("volume", number) for number in range(VOLUMES)]
        rng.shuffle(work)
        for kind, number in work:
            modes, amount = ["ReadWriteOnce"], {"storage": "1Gi"}
            if kind == "claim":
                spec = {"accessModes": modes, "resources": {"requests": amount}, "storageClassName": ""}
                await claims.create({"metadata": {"name": f"c{number}", "namespace": "default"}, "spec": spec})
            else:
                spec = {"accessModes": modes, "capacity": amount, "hostPath": {"path": "/tmp/x"}}
                spec["persistentVolumeReclaimPolicy"] = rng.choice(("Delete", "Retain"))
                await volumes.create({"metadata": {"name": f"v{number}"}, "spec": spec})
            if rng.random() < 0.3:
                await cluster.restart()

        async def are_paired() -> bool:
            by_uid = {each["metadata"]["uid"]: each async for each in claims.items()}
            found = [each async for each in volumes.items()]
            pairs = [
                (each["metadata"]["name"], by_uid[each["spec"]["claimRef"]["uid"]])
                for each in found
                if each["status"].get("phase") == "Bound"
            ]
            bound = [each for each in by_uid.values() if each["status"].get("phase") == "Bound"]
            return (
                len(pairs) == len(bound) == VOLUMES
                and all(claim["spec"].get("volumeName") == name for name, claim in pairs)
                and len({claim["metadata"]["uid"] for _, claim in pairs}) == VOLUMES
            )

        await cluster.settle(are_paired)
        assert all(len(uids) == 1 for uids in owners.values()), "a volume changed hands"
        assert faults.count > 0

        gone = rng.sample(range(CLAIMS), 3)
        for number in gone:
            await claims.delete("default", f"c{number}")
            if rng.random() < 0.5:
                await cluster.restart()

        async def are_reclaimed() -> bool:
            by_uid = {each["metadata"]["uid"]: each async for each in claims.items()}
            if len(by_uid) != CLAIMS - 3:
                return False
            for volume in [each async for each in volumes.items()]:
                reference = volume["spec"].get("claimRef")
                lives = reference is not None and reference["uid"] in by_uid
                if volume["status"].get("phase") != ("Bound" if lives else "Released"):
                    return False
                if not lives and volume["spec"]["persistentVolumeReclaimPolicy"] == "Delete":
                    return False
            return True

        await cluster.settle(are_reclaimed)
