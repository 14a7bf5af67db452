"""Binding: a scheduler tells the server on which node a pod is to run.

The pod is written past its strategy: none of the rules that hold for users apply, and nobody comes to own the fields.
"""

from __future__ import annotations

from typing import Final

from pilothouse.apis.core.pod.validation import validate_binding
from pilothouse.apis.core.pod_spec.annotations import drop_legacy_annotations
from pilothouse.apis.resources import Resource, Subresource
from pilothouse.apis.strategy import Strategy
from pilothouse.endpoints.admission import Admission
from pilothouse.endpoints.request import APIRequest
from pilothouse.endpoints.scope import ResourceScope
from pilothouse.endpoints.subresources.endpoints import StoreOf, working_endpoint
from pilothouse.endpoints.subresources.pod_conditions import set_pod_condition
from pilothouse.endpoints.subresources.submission import read_submission
from pilothouse.machinery import errors
from pilothouse.machinery.addressing import check_looked_up
from pilothouse.machinery.field_errors import aggregate
from pilothouse.machinery.go_quote import quote
from pilothouse.machinery.gvk import GroupResource
from pilothouse.machinery.objects import Object
from pilothouse.net.messages import Response

_PODS: Final = GroupResource("", "pods")
_BINDING: Final = GroupResource("", "pods/binding")


def make_binding_endpoint(
    resource: Resource, sub: Subresource | None, store_of: StoreOf, admission: Admission | None
) -> ResourceScope:
    """``pods/binding``, and the older ``bindings``."""
    pods = store_of("", "pods")
    return working_endpoint(resource, sub, pods, {"create": bind}, admission=admission, tracks_fields=True)


async def bind(scope: ResourceScope, request: APIRequest) -> Response:
    """Assign the pod to the node; 409 when it has one already."""
    submission = await read_submission(scope, request)
    binding = submission.object
    name = binding["metadata"].get("name", "")
    if scope.subresource and name != request.info.name:
        raise errors.bad_request("name in URL does not match name in Binding object")
    if not scope.subresource:
        binding["metadata"].pop("uid", None)
    errs = validate_binding(binding)
    if errs:
        raise errors.generic(aggregate(str(error) for error in errs))
    await submission.validate()
    check_looked_up(name)

    async def change(pod: Object | None) -> Object:
        assert pod is not None
        key = scope.store.dry_key if submission.ctx.dry_run else scope.store.key
        _check_preconditions(binding, pod, key(submission.ctx.namespace, name))
        refusal = why_not(pod)
        if refusal:
            raise errors.conflict(_BINDING, name, refusal)
        return assigned(pod, binding, submission.ctx.now, scope.store.strategy.gates)

    await scope.store.update(submission.ctx, name, change, strategy=Strategy(), create=False)
    return submission.succeed()


def _check_preconditions(binding: Object, pod: Object, key: str) -> None:
    for field, title in (("uid", "UID"), ("resourceVersion", "ResourceVersion")):
        wanted, have = binding["metadata"].get(field), pod["metadata"].get(field, "")
        if wanted and wanted != have:
            why = f"Precondition failed: {title} in precondition: {wanted}, {title} in object meta: {have}"
            told = f"StorageError: invalid object, Code: 4, Key: {key}, ResourceVersion: 0, AdditionalErrorMsg: {why}"
            raise errors.conflict(_PODS, pod["metadata"]["name"], told)


def why_not(pod: Object) -> str:
    """Why a pod cannot be assigned to a node any more, or not yet."""
    name, spec = pod["metadata"]["name"], pod["spec"]
    if pod["metadata"].get("deletionTimestamp"):
        return f"pod {name} is being deleted, cannot be assigned to a host"
    if spec.get("nodeName"):
        return f"pod {name} is already assigned to node {quote(spec['nodeName'])}"
    return f"pod {name} has non-empty .spec.schedulingGates" if spec.get("schedulingGates") else ""


def assigned(pod: Object, binding: Object, now: str, gates: frozenset[str]) -> Object:
    """The pod with its node, and with the binding's annotations and labels."""
    metadata, status = dict(pod["metadata"]), dict(pod.get("status") or {})
    if "ClearingNominatedNodeNameAfterBinding" in gates:
        status.pop("nominatedNodeName", None)
    for field in ("annotations", "labels") if "PodTopologyLabelsAdmission" in gates else ("annotations",):
        if binding["metadata"].get(field):
            metadata[field] = {**(metadata.get(field) or {}), **binding["metadata"][field]}
    drop_legacy_annotations(metadata)
    set_pod_condition(status, {"type": "PodScheduled", "status": "True"}, now)
    spec = {**pod["spec"], "nodeName": binding["target"]["name"]}
    return {**pod, "metadata": metadata, "spec": spec, "status": status}
