"""Whether a job has come to its end, and why. Of several reasons the first counts:

1. what was decided before (SuccessCriteriaMet, FailureTarget)
2. the pod failure policy, the limit of failures, the deadline, the limits of failed indexes
3. the success policy
4. enough completions (after pods were managed: see ``is_complete``)
"""

from __future__ import annotations

from collections.abc import Iterable

from pilothouse.controllers.jobs.conditions import Condition, condition, failure, success, true_condition
from pilothouse.controllers.jobs.policies import judge, met_success_rule
from pilothouse.controllers.jobs.specs import completions_of, has_failed, is_indexed, is_suspended
from pilothouse.controllers.jobs.tally import Tally
from pilothouse.controllers.runtime.pods import phase_of
from pilothouse.machinery.objects import Object
from pilothouse.machinery.times import Instant, parse_time


def verdict(tally: Tally, now: Instant) -> Condition | None:
    """The condition under which the job ends; None if it goes on."""
    job = tally.job
    met = true_condition(job, "SuccessCriteriaMet")
    if met is not None:
        return met
    target = true_condition(job, "FailureTarget")
    if target is not None:
        return condition("Failed", "True", target.get("reason", ""), target.get("message", ""), now)
    found = _failure(tally, now)
    if found is not None:
        return failure(*found, now)
    rule = met_success_rule(job, tally.succeeded_indexes) if is_indexed(job) else None
    return None if rule is None else success("SuccessPolicy", rule, now)


def _failure(tally: Tally, now: Instant) -> tuple[str, str] | None:
    job = tally.job
    spec = job["spec"]
    message = _policy_message(tally)
    if message:
        return "PodFailurePolicy", message
    if tally.failed > spec["backoffLimit"] or _restarted_too_often(job, tally.pods):
        return "BackoffLimitExceeded", "Job has reached the specified backoff limit"
    left = seconds_to_deadline(job, now)
    if left is not None and left <= 0:
        return "DeadlineExceeded", "Job was active longer than specified deadline"
    failed = tally.failed_indexes
    if failed is None:
        return None
    most = spec.get("maxFailedIndexes")
    if most is not None and len(failed) > most:
        return "MaxFailedIndexesExceeded", "Job has exceeded the specified maximal number of failed indexes"
    if len(failed) and len(failed) + tally.succeeded >= spec["completions"]:
        return "FailedIndexes", "Job has failed indexes"
    return None


def _policy_message(tally: Tally) -> str:
    if not tally.job["spec"].get("podFailurePolicy"):
        return ""
    messages = (judge(tally.job, pod).message for pod in tally.pods if has_failed(pod, tally.job))
    return next(filter(None, messages), "")


def _restarted_too_often(job: Object, pods: Iterable[Object]) -> bool:
    """Containers that are restarted in place count towards the limit, too."""
    if job["spec"]["template"]["spec"].get("restartPolicy") != "OnFailure":
        return False
    restarts = 0
    for pod in pods:
        if phase_of(pod) in ("Running", "Pending"):
            status = pod.get("status") or {}
            for name in ("initContainerStatuses", "containerStatuses"):
                restarts += sum(int(each.get("restartCount") or 0) for each in status.get(name) or ())
    limit = job["spec"]["backoffLimit"]
    return restarts > 0 if limit == 0 else bool(restarts >= limit)


def seconds_to_deadline(job: Object, now: Instant) -> float | None:
    """How long the job may still be active; None if there is no deadline."""
    most = job["spec"].get("activeDeadlineSeconds")
    began = (job.get("status") or {}).get("startTime")
    if most is None or not began or is_suspended(job):
        return None
    return float(most) - now.since(parse_time(began))


def is_complete(job: Object, succeeded: int, active: int) -> bool:
    """Whether enough pods have succeeded and none is left running."""
    wanted = completions_of(job)
    enough = succeeded > 0 if wanted is None else succeeded >= wanted
    return enough and active == 0
