"""Jobs on a real server, with simulated nodes that run their pods."""

from __future__ import annotations

from typing import Any

import pytest

from ..conftest import StartWorld, World

Job = dict[str, Any]


@pytest.fixture
async def world(start_world: StartWorld) -> World:
    return await start_world("job-controller", "ttl-after-finished-controller", "garbage-collector-controller")


def job(name: str = "j", command: str = "true", annotations: dict[str, str] | None = None, **spec: Any) -> Job:
    restart = spec.pop("restartPolicy", "Never")
    pod = {"restartPolicy": restart, "containers": [{"name": "c", "image": "i", "command": ["sh", "-c", command]}]}
    template = {"metadata": {"annotations": annotations or {}}, "spec": pod}
    return {"metadata": {"name": name, "namespace": "default"}, "spec": {"template": template, **spec}}


async def create(world: World, made: Job) -> None:
    await world.of("batch", "jobs").create(made)


async def until(world: World, test: Any) -> Job:
    return await world.until_is("batch", "jobs", "j", lambda job: test(job.get("status") or {}))


def conditions(status: Job) -> dict[str, str]:
    return {each["type"]: each["reason"] for each in status.get("conditions") or () if each["status"] == "True"}


def has(type: str) -> Any:
    return lambda status: type in conditions(status)


async def test_completions_and_what_the_status_says(world: World) -> None:
    await create(world, job(completions=3, parallelism=2))
    status = (await until(world, has("Complete")))["status"]
    assert conditions(status) == {"SuccessCriteriaMet": "CompletionsReached", "Complete": "CompletionsReached"}
    assert status["succeeded"] == 3 and status["uncountedTerminatedPods"] == {}
    assert (status["ready"], status["terminating"], "active" in status) == (0, 0, False)
    assert status["startTime"] <= status["completionTime"]
    pods = await world.pods()
    assert len(pods) == 3 and not any(pod["metadata"].get("finalizers") for pod in pods)
    assert await world.until_event("Completed") == "Job completed"


async def test_indexed(world: World) -> None:
    await create(world, job(completions=4, parallelism=4, completionMode="Indexed"))
    status = (await until(world, has("Complete")))["status"]
    assert (status["completedIndexes"], status["succeeded"]) == ("0-3", 4)
    pods = await world.pods()
    label = "batch.kubernetes.io/job-completion-index"
    assert sorted(pod["metadata"]["labels"][label] for pod in pods) == ["0", "1", "2", "3"]
    assert {pod["spec"]["hostname"] for pod in pods} == {"j-0", "j-1", "j-2", "j-3"}
    assert all(pod["metadata"]["name"].startswith(pod["spec"]["hostname"]) for pod in pods)
    assert pods[0]["spec"]["containers"][0]["env"][0]["name"] == "JOB_COMPLETION_INDEX"


async def test_failures_reach_the_limit(world: World) -> None:
    await create(world, job(command="exit 3", backoffLimit=0))
    status = (await until(world, has("Failed")))["status"]
    assert conditions(status) == {"FailureTarget": "BackoffLimitExceeded", "Failed": "BackoffLimitExceeded"}
    assert (status["failed"], "completionTime" in status) == (1, False)
    assert await world.until_event("BackoffLimitExceeded") == "Job has reached the specified backoff limit"


async def test_a_failed_job_stops_what_runs(world: World) -> None:
    made = job(command="sleep 1000", completions=2, parallelism=2, completionMode="Indexed", backoffLimit=0)
    await create(world, made)
    await until(world, lambda status: status.get("ready") == 2)
    (pod,) = await world.pods("batch.kubernetes.io/job-completion-index=0")
    name = pod["metadata"]["name"]
    await world.of("", "pods").patch("default", name, {"status": {"phase": "Failed"}}, subresource="status")
    status = (await until(world, has("Failed")))["status"]
    assert status["failed"] == 2
    left = await world.pods()
    assert [pod["metadata"]["name"] for pod in left] == [name]


async def test_limits_of_each_index(world: World) -> None:
    rule = {"action": "FailIndex", "onExitCodes": {"operator": "In", "values": [42]}}
    made = job(
        command="exit 42",
        completions=2,
        parallelism=2,
        completionMode="Indexed",
        backoffLimitPerIndex=1,
        podFailurePolicy={"rules": [rule]},
    )
    await create(world, made)
    status = (await until(world, has("Failed")))["status"]
    assert conditions(status)["Failed"] == "FailedIndexes"
    assert (status["failedIndexes"], status["failed"]) == ("0,1", 2)


