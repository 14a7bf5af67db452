"""Disruption budgets as evictions use them: which of them guards a pod, and taking one disruption from it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import orjson

from pilothouse.apis import types
from pilothouse.apis.strategy import Context
from pilothouse.machinery import errors, labels
from pilothouse.machinery.field_manager import FieldManager
from pilothouse.machinery.gvk import GroupResource
from pilothouse.machinery.objects import Object
from pilothouse.machinery.structured.field_sets import from_paths
from pilothouse.machinery.workers import weighed
from pilothouse.registry.store.listing import ListOptions, list_entries
from pilothouse.registry.store.store import Store
from pilothouse.storage.cacher import Entry

PENDING_LIMIT: Final = 2000
"""How many evictions a budget's controller may be behind."""
MANAGER: Final = "kube-apiserver"
_ATTEMPTS: Final = 20
_REFUSED: Final = "Cannot evict pod as it would violate the pod's disruption budget."
_BUDGET: Final = GroupResource("policy", "poddisruptionbudget")


def retry_later(name: str) -> errors.StatusError:
    """A budget whose state is not known well enough."""
    error = errors.too_many_requests(_REFUSED, 10)
    return _because(error, f"The disruption budget {name} is still being processed by the server.")


def _because(error: errors.StatusError, message: str) -> errors.StatusError:
    cause = {"reason": "DisruptionBudget", "message": message}
    error.details = {"causes": [cause], **(error.details or {})}
    return error


class Budgets:
    """All disruption budgets."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._tracker: FieldManager | None = None

    async def guarding(self, pod: Object) -> list[Object]:
        """The budgets that select this pod."""
        page = await list_entries(self._store, pod["metadata"]["namespace"], ListOptions())
        found = pod["metadata"].get("labels") or {}
        return await weighed(sum(entry.size for entry in page.entries), _selecting, page.entries, found)

    async def take_disruption(self, ctx: Context, budget: Object, pod: str) -> None:
        """Use up one of the disruptions that the budget allows, or raise the refusal."""
        name = budget["metadata"]["name"]

        async def change(old: Object | None) -> Object:
            assert old is not None
            check_budget(old)
            return self._track(old, disrupted(old, pod, ctx.now), ctx.now)

        strategy = self._store.strategy.subresource("status")
        for attempt in range(_ATTEMPTS):
            try:
                if ctx.dry_run:
                    await change(orjson.loads((await self._store.get(ctx.namespace, name)).data))
                else:
                    await self._store.update(ctx, name, change, strategy=strategy, create=False)
            except errors.StatusError as error:
                if error.code != 409 or attempt == _ATTEMPTS - 1:
                    raise
                continue
            return

    def _track(self, old: Object, new: Object, now: str) -> Object:
        """The server writes the status as itself."""
        if self._tracker is None:
            resource = self._store.resource
            reset = {str(resource.group_version): from_paths(("f:spec",))}
            struct = types.struct(resource.type_name)
            self._tracker = FieldManager(struct, resource.gvk, subresource="status", reset_fields=reset)
        return self._tracker.update(old, new, MANAGER, now)


def _selecting(entries: Iterable[Entry], found: dict[str, str]) -> list[Object]:
    budgets = (orjson.loads(entry.data) for entry in entries)
    return [budget for budget in budgets if _selects(budget, found)]


def _selects(budget: Object, found: dict[str, str]) -> bool:
    try:
        return bool(labels.from_object(budget["spec"].get("selector")).matches(found))
    except labels.SelectorError:
        return False


def check_budget(budget: Object) -> None:
    """Raise the refusal of a budget that allows no disruption."""
    name, status = budget["metadata"]["name"], budget.get("status") or {}
    allowed = status.get("disruptionsAllowed", 0)
    not_now = f"The disruption budget {name} does not allow evicting pods currently"
    if status.get("observedGeneration", 0) < budget["metadata"].get("generation", 0):
        raise retry_later(name)
    if allowed < 0:
        why = "pdb disruptions allowed is negative"
        raise _because(errors.forbidden(_BUDGET, name, why), f"{not_now}: {why}")
    if len(status.get("disruptedPods") or ()) > PENDING_LIMIT:
        why = "DisruptedPods map too big - too many evictions not confirmed by PDB controller"
        message = f"{not_now}: too many pending evictions not confirmed by PDB controller"
        raise _because(errors.forbidden(_BUDGET, name, why), message)
    if allowed == 0:
        raise _because(errors.too_many_requests(_REFUSED, 0), _explain(name, status, not_now))


def _explain(name: str, status: Object, not_now: str) -> str:
    conditions = status.get("conditions") or ()
    condition: Object = next((c for c in conditions if c.get("type") == "DisruptionAllowed"), {})
    message, reason = condition.get("message", ""), condition.get("reason", "")
    told = bool(message) and condition.get("status") == "False"
    healthy, wanted = status.get("currentHealthy", 0), status.get("desiredHealthy", 0)
    if told and reason == "SyncFailed":
        return f"{not_now} because it failed sync: {message}"
    if healthy <= wanted:
        return f"The disruption budget {name} needs {wanted} healthy pods and has {healthy} currently"
    return f"{not_now} ({reason}): {message}" if told else not_now


def disrupted(budget: Object, pod: str, now: str) -> Object:
    """The budget after one more disruption."""
    status = dict(budget.get("status") or {})
    status["disruptionsAllowed"] -= 1
    if status["disruptionsAllowed"] == 0:
        status["conditions"] = _with_insufficient_pods(status, now)
    status["disruptedPods"] = {**(status.get("disruptedPods") or {}), pod: now}
    return {**budget, "metadata": dict(budget["metadata"]), "status": status}


def _with_insufficient_pods(status: Object, now: str) -> list[Object]:
    conditions = list(status.get("conditions") or ())
    made: Object = {"type": "DisruptionAllowed", "status": "False"}
    if status.get("observedGeneration"):
        made["observedGeneration"] = status["observedGeneration"]
    made.update(lastTransitionTime=now, reason="InsufficientPods", message="")
    for position, condition in enumerate(conditions):
        if condition.get("type") == "DisruptionAllowed":
            if condition.get("status") == "False":
                made["lastTransitionTime"] = condition.get("lastTransitionTime")
            conditions[position] = made
            return conditions
    return [*conditions, made]
