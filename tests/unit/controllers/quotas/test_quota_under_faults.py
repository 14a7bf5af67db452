"""Whatever fails and whenever the controller is killed: what a quota says is used is what is there, in the end.

Meanwhile there may be one more than allowed: a recount that has not seen the newest object yet gives its share away
again, as kube-controller-manager's does.
"""

from __future__ import annotations

import asyncio
import contextlib
from random import Random

import pytest

from pilothouse.machinery import errors
from pilothouse.testing.faults import Faults
from pilothouse.testing.running_controllers import RunningControllers

HARD = 5


@pytest.mark.parametrize("seed", [1, 2, 3])
async def test_usage_settles(seed: int) -> None:
    rng, faults = Random(seed), Faults(seed)
    async with RunningControllers("quotas", faults=faults) as cluster:
        secrets, quotas = cluster.of("", "v1", "secrets"), cluster.of("", "v1", "resourcequotas")
        await quotas.create(
            {"metadata": {"name": "q", "namespace": "default"}, "spec": {"hard": {"count/secrets": str(HARD)}}}
        )
        await cluster.wait(quotas, "default", "q", lambda obj: (obj.get("status") or {}).get("used"))
        names: set[str] = set()
        for step in range(40):
            if names and rng.random() < 0.4:
                name = rng.choice(sorted(names))
                await secrets.delete("default", name)
                names.discard(name)
            else:
                # What was given up may still be charged for a moment, and then the server refuses.
                with contextlib.suppress(errors.Forbidden):
                    await secrets.create({"metadata": {"name": f"s{step}", "namespace": "default"}})
                    names.add(f"s{step}")
            if rng.random() < 0.1:
                await cluster.restart()
            await asyncio.sleep(0)
        await cluster.wait(
            quotas, "default", "q", lambda obj: obj["status"]["used"] == {"count/secrets": str(len(names))}
        )
        assert faults.count > 0
