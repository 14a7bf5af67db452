"""Going back to an earlier revision, as a deployment asks for in the annotation that once was ``rollbackTo``.

The template and the annotations of that revision's replica set become the deployment's; the request itself goes in
any case.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, NamedTuple

from pilothouse.apis.apps.deployment import ROLLBACK
from pilothouse.controllers.deployments.revisions import NOT_COPIED, revision_of, same_template, without_hash
from pilothouse.controllers.runtime.indexer import working_copy
from pilothouse.machinery.objects import Object


class Rollback(NamedTuple):
    """The deployment as it is to be, and what to tell about it."""

    deployment: Object
    type: Literal["Normal", "Warning"]
    reason: str
    message: str


def wanted_revision(deployment: Object) -> int | None:
    """The revision to go back to, 0 for the one before; None where nobody asks."""
    text = (deployment["metadata"].get("annotations") or {}).get(ROLLBACK)
    try:
        return int(text) if text else None
    except ValueError:
        return None


def roll_back(deployment: Object, replica_sets: Sequence[Object]) -> Rollback:
    """What becomes of a deployment that wants to go back."""
    name, made = deployment["metadata"]["name"], working_copy(deployment)
    annotations = dict(made["metadata"].get("annotations") or {})
    annotations.pop(ROLLBACK, None)
    made["metadata"]["annotations"] = annotations
    revision = wanted_revision(deployment) or _last(replica_sets)
    if not revision:
        return Rollback(made, "Warning", "DeploymentRollbackRevisionNotFound", "Unable to find last revision.")
    found = next((each for each in replica_sets if revision_of(each) == revision), None)
    if found is None:
        text = "Unable to find the revision to rollback to."
        return Rollback(made, "Warning", "DeploymentRollbackRevisionNotFound", text)
    template = found["spec"]["template"]
    if same_template(template, made["spec"]["template"]):
        text = f'The rollback revision contains the same template as current deployment "{name}"'
        return Rollback(made, "Warning", "DeploymentRollbackTemplateUnchanged", text)
    made["spec"]["template"] = without_hash(template)
    own = {key: value for key, value in annotations.items() if key in NOT_COPIED}
    theirs = found["metadata"].get("annotations") or {}
    made["metadata"]["annotations"] = {**own, **{k: v for k, v in theirs.items() if k not in NOT_COPIED}}
    return Rollback(made, "Normal", "DeploymentRollback", f'Rolled back deployment "{name}" to revision {revision}')


def _last(replica_sets: Sequence[Object]) -> int:
    """The revision before the newest; 0 where there is none."""
    known = sorted({revision_of(each) for each in replica_sets}, reverse=True)
    return known[1] if len(known) > 1 else 0
