"""What makes a job valid, new or changed. The spec's rules also hold for the template in a cron job."""

from __future__ import annotations

from typing import Any, Final

from pilothouse.apis.apps.workload import shown_selector
from pilothouse.apis.batch.job.policies import validate_failure_policy, validate_success_policy
from pilothouse.apis.core.internal_form import internal_form
from pilothouse.apis.core.pod_spec.options import PodValidationOptions
from pilothouse.apis.core.pod_spec.templates import validate_pod_template
from pilothouse.apis.selectors import has_invalid_value, validate_label_selector, validate_object_selects_template
from pilothouse.apis.validation import IMMUTABLE, non_negative
from pilothouse.machinery import labels
from pilothouse.machinery.field_errors import FieldError, Path, as_json, invalid, not_supported, required, too_long
from pilothouse.machinery.names import check_dns1123_label, check_domain_prefixed_path
from pilothouse.machinery.objects import Object

SPEC: Final = Path("spec")
NAME_LABELS: Final = ("job-name", "batch.kubernetes.io/job-name")
UID_LABELS: Final = ("controller-uid", "batch.kubernetes.io/controller-uid")
MANAGED_BY_LIMIT: Final = 63
PARALLELISM_LIMIT: Final = 100_000
FAILED_INDEXES_LIMIT: Final = 100_000
MANY_COMPLETIONS: Final = 100_000
LIMIT_FOR_MANY: Final = 10_000
_COUNTS: Final = (
    "parallelism", "completions", "activeDeadlineSeconds", "backoffLimit", "ttlSecondsAfterFinished",
    "backoffLimitPerIndex", "maxFailedIndexes",
)  # fmt: skip
_MODES: Final = ("NonIndexed", "Indexed")
_REPLACEMENTS: Final = ("Failed", "TerminatingOrFailed")
_FOR_MANY: Final = (
    f"must be less than or equal to {LIMIT_FOR_MANY} when completions are above {MANY_COMPLETIONS} and used with "
    "backoff limit per index"
)
_FIXED: Final = {
    "completionMode": "",
    "podFailurePolicy": "batch.v1.PodFailurePolicy",
    "backoffLimitPerIndex": "",
    "managedBy": "",
    "successPolicy": "batch.v1.SuccessPolicy",
}


def validate_job(obj: Object, options: PodValidationOptions) -> list[FieldError]:
    """Errors of a new job."""
    errs: list[FieldError] = []
    _validate_generated_selector(obj, errs)
    validate_selecting_spec(obj["spec"], errs, options, lax=False)
    _validate_name_for_indexes(obj, errs)
    return errs


def _validate_generated_selector(obj: Object, errs: list[FieldError]) -> None:
    """The labels by which a job knows its pods must be those the server gave them."""
    spec = obj["spec"]
    if spec.get("manualSelector") or spec.get("selector") is None:
        return
    uid, name = obj["metadata"].get("uid", ""), obj["metadata"].get("name", "")
    found = spec["template"]["metadata"].get("labels") or {}
    wanted = {UID_LABELS[0]: uid, NAME_LABELS[0]: name, UID_LABELS[1]: uid, NAME_LABELS[1]: name}
    path = SPEC.child("template", "metadata", "labels")
    for key, value in wanted.items():
        if key not in found:
            errs.append(required(path.key(key), f"must be '{value}'"))
        elif found[key] != value:
            errs.append(invalid(path.key(key), dict(sorted(found.items())), f"must be '{value}'"))
    try:
        if not labels.from_object(spec["selector"]).matches(wanted):
            shown = shown_selector(spec["selector"])
            errs.append(invalid(SPEC.child("selector"), shown, "`selector` not auto-generated"))
    except labels.SelectorError:
        pass


def _validate_name_for_indexes(obj: Object, errs: list[FieldError]) -> None:
    """The highest index is appended to the job's name to make a host name."""
    completions = obj["spec"].get("completions") or 0
    if obj["spec"].get("completionMode") == "Indexed" and completions > 0:
        name = obj["metadata"].get("name", "")
        longest = f"{name}-{completions - 1}"
        if check_dns1123_label(longest):
            why = f"will not able to create pod with invalid DNS label: {longest}"
            errs.append(invalid(Path("metadata", "name"), name, why))


def validate_selecting_spec(spec: Object, errs: list[FieldError], options: PodValidationOptions, *, lax: bool) -> None:
    """Errors of a job's own spec, which unlike that of a cron job's template has a selector."""
    validate_job_spec(spec, SPEC, errs, options)
    selector = spec.get("selector")
    if selector is None:
        errs.append(required(SPEC.child("selector"), ""))
    else:
        validate_label_selector(selector, SPEC.child("selector"), errs, allow_invalid_values=lax)
    validate_object_selects_template(selector, spec["template"], SPEC.child("template"), errs)


