"""Jobs. Unless told otherwise the server makes the labels by which a job knows its pods."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Final

from pilothouse.apis.apps.workload import WorkloadStrategy
from pilothouse.apis.batch.job.columns import JOB_COLUMNS
from pilothouse.apis.batch.job.defaults import default_job
from pilothouse.apis.batch.job.status import validate_job_status
from pilothouse.apis.batch.job.validation import NAME_LABELS, UID_LABELS, validate_job, validate_job_update
from pilothouse.apis.core.pod_spec.options import options_for_template
from pilothouse.apis.strategy import Context, StatusStrategy, Strategy
from pilothouse.apis.strategy_rules import DeletionRules
from pilothouse.machinery.field_errors import FieldError
from pilothouse.machinery.objects import Object

ORPHAN_WARNING: Final = (
    "child pods are preserved by default when jobs are deleted; set propagationPolicy=Background to remove them or set "
    "propagationPolicy=Orphan to suppress this warning"
)
_MANY_COMPLETIONS: Final = 100_000
_MANY_PODS: Final = 10_000
_MANY_WARNING: Final = (
    "In Indexed Jobs with a number of completions higher than 10^5 and a parallelism higher than 10^4, Kubernetes "
    "might not be able to track completedIndexes when a big number of indexes fail"
)


def warn_about_job_spec(spec: Object, path: str) -> list[str]:
    """What a job of this size cannot rely on."""
    if spec.get("completionMode") != "Indexed":
        return []
    many = (spec.get("completions") or 0) > _MANY_COMPLETIONS and (spec.get("parallelism") or 0) > _MANY_PODS
    return [f"{path}: {_MANY_WARNING}"] if many else []


def generate_selector(obj: Object) -> None:
    """Label the pods with the job's name and uid, and select them by the uid. What users set stays, to be refused."""
    spec, metadata = obj["spec"], obj["metadata"]
    found = spec["template"]["metadata"].setdefault("labels", {})
    for keys, value in ((NAME_LABELS, metadata.get("name", "")), (UID_LABELS, metadata["uid"])):
        for key in keys:
            found.setdefault(key, value)
    selector = spec.get("selector")
    if selector is None:
        selector = spec["selector"] = {}
    selector["matchLabels"] = {UID_LABELS[1]: metadata["uid"], **(selector.get("matchLabels") or {})}


class JobStatusStrategy(StatusStrategy):
    """What a job controller reports."""

    completed_when_read = True

    def default(self, obj: Object) -> None:
        default_job(obj)

    def validate_update(self, ctx: Context, obj: Object, old: Object) -> list[FieldError]:
        return validate_job_status(obj, old)


class JobStrategy(WorkloadStrategy):
    """Jobs. Pods outlive a deleted job, with a warning, unless the client says what shall happen to them."""

    type_name = "batch.v1.Job"
    warns_about_names = True
    deletion_rules = DeletionRules(orphans_by_default=True)
    subresources: ClassVar[Mapping[str, type[Strategy]]] = {"status": JobStatusStrategy}
    completed_when_read = True
    columns = JOB_COLUMNS
    field_labels = frozenset({"status.successful"})

    def default(self, obj: Object) -> None:
        default_job(obj)

    def prepare_for_create(self, ctx: Context, obj: Object) -> None:
        own, pods = obj["metadata"], obj["spec"]["template"]["metadata"]
        shares_labels = "labels" in own and own["labels"] is pods.get("labels")
        if not obj["spec"].get("manualSelector"):
            generate_selector(obj)
        if shares_labels:
            own["labels"] = dict(pods["labels"])
        super().prepare_for_create(ctx, obj)

    def validate(self, ctx: Context, obj: Object) -> list[FieldError]:
        return validate_job(obj, options_for_template(self.gates))

    def validate_update(self, ctx: Context, obj: Object, old: Object) -> list[FieldError]:
        return validate_job_update(obj, old, options_for_template(self.gates, old["spec"]["template"]))

    def template_warnings(self, obj: Object) -> list[str]:
        return warn_about_job_spec(obj["spec"], "spec") + super().template_warnings(obj)

    def fields(self, obj: Object) -> dict[str, str]:
        return {"status.successful": str((obj.get("status") or {}).get("succeeded", 0))}

    def convert_field(self, name: str, value: str) -> tuple[str, str]:
        if name not in ("metadata.name", "metadata.namespace", "status.successful"):
            raise ValueError(f'field label "{name}" not supported for Job')
        return name, value

    def warnings_on_delete(self, ctx: Context, policy_given: bool) -> list[str]:
        return [] if policy_given else [ORPHAN_WARNING]
