"""What users of jobs may leave open. Everything is idempotent and in place."""

from __future__ import annotations

from typing import Final

from pilothouse.apis.core.pod_spec.defaults import default_pod_template
from pilothouse.machinery.objects import Object

_NO_LIMIT: Final = (1 << 31) - 1


def default_job(obj: Object) -> None:
    """One pod, up to six failures; a job without labels takes those of its pods, as the very same dictionary."""
    spec = obj["spec"]
    if spec.get("parallelism") is None:
        if spec.get("completions") is None:
            spec["completions"] = 1
        spec["parallelism"] = 1
    if spec.get("backoffLimit") is None:
        spec["backoffLimit"] = 6 if spec.get("backoffLimitPerIndex") is None else _NO_LIMIT
    template = spec["template"]
    if template["metadata"].get("labels") and not obj["metadata"].get("labels"):
        obj["metadata"]["labels"] = template["metadata"]["labels"]
    spec.setdefault("completionMode", "NonIndexed")
    spec.setdefault("suspend", False)
    if "podReplacementPolicy" not in spec:
        spec["podReplacementPolicy"] = "TerminatingOrFailed" if spec.get("podFailurePolicy") is None else "Failed"
    spec.setdefault("manualSelector", False)
    default_job_spec(spec)


def default_job_spec(spec: Object) -> None:
    """What is open in a job's spec wherever it stands: patterns of conditions, and the pods."""
    for rule in (spec.get("podFailurePolicy") or {}).get("rules") or ():
        for pattern in rule.get("onPodConditions") or ():
            if not pattern.get("status"):
                pattern["status"] = "True"
    default_pod_template(spec["template"])