def validate_job_spec(spec: Object, path: Path, errs: list[FieldError], options: PodValidationOptions) -> None:
    """Errors of a job's spec wherever it stands, the selector left aside."""
    for name in _COUNTS:
        non_negative(spec.get(name) or 0, path, name, errs)
    if spec.get("maxFailedIndexes") is not None and spec.get("backoffLimitPerIndex") is None:
        errs.append(required(path.child("backoffLimitPerIndex"), "when maxFailedIndexes is specified"))
    manager = spec.get("managedBy")
    if manager is not None:
        errs += check_domain_prefixed_path(path.child("managedBy"), manager)
        if len(manager.encode()) > MANAGED_BY_LIMIT:
            errs.append(too_long(path.child("managedBy"), "", MANAGED_BY_LIMIT))
    _validate_mode(spec, path, errs)
    if spec.get("podFailurePolicy") is not None:
        validate_failure_policy(spec, path.child("podFailurePolicy"), errs)
    if spec.get("successPolicy") is not None:
        if spec.get("completionMode") == "Indexed":
            validate_success_policy(spec, path.child("successPolicy"), errs)
        else:
            shown = internal_form("batch.v1.SuccessPolicy", spec["successPolicy"])
            errs.append(invalid(path.child("successPolicy"), shown, "requires indexed completion mode"))
    _validate_replacement(spec, path.child("podReplacementPolicy"), errs)
    validate_pod_template(spec["template"], path.child("template"), errs, options)
    _validate_restarts(spec, path.child("template", "spec", "restartPolicy"), errs)


def _validate_mode(spec: Object, path: Path, errs: list[FieldError]) -> None:
    mode = spec.get("completionMode")
    if mode is not None and mode not in _MODES:
        errs.append(not_supported(path.child("completionMode"), mode, _MODES))
    if mode == "Indexed":
        _validate_indexed(spec, path, errs)
    elif mode is None or mode == "NonIndexed":
        errs += (
            invalid(path.child(name), spec[name], "requires indexed completion mode")
            for name in ("backoffLimitPerIndex", "maxFailedIndexes")
            if spec.get(name) is not None
        )


def _validate_indexed(spec: Object, path: Path, errs: list[FieldError]) -> None:
    completions, parallelism, failed = (spec.get(n) for n in ("completions", "parallelism", "maxFailedIndexes"))
    if completions is None:
        errs.append(required(path.child("completions"), "when completion mode is Indexed"))
    if parallelism is not None and parallelism > PARALLELISM_LIMIT:
        why = f"must be less than or equal to {PARALLELISM_LIMIT} when completion mode is Indexed"
        errs.append(invalid(path.child("parallelism"), parallelism, why))
    if failed is not None:
        where = path.child("maxFailedIndexes")
        if completions is not None and failed > completions:
            errs.append(invalid(where, failed, "must be less than or equal to completions"))
        if failed > FAILED_INDEXES_LIMIT:
            errs.append(invalid(where, failed, f"must be less than or equal to {FAILED_INDEXES_LIMIT}"))
    if (completions or 0) <= MANY_COMPLETIONS or spec.get("backoffLimitPerIndex") is None:
        return
    if failed is None:
        why = f"must be specified when completions is above {MANY_COMPLETIONS}"
        errs.append(required(path.child("maxFailedIndexes"), why))
    for name, value in (("parallelism", parallelism), ("maxFailedIndexes", failed)):
        if value is not None and value > LIMIT_FOR_MANY:
            errs.append(invalid(path.child(name), value, _FOR_MANY))


def _validate_replacement(spec: Object, path: Path, errs: list[FieldError]) -> None:
    policy = spec.get("podReplacementPolicy")
    choices = _REPLACEMENTS if spec.get("podFailurePolicy") is None else _REPLACEMENTS[:1]
    if policy is not None and policy not in choices:
        errs.append(not_supported(path, policy, choices))


def _validate_restarts(spec: Object, path: Path, errs: list[FieldError]) -> None:
    policy = spec["template"]["spec"].get("restartPolicy", "")
    if policy in ("", "Always"):
        errs.append(required(path, 'valid values: "OnFailure", "Never"'))
    elif policy not in ("OnFailure", "Never"):
        errs.append(not_supported(path, policy, ("OnFailure", "Never")))
    elif spec.get("podFailurePolicy") is not None and policy != "Never":
        errs.append(invalid(path, policy, 'only "Never" is supported when podFailurePolicy is specified'))