async def test_failure_policy_ends_the_job(world: World) -> None:
    rule = {"action": "FailJob", "onExitCodes": {"containerName": "c", "operator": "In", "values": [42]}}
    await create(world, job(command="exit 42", podFailurePolicy={"rules": [rule]}))
    status = (await until(world, has("Failed")))["status"]
    assert conditions(status)["Failed"] == "PodFailurePolicy"
    message = next(each["message"] for each in status["conditions"] if each["type"] == "Failed")
    assert "failed with exit code 42 matching FailJob rule at index 0" in message


async def test_success_policy(world: World) -> None:
    made = job(
        completions=3,
        parallelism=1,
        completionMode="Indexed",
        successPolicy={"rules": [{"succeededIndexes": "0"}]},
    )
    await create(world, made)
    status = (await until(world, has("Complete")))["status"]
    assert conditions(status)["SuccessCriteriaMet"] == "SuccessPolicy"
    assert status["completedIndexes"].startswith("0")


async def test_deadline(world: World) -> None:
    await create(world, job(command="sleep 1000", activeDeadlineSeconds=1))
    status = (await until(world, has("Failed")))["status"]
    assert conditions(status)["Failed"] == "DeadlineExceeded"
    assert not await world.pods()


async def test_suspend_and_resume(world: World) -> None:
    await create(world, job(command="sleep 1000", parallelism=2, suspend=True))
    status = (await until(world, has("Suspended")))["status"]
    assert "startTime" not in status and not await world.pods()
    jobs = world.of("batch", "jobs")
    await jobs.patch("default", "j", {"spec": {"suspend": False}})
    status = (await until(world, lambda status: status.get("ready") == 2))["status"]
    assert status["startTime"] and not conditions(status)
    await jobs.patch("default", "j", {"spec": {"suspend": True}})
    status = (await until(world, lambda status: "active" not in status and "Suspended" in conditions(status)))["status"]
    await world.until(lambda: _is_empty(world))
    assert "failed" not in status
    assert await world.until_event("Resumed") == "Job resumed"


async def _is_empty(world: World) -> bool:
    return not await world.pods()


async def test_fewer_in_parallel(world: World) -> None:
    await create(world, job(command="sleep 1000", parallelism=3))
    await until(world, lambda status: status.get("ready") == 3)
    await world.of("batch", "jobs").patch("default", "j", {"spec": {"parallelism": 1}})
    await until(world, lambda status: (status.get("active"), status.get("terminating")) == (1, 0))

    async def is_one_left() -> bool:
        return len(await world.pods()) == 1

    await world.until(is_one_left)


async def test_another_controller_manages_it(world: World) -> None:
    await create(world, job(managedBy="example.com/other"))
    await world.of("batch", "jobs").create(job("k"))
    await world.until_is("batch", "jobs", "k", lambda job: has("Complete")(job.get("status") or {}))
    assert not (await world.of("batch", "jobs").get("default", "j")).get("status")


async def test_deleted_job_lets_its_pods_go(world: World) -> None:
    await create(world, job(command="sleep 1000"))
    await until(world, lambda status: status.get("ready") == 1)
    await world.of("batch", "jobs").delete("default", "j", propagation="Background")
    await world.until(lambda: _is_empty(world))


async def test_orphaned_pods_lose_the_finalizer(world: World) -> None:
    await create(world, job(command="sleep 1000"))
    await until(world, lambda status: status.get("ready") == 1)
    await world.of("batch", "jobs").delete("default", "j", propagation="Orphan")
    await world.until_gone("batch", "jobs", "j")

    async def is_released() -> bool:
        return not any(pod["metadata"].get("finalizers") for pod in await world.pods())

    await world.until(is_released)
    assert len(await world.pods()) == 1


async def test_time_to_live(world: World) -> None:
    await create(world, job(ttlSecondsAfterFinished=0))
    await world.until_gone("batch", "jobs", "j")
    await world.until(lambda: _is_empty(world))


async def test_replaced_only_when_ended(world: World) -> None:
    made = job(
        command="sleep 1000",
        annotations={"simulation.pilothouse.dev/stop-delay": "2s"},
        podReplacementPolicy="Failed",
    )
    await create(world, made)
    await until(world, lambda status: status.get("ready") == 1)
    name = (await world.pods())[0]["metadata"]["name"]
    await world.of("", "pods").delete("default", name)
    status = (await until(world, lambda status: status.get("terminating") == 1))["status"]
    assert "active" not in status and "failed" not in status and len(await world.pods()) == 1
    await until(world, lambda status: status.get("failed") == 1)
