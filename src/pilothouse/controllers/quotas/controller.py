"""Keeps the status of quotas true.

Admission charges an object before it is stored, and informers of different kinds are not equally far. So a recount may
give away the share of an object that is about to be stored, or find that all is well by a quota that was charged since;
no event would ever tell. Whatever has brought a recount about therefore brings some more, ever further apart, for as
long as a request may take. (kube-controller-manager sees such things when it looks at all quotas, every five minutes.)
These wait until nothing has been charged for a moment: counting while objects are made is what gives shares away.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from math import inf
from typing import Final

from pilothouse.admission.quota.amounts import only, plus, same
from pilothouse.admission.quota.evaluators import Evaluator
from pilothouse.admission.quota.scopes import scopes_of
from pilothouse.apis.core.pod_spec.amounts import Amounts, read_amounts
from pilothouse.controllers.manager.context import ControllerContext
from pilothouse.controllers.quotas.kinds import QuotaKind, QuotaKinds
from pilothouse.controllers.quotas.usage import has_changed, usage_of
from pilothouse.controllers.runtime.controller import Controller, Periodic
from pilothouse.controllers.runtime.handlers import Registration
from pilothouse.controllers.runtime.indexer import Key, copy_of, key_of
from pilothouse.controllers.runtime.informer import Informer
from pilothouse.machinery import errors
from pilothouse.machinery.objects import Object
from pilothouse.machinery.supervision import Supervisor

_ACCOUNT: Final = "resourcequota-controller"
_RESYNC_SECONDS: Final = 300.0
_KINDS_SECONDS: Final = 30.0
_SOON: Final = 0.2
_RECOUNT_SECONDS: Final = 60.0
_FIRST_RECOUNT_SECONDS: Final = 0.5
_CALM_SECONDS: Final = 1.0


@dataclass(slots=True)
class _Heard:
    """What was heard of a quota, by the clock."""

    told: float = -inf
    """When something last made it count again."""
    is_due: bool = False
    """Whether it has not been counted since."""
    charged: float = -inf
    """When its status last changed."""


class QuotaController:
    """See the package's docstring."""

    def __init__(self, context: ControllerContext) -> None:
        self._quotas = context.informers.of("", "v1", "resourcequotas")
        client = context.client(_ACCOUNT)
        self._client = client.of("", "v1", "resourcequotas")
        self._clock = context.clock
        self._heard: defaultdict[Key, _Heard] = defaultdict(_Heard)
        self._kinds = QuotaKinds(context, client, self._watch)
        clock = context.clock
        self._controller: Controller[Key] = Controller(
            _ACCOUNT, self._reconcile, workers=5, wait_for=[self._quotas], clock=clock
        )
        self._looking: Controller[str] = Controller("quota, kinds", self._look, clock=clock)
        self._resync = Periodic("quota, all", self._look_at_all, _RESYNC_SECONDS, at_once=False, clock=clock)
        self._quotas.add_handler(self._count, self._quota_changed, self._quota_gone, name=_ACCOUNT)
        self._definitions = context.informers.of("apiextensions.k8s.io", "v1", "customresourcedefinitions")
        self._definitions.add_handler(
            on_update=lambda old, new: self._looking.queue.add_after("kinds", _SOON), name=_ACCOUNT
        )

    def start(self, supervisor: Supervisor) -> None:
        """Begin to count."""
        self._controller.start(supervisor)
        self._looking.start(supervisor)
        self._looking.queue.add("kinds")
        self._resync.start(supervisor)

    # Following

    def _count(self, quota: Object) -> None:
        key = key_of(quota)
        heard = self._heard[key]
        heard.told, heard.is_due = self._clock.monotonic(), True
        self._controller.queue.add(key)

    def _quota_changed(self, old: Object, new: Object) -> None:
        if old.get("status") != new.get("status"):
            self._heard[key_of(new)].charged = self._clock.monotonic()
        if old["spec"] != new["spec"]:
            self._count(new)

    def _quota_gone(self, quota: Object) -> None:
        self._heard.pop(key_of(quota), None)

    async def _look(self, key: str) -> float:
        """Kinds come and go with definitions, which tell, and with aggregated servers, which do not."""
        if await self._kinds.refresh():
            await self._look_at_all()
        return _KINDS_SECONDS

    async def _look_at_all(self) -> None:
        for quota in self._quotas.lister.list():
            self._count(quota)

    def _watch(self, kind: QuotaKind, informer: Informer) -> Registration:
        evaluator = kind.evaluator

        def changed(old: Object, new: Object) -> None:
            for quota in self._quotas.lister.list(new["metadata"]["namespace"]):
                if _is_named(evaluator, quota) and has_changed(evaluator, old, new, scopes_of(quota["spec"])):
                    self._count(quota)

        def gone(obj: Object) -> None:
            for quota in self._quotas.lister.list(obj["metadata"]["namespace"]):
                if _is_named(evaluator, quota):
                    self._count(quota)

        counts_only = type(evaluator) is Evaluator
        return informer.add_handler(on_update=None if counts_only else changed, on_delete=gone, name=_ACCOUNT)

    # Reconciling

    async def _reconcile(self, key: Key) -> float | None:
        quota = self._quotas.lister.get(*key)
        if quota is None:
            return None
        if not self._kinds.are_known:
            return _SOON
        hard = quota["spec"].get("hard") or {}
        kinds = self._kinds.named_by(hard)
        if any(informer.is_served and not informer.has_synced for _, informer in kinds):
            return _SOON
        heard = self._heard[key]
        restless = heard.charged + _CALM_SECONDS - self._clock.monotonic()
        if restless > 0 and not heard.is_due:  # nothing new has brought this about
            return restless
        heard.is_due = False
        status = quota.get("status") or {}
        known = read_amounts(status.get("used"))
        used: Amounts = {}
        for kind, informer in kinds:
            objects = informer.lister.list(key[0])
            used = plus(used, usage_of(kind.evaluator, objects, key[0], hard, scopes_of(quota["spec"])))
        used = only(known | used, hard)
        is_settled = "used" in status and same(read_amounts(status.get("hard")), read_amounts(hard))
        if is_settled and same(known, used):
            return self._next_recount(heard)
        changed = copy_of(quota)
        changed["status"] = {"hard": hard, "used": {name: str(used[name]) for name in sorted(used)}}
        try:
            await self._client.update_status(changed)
        except errors.NotFound:
            return None
        return self._next_recount(heard)

    def _next_recount(self, heard: _Heard) -> float | None:
        """In how many seconds to count again: twice as long after what was heard of as this time."""
        passed = self._clock.monotonic() - heard.told
        return max(_FIRST_RECOUNT_SECONDS, passed) if passed < _RECOUNT_SECONDS else None


def _is_named(evaluator: Evaluator, quota: Object) -> bool:
    return bool(evaluator.matching(quota["spec"].get("hard") or {}))