def validate_job_update(obj: Object, old: Object, options: PodValidationOptions) -> list[FieldError]:
    """Errors of a change to a job."""
    errs: list[FieldError] = []
    spec, before = obj["spec"], old["spec"]
    lax = options.allow_invalid_label_value_in_selector or has_invalid_value(before.get("selector"))
    options.allow_invalid_label_value_in_selector = lax
    validate_selecting_spec(spec, errs, options, lax=lax)
    _validate_completions_kept(spec, before, errs)
    if spec.get("selector") != before.get("selector"):
        errs.append(invalid(SPEC.child("selector"), shown_selector(spec.get("selector")), IMMUTABLE))
    _validate_template_kept(spec, old, errs, options.gates)
    for name, type_name in _FIXED.items():
        if spec.get(name) != before.get(name):
            shown = internal_form(type_name, spec.get(name)) if type_name else spec.get(name)
            errs.append(invalid(SPEC.child(name), as_json(shown), IMMUTABLE))
    _validate_name_for_indexes(obj, errs)
    return errs


def _validate_completions_kept(spec: Object, old: Object, errs: list[FieldError]) -> None:
    """Only indexed jobs may change their completions, and only together with their parallelism."""
    completions = spec.get("completions")
    if completions == old.get("completions"):
        return
    if spec.get("completionMode") != "Indexed":
        errs.append(invalid(SPEC.child("completions"), completions, IMMUTABLE))
    elif completions is not None and completions != spec.get("parallelism"):
        why = "can only be modified in tandem with spec.parallelism"
        errs.append(invalid(SPEC.child("completions"), completions, why))


def rests(job: Object) -> bool:
    """Whether a job is suspended without running pods, and either never started or marked as suspended."""
    status = job.get("status") or {}
    stopped = "startTime" not in status or any(
        c.get("type") == "Suspended" and c.get("status") == "True" for c in status.get("conditions") or ()
    )
    return bool(job["spec"].get("suspend")) and stopped and not status.get("active")


def _validate_template_kept(spec: Object, old: Object, errs: list[FieldError], gates: frozenset[str]) -> None:
    """A template is fixed but for what says where pods run and what they use, and that only while the job rests."""
    template, before = spec["template"], old["spec"]["template"]
    if template == before:
        return
    if _may_move(old, gates):
        before = {**template, "spec": _with_directives(template["spec"], before["spec"])}
    if "MutablePodResourcesForSuspendedJobs" not in gates or not rests(old):
        if template != before:
            shown = internal_form("core.v1.PodTemplateSpec", template)
            errs.append(invalid(SPEC.child("template"), shown, IMMUTABLE))
    elif template["spec"] != _with_resources(template["spec"], before["spec"]):
        shown = internal_form("core.v1.PodSpec", template["spec"])
        errs.append(invalid(SPEC.child("template.spec"), shown, IMMUTABLE))


def _may_move(job: Object, gates: frozenset[str]) -> bool:
    if "MutableSchedulingDirectivesForSuspendedJobs" in gates:
        return rests(job)
    return bool(job["spec"].get("suspend")) and "startTime" not in (job.get("status") or {})


def _with_directives(pod: Object, old: Object) -> Object:
    """The old pod spec with the new one's scheduling directives."""
    made = dict(old)
    for name in ("nodeSelector", "tolerations", "schedulingGates"):
        made.pop(name, None)
        if name in pod:
            made[name] = pod[name]
    wanted, affinity = pod.get("affinity"), made.pop("affinity", None)
    if wanted is None and affinity is not None:
        affinity = {key: value for key, value in affinity.items() if key != "nodeAffinity"} or None
    elif wanted is not None:
        affinity = {key: value for key, value in (affinity or {}).items() if key != "nodeAffinity"}
        if "nodeAffinity" in wanted:
            affinity["nodeAffinity"] = wanted["nodeAffinity"]
    if affinity is not None:
        made["affinity"] = affinity
    return made


def _with_resources(pod: Object, old: Object) -> Object:
    """The old pod spec with the new one's container resources, where the containers are the same."""
    made = dict(old)
    for kind in ("containers", "initContainers"):
        ours, theirs = pod.get(kind) or [], old.get(kind) or []
        if ours and len(ours) == len(theirs):
            made[kind] = [_taking_resources(new, before) for new, before in zip(ours, theirs, strict=True)]
    return made


def _taking_resources(container: Object, old: Object) -> dict[str, Any]:
    if container.get("name") != old.get("name"):
        return old
    return {**old, "resources": container.get("resources", {})}
