"""Eviction: deleting a pod unless a disruption budget forbids it.

    finished, pending or leaving      deleted, whatever budgets say
    no budget                         deleted
    several budgets                   500: kube-apiserver cannot decide either
    unready, and its budget is whole  deleted, if it is still the pod that was looked at
    otherwise                         one disruption is taken from the budget, then it is deleted; 429 without one

A disruption that was taken is not given back when the deletion fails.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from pilothouse.apis.resources import Resource, Subresource
from pilothouse.apis.strategy import Context
from pilothouse.endpoints.admission import Admission
from pilothouse.endpoints.delete_options import options_from
from pilothouse.endpoints.request import APIRequest
from pilothouse.endpoints.responses import object_response
from pilothouse.endpoints.scope import Endpoint, ResourceScope
from pilothouse.endpoints.subresources.budgets import Budgets, retry_later
from pilothouse.endpoints.subresources.endpoints import StoreOf, expected_kind, working_endpoint
from pilothouse.endpoints.subresources.pod_conditions import has_true_condition, set_pod_condition
from pilothouse.endpoints.subresources.submission import Submission, read_submission
from pilothouse.machinery import errors
from pilothouse.machinery.field_errors import Path, invalid
from pilothouse.machinery.gvk import GroupKind, GroupVersionKind
from pilothouse.machinery.objects import Object
from pilothouse.net.messages import Response
from pilothouse.registry.rest.deletion import DeleteOptions, check_preconditions
from pilothouse.registry.store.removal import delete
from pilothouse.registry.store.store import Store

ATTEMPTS: Final = 20
_KIND: Final = GroupKind("policy", "Eviction")
_OLDER: Final = frozenset({GroupVersionKind("policy", "v1beta1", "Eviction")})
_REPAIR: Final = "ignoreStoreReadErrorWithClusterBreakingPotential"
_TWO_BUDGETS: Final = {
    "kind": "Status",
    "apiVersion": "v1",
    "metadata": {},
    "status": "Failure",
    "message": "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support.",
    "code": 500,
}
_CONDITION: Final = {
    "type": "DisruptionTarget",
    "status": "True",
    "reason": "EvictionByEvictionAPI",
    "message": "Eviction API: evicting",
}


def make_eviction_endpoint(
    resource: Resource, sub: Subresource | None, store_of: StoreOf, admission: Admission | None
) -> Endpoint:
    """``pods/eviction``."""
    pods, budgets = store_of("", "pods"), Budgets(store_of("policy", "poddisruptionbudgets"))

    async def create(scope: ResourceScope, request: APIRequest) -> Response:
        return await evict(scope, request, budgets)

    expected = replace(expected_kind(resource, sub), also=_OLDER)
    return working_endpoint(
        resource, sub, pods, {"create": create}, admission=admission, expected=expected, tracks_fields=True
    )


async def evict(scope: ResourceScope, request: APIRequest, budgets: Budgets) -> Response:
    """Evict the pod, or say why not."""
    submission = await read_submission(scope, request)
    eviction, ctx = submission.object, submission.ctx
    name = request.info.name
    if eviction["metadata"].get("name", "") != name:
        raise errors.bad_request("name in URL does not match name in Eviction object")
    if (eviction.get("deleteOptions") or {}).get(_REPAIR):
        why = "can not be set for pod eviction, try after removing the option"
        raise errors.invalid(_KIND, name, [invalid(Path("deleteOptions", _REPAIR), True, why)])
    options = _deletion(submission)
    ctx.dry_run = options.is_dry_run
    await submission.validate()
    pod = await _delete_unguarded(scope.store, ctx, name, options)
    if pod is None:
        return submission.succeed()
    guards = await budgets.guarding(pod)
    if len(guards) > 1:
        return object_response(submission.media, _TWO_BUDGETS, 500)
    budget = guards[0] if guards else None
    spared = budget is not None and is_spared(pod, budget)
    if budget is not None and not spared:
        await budgets.take_disruption(ctx, budget, name)
    try:
        await _mark_and_delete(scope.store, ctx, name, _insisting(options, pod) if spared else options)
    except errors.StatusError as error:
        if error.code == 409 and spared and budget is not None and options.precondition_version is None:
            raise retry_later(budget["metadata"]["name"]) from None
        raise
    return submission.succeed()


def _deletion(submission: Submission) -> DeleteOptions:
    """How to delete: as the eviction says, dry if it or the request says so.

    Options that are given are shown to validating admission with the dry run that the request asks for.
    """
    given = submission.object.get("deleteOptions")
    options = options_from(given or {})
    asked = ["All"] if submission.ctx.dry_run else []
    if not options.dry_run:
        options.dry_run = asked
        if asked and given is not None:
            submission.object["deleteOptions"] = {**given, "dryRun": asked}
    elif asked and asked != options.dry_run:
        given = " ".join(options.dry_run)
        raise errors.generic(f"Non-matching dry-run options in request and content: [All] and [{given}]")
    return options


async def _delete_unguarded(store: Store, ctx: Context, name: str, options: DeleteOptions) -> Object | None:
    """Delete a pod that no budget can guard; otherwise the pod, for others to judge."""
    for attempt in range(ATTEMPTS):
        pod = await store.read(await store.get(ctx.namespace, name))
        phase, leaving = (pod.get("status") or {}).get("phase"), bool(pod["metadata"].get("deletionTimestamp"))
        if not leaving and phase not in ("Succeeded", "Failed", "Pending"):
            return pod
        may_change = phase == "Pending" and not leaving and options.precondition_version is None
        try:
            await _mark_and_delete(store, ctx, name, _insisting(options, pod) if may_change else options)
        except errors.StatusError as error:
            again = error.code == 409 and options.precondition_version is None
            if not again or attempt == ATTEMPTS - 1:
                raise
            continue
        return None
    return None


def _insisting(options: DeleteOptions, pod: Object) -> DeleteOptions:
    """The same, but only for the pod in this very state."""
    return replace(options, precondition_version=pod["metadata"]["resourceVersion"])


def is_spared(pod: Object, budget: Object) -> bool:
    """Whether deleting the pod costs its budget nothing: it is unready, and would not be missed."""
    if has_true_condition(pod.get("status") or {}, "Ready"):
        return False
    if budget["spec"].get("unhealthyPodEvictionPolicy") == "AlwaysAllow":
        return True
    status = budget.get("status") or {}
    return bool(0 < status.get("desiredHealthy", 0) <= status.get("currentHealthy", 0))


def _without_empty_preconditions(options: DeleteOptions) -> DeleteOptions:
    """The same without preconditions that are empty texts: only the deletion itself looks at these."""
    uid, version = options.precondition_uid or None, options.precondition_version or None
    return replace(options, precondition_uid=uid, precondition_version=version)


async def _mark_and_delete(store: Store, ctx: Context, name: str, options: DeleteOptions) -> None:
    """Note in the pod why it goes, then delete it."""
    if not options.is_dry_run:

        async def mark(pod: Object | None) -> Object:
            assert pod is not None
            check_preconditions(store.resource, pod["metadata"], _without_empty_preconditions(options))
            status = dict(pod.get("status") or {})
            set_pod_condition(status, _CONDITION, ctx.now)
            return {**pod, "metadata": dict(pod["metadata"]), "status": status}

        strategy = store.strategy.subresource("status")
        entry, _ = await store.update(ctx, name, mark, strategy=strategy, create=False)
        if options.precondition_version is not None:
            options = replace(options, precondition_version=str(entry.revision))
    await delete(store, ctx, name, options)
