"""Charging quotas: requests of a namespace are settled together, one writing of a quota's status for all that wait.

    request A ─┐
    request B ─┼─ waiting ─→ settle: read quotas, charge A, B, C in turn, write each changed quota once ─→ all answered
    request C ─┘                        ↑____________ somebody else wrote the quota: again, with the new state _____│

The writing is conditional on the state that was read, so no two servers can spend the same amount. It comes before
the object is stored; what is charged for an object that then fails is given back by the quota controller.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from pilothouse.admission.objects import Objects
from pilothouse.admission.quota.amounts import same
from pilothouse.admission.quota.checking import Quota, check_request
from pilothouse.admission.quota.configuration import Limited
from pilothouse.admission.quota.evaluators import Evaluator
from pilothouse.apis.strategy import Context
from pilothouse.endpoints.admission import Attributes
from pilothouse.endpoints.installer import make_field_manager
from pilothouse.machinery import errors
from pilothouse.machinery.objects import Object
from pilothouse.machinery.supervision import Supervisor
from pilothouse.machinery.times import now
from pilothouse.machinery.workers import weighed
from pilothouse.storage.cacher import Entry

_MANAGER: Final = "kube-apiserver"
_USER: Final = "system:apiserver"
_ATTEMPTS: Final = 4
_SECONDS: Final = 10.0
_READ: Final = "quota"
_CHANGED: Final = "the object has been modified; please apply your changes to the latest version and try again"


class _Outdated(Exception):
    """Somebody wrote the quota since it was read."""


@dataclass(slots=True, eq=False)
class _Waiter:
    """A request and its answer to come."""

    attributes: Attributes
    evaluator: Evaluator
    answer: asyncio.Future[None]

    def settle(self, refusal: Exception | None = None) -> None:
        if self.answer.done():
            return
        if refusal is None:
            self.answer.set_result(None)
        else:
            self.answer.set_exception(refusal)


def _settle_all(waiters: Sequence[_Waiter], error: Exception) -> None:
    for waiter in waiters:
        waiter.settle(error)


class Ledger:
    """The quotas of all namespaces."""

    def __init__(self, quotas: Objects, limited: Sequence[Limited]) -> None:
        self._quotas, self._limited = quotas, limited
        self._waiting: dict[str, list[_Waiter]] = {}
        self._supervisor = Supervisor("resource quota")
        self._working: set[str] = set()
        store = quotas.store
        self._strategy = store.strategy.subresource("status")
        self._fields = make_field_manager(store.resource, "status", self._strategy)

    async def charge(self, attributes: Attributes, evaluator: Evaluator) -> None:
        """Charge a request to the quotas of its namespace; raises the refusal."""
        quotas, namespace = self._quotas, attributes.namespace
        await quotas.ready()
        if not self._limited and not quotas.entries(namespace):
            return
        loop = asyncio.get_running_loop()
        waiter = _Waiter(attributes, evaluator, loop.create_future())
        self._waiting.setdefault(namespace, []).append(waiter)
        if namespace not in self._working:
            self._working.add(namespace)
            self._supervisor.spawn("charging of quotas", self._work(namespace))
        timer = loop.call_later(_SECONDS, waiter.settle, errors.internal_error("resource quota evaluation timed out"))
        try:
            await waiter.answer
        finally:
            timer.cancel()

    async def close(self) -> None:
        """Stop working."""
        await self._supervisor.close()

    async def _work(self, namespace: str) -> None:
        try:
            while batch := self._waiting.pop(namespace, None):
                try:
                    await self._settle(namespace, batch)
                except Exception as error:
                    _settle_all(batch, error)
                except BaseException:
                    _settle_all(batch, errors.internal_error("resource quota evaluation was broken off"))
                    raise
        finally:
            self._working.discard(namespace)

    async def _settle(self, namespace: str, waiters: list[_Waiter]) -> None:
        await self._quotas.refresh()
        wanted: set[str] | None = None
        failure: Exception | None = None
        for _ in range(_ATTEMPTS):
            entries = [e for e in self._quotas.entries(namespace) if wanted is None or e.name in wanted]
            unread = sum(entry.size for entry in entries if entry.forms is None or _READ not in entry.forms)
            quotas = await weighed(unread, self._read_all, entries)
            charged, waiters = await self._charge_all(quotas, waiters)
            wanted = set()
            for entry, before, after in zip(entries, quotas, charged, strict=True):
                if same(before.used, after.used):
                    continue
                try:
                    await self._write(entry, after)
                except _Outdated:
                    failure = errors.conflict(self._quotas.store.resource.group_resource, entry.name, _CHANGED)
                    wanted.add(entry.name)
                except errors.StatusError as error:
                    failure = error
                    wanted.add(entry.name)
            if not wanted:
                failure = None
                break
        for waiter in waiters:
            waiter.settle(failure)

    def _read_all(self, entries: list[Entry]) -> list[Quota]:
        return [Objects.derived(entry, _READ, self._read) for entry in entries]

    def _read(self, entry: Entry) -> Quota:
        return Quota.read(self._quotas.store.decode(entry))

    async def _charge_all(self, quotas: list[Quota], waiters: list[_Waiter]) -> tuple[list[Quota], list[_Waiter]]:
        """The quotas with all charges, and who must wait until they are written."""
        pending = []
        for waiter in waiters:
            if waiter.answer.done():
                continue
            try:
                asked, weight = waiter.attributes, waiter.attributes.weight
                charged = await weighed(weight, check_request, quotas, asked, waiter.evaluator, self._limited)
            except errors.StatusError as refusal:
                waiter.settle(refusal)
                continue
            changed = any(before is not after for before, after in zip(quotas, charged, strict=True))
            if waiter.attributes.dry_run or not changed:
                waiter.settle()
                continue
            quotas = charged
            pending.append(waiter)
        return quotas, pending

    async def _write(self, entry: Entry, quota: Quota) -> None:
        ctx = Context(user=_USER, namespace=entry.namespace, verb="update", subresource="status", now=now())
        used = {name: str(quota.used[name]) for name in sorted(quota.used)}

        async def change(old: Object | None) -> Object:
            if old is None or old["metadata"].get("resourceVersion") != str(entry.revision):
                raise _Outdated
            obj = {**old, "metadata": dict(old["metadata"]), "status": {**(old.get("status") or {}), "used": used}}
            return self._fields.update(old, obj, _MANAGER, ctx.now)

        store = self._quotas.store
        await store.update(ctx, entry.name, change, strategy=self._strategy, create=False)
