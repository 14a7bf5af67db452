"""Cron jobs on a real server, by a clock that the test lets pass. Jobs end when the test says so."""

from __future__ import annotations

import time
from typing import Any

import pytest

from pilothouse.machinery.times import parse_time
from pilothouse.testing.fake_clock import FakeClock

from ..conftest import StartWorld, World


class Cron:
    """A world with a clock that stands at the moment in which the cron job was created.

    The server dates by the machine's clock. On a busy machine the minute in which the world began may be over by then,
    and a cron job would wait for a time that the test does not let come.
    """

    def __init__(self, world: World, clock: FakeClock) -> None:
        self.world, self.clock = world, clock

    async def create(self, schedule: str = "*/1 * * * *", **spec: Any) -> None:
        pod = {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]}
        template = {"metadata": {"labels": {"cron": "c"}}, "spec": {"template": {"spec": pod}}}
        made = {"metadata": {"name": "c", "namespace": "default"}}
        made["spec"] = {"schedule": schedule, "jobTemplate": template, **spec}
        await self.begin(made)
        await self.clock.until_waiting()

    async def begin(self, made: dict[str, Any]) -> None:
        """Create the cron job while it is suspended, and let it begin at that very moment."""
        crons, suspend = self.world.of("batch", "cronjobs"), made["spec"].get("suspend", False)
        created = await crons.create({**made, "spec": {**made["spec"], "suspend": True}})
        at = parse_time(created["metadata"]["creationTimestamp"])
        self.clock.advance(at.seconds - self.clock.now().seconds)
        await crons.patch("default", "c", {"spec": {"suspend": suspend}})

    async def jobs(self) -> list[Any]:
        return await self.world.list("batch", "jobs")

    async def pass_minute(self) -> None:
        """Let the next minute begin once the controller waits for it."""
        await self.clock.until_waiting()
        self.clock.advance(61 - self.clock.now().seconds % 60)

    async def until_jobs(self, count: int) -> list[Any]:
        async def look() -> list[Any] | None:
            jobs = await self.jobs()
            return jobs if len(jobs) == count else None

        found: list[Any] = await self.world.until(look)
        return found

    async def until_status(self, test: Any) -> dict[str, Any]:
        found = await self.world.until_is("batch", "cronjobs", "c", lambda obj: test(obj.get("status") or {}))
        status: dict[str, Any] = found["status"]
        return status

    async def end(self, job: Any, type: str = "Complete") -> None:
        at = job["metadata"]["creationTimestamp"]
        before = "SuccessCriteriaMet" if type == "Complete" else "FailureTarget"
        conditions = [{"type": each, "status": "True", "lastTransitionTime": at} for each in (before, type)]
        status = {"startTime": at, "conditions": conditions, "uncountedTerminatedPods": {}}
        if type == "Complete":
            status["completionTime"] = at
        await self.world.of("batch", "jobs").patch(
            "default", job["metadata"]["name"], {"status": status}, subresource="status"
        )


@pytest.fixture
async def cron(start_world: StartWorld) -> Cron:
    clock = FakeClock(start=int(time.time()))
    return Cron(await start_world("cronjob-controller", nodes=0, clock=clock), clock)


async def test_a_job_every_minute(cron: Cron) -> None:
    await cron.create()
    await cron.pass_minute()
    (job,) = await cron.until_jobs(1)
    metadata = job["metadata"]
    assert metadata["labels"] == {"cron": "c"}
    assert metadata["ownerReferences"][0]["kind"] == "CronJob"
    assert metadata["annotations"]["batch.kubernetes.io/cronjob-scheduled-timestamp"].endswith(":00Z")
    status = await cron.until_status(lambda status: status.get("active"))
    assert status["active"][0]["name"] == metadata["name"] and status["lastScheduleTime"].endswith(":00Z")
    await cron.pass_minute()
    await cron.until_jobs(2)
    await cron.end(job)
    status = await cron.until_status(lambda status: len(status.get("active") or ()) == 1)
    assert status["lastSuccessfulTime"]
    assert await cron.world.until_event("SawCompletedJob") == (
        f"Saw completed job: {metadata['name']}, condition: Complete"
    )


async def test_forbid(cron: Cron) -> None:
    await cron.create(concurrencyPolicy="Forbid")
    await cron.pass_minute()
    (job,) = await cron.until_jobs(1)
    await cron.until_status(lambda status: status.get("active"))
    await cron.pass_minute()
    assert "Forbid" in await cron.world.until_event("JobAlreadyActive")
    assert len(await cron.jobs()) == 1
    await cron.end(job)
    await cron.until_jobs(2)


async def test_replace(cron: Cron) -> None:
    await cron.create(concurrencyPolicy="Replace")
    await cron.pass_minute()
    (job,) = await cron.until_jobs(1)
    await cron.until_status(lambda status: status.get("active"))
    await cron.pass_minute()
    await cron.until_status(lambda status: [job["metadata"]["uid"]] != [each["uid"] for each in status["active"]])
    await cron.until_jobs(1)


async def test_history(cron: Cron) -> None:
    await cron.create(successfulJobsHistoryLimit=1, failedJobsHistoryLimit=0)
    names = []
    for type in ("Complete", "Failed", "Complete"):
        await cron.pass_minute()
        status = await cron.until_status(lambda status: status.get("active"))
        names.append(status["active"][0]["name"])
        await cron.end(await cron.world.of("batch", "jobs").get("default", names[-1]), type)
        await cron.until_status(lambda status: not status.get("active"))
    (job,) = await cron.until_jobs(1)
    assert job["metadata"]["name"] == names[-1]


async def test_suspended(cron: Cron) -> None:
    made = {"suspend": True}
    pod = {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]}
    spec = {"schedule": "* * * * *", "jobTemplate": {"spec": {"template": {"spec": pod}}}, **made}
    await cron.begin({"metadata": {"name": "c", "namespace": "default"}, "spec": spec})
    cron.clock.advance(90)
    await cron.world.of("batch", "cronjobs").patch("default", "c", {"spec": {"suspend": False}})
    await cron.until_jobs(1)


async def test_too_late(cron: Cron) -> None:
    await cron.create("0 0 1 1 *", startingDeadlineSeconds=20)
    cron.clock.advance(400 * 86400)
    await cron.clock.until_waiting()
    assert not await cron.jobs()


async def test_many_missed_times(cron: Cron) -> None:
    await cron.create()
    cron.clock.advance(3 * 3600)
    assert (await cron.world.until_event("TooManyMissedTimes")).startswith("too many missed start times")
    assert len(await cron.until_jobs(1)) == 1


async def test_a_job_that_vanished(cron: Cron) -> None:
    await cron.create()
    await cron.pass_minute()
    (job,) = await cron.until_jobs(1)
    await cron.until_status(lambda status: status.get("active"))
    await cron.world.of("batch", "jobs").delete("default", job["metadata"]["name"], propagation="Background")
    await cron.until_status(lambda status: not status.get("active"))
    assert await cron.world.until_event("MissingJob") == f"Active job went missing: {job['metadata']['name']}"
