"""The rules by which a job judges failed pods and succeeded indexes."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from pilothouse.controllers.jobs.indexes import Indexes
from pilothouse.machinery.objects import Object


class Judgement(NamedTuple):
    """What the pod failure policy says of a failed pod."""

    action: str = "Count"
    message: str = ""
    """Why the job is to fail, if it is."""

    @property
    def counts(self) -> bool:
        """Whether the failure counts towards the limit of failures."""
        return self.action != "Ignore"


def judge(job: Object, pod: Object) -> Judgement:
    """The action of the first rule that matches a failed pod."""
    policy = job["spec"].get("podFailurePolicy") or {}
    for number, rule in enumerate(policy.get("rules") or ()):
        what = _match(rule, pod)
        if what:
            action = rule["action"]
            message = f"{what} matching {action} rule at index {number}" if action == "FailJob" else ""
            return Judgement(action, message)
    return Judgement()


def _match(rule: Object, pod: Object) -> str:
    """What of the pod a rule matches; nothing if it does not match."""
    name = f"{pod['metadata']['namespace']}/{pod['metadata']['name']}"
    status = pod.get("status") or {}
    if rule.get("onExitCodes"):
        statuses = [*(status.get("containerStatuses") or ()), *(status.get("initContainerStatuses") or ())]
        found = _matching_exit(rule["onExitCodes"], statuses)
        return f"Container {found[0]} for pod {name} failed with exit code {found[1]}" if found else ""
    patterns = [(each["type"], each.get("status")) for each in rule.get("onPodConditions") or ()]
    for each in status.get("conditions") or ():
        if (each["type"], each["status"]) in patterns:
            return f"Pod {name} has condition {each['type']}"
    return ""


def _matching_exit(requirement: Object, statuses: Iterable[Object]) -> tuple[str, int] | None:
    wanted = requirement.get("containerName")
    for each in statuses:
        terminated = (each.get("state") or {}).get("terminated")
        if terminated is None or (wanted is not None and wanted != each["name"]):
            continue
        code = terminated.get("exitCode") or 0
        if code and (code in requirement["values"]) == (requirement["operator"] == "In"):
            return each["name"], code
    return None


def met_success_rule(job: Object, succeeded: Indexes) -> str | None:
    """Which rule of the success policy is met, in words; None if none is."""
    policy = job["spec"].get("successPolicy") or {}
    if not succeeded.ranges:
        return None
    for number, rule in enumerate(policy.get("rules") or ()):
        if _is_met(rule, succeeded, job["spec"]["completions"]):
            return f"Matched rules at index {number}"
    return None


def _is_met(rule: Object, succeeded: Indexes, completions: int) -> bool:
    count = rule.get("succeededCount")
    if rule.get("succeededIndexes") is None:
        return count is not None and len(succeeded) >= count
    required = Indexes.parse(rule["succeededIndexes"], completions)
    if not required.ranges:
        return False
    shared = required.shared_with(succeeded)
    return shared == len(required) or (count is not None and shared >= count)
