"""The kinds that quotas can speak of, each with its evaluator and, once a quota speaks of it, its informer.

A kind that no quota names costs nothing. Kinds are those that are served now, custom ones included.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Any, Final, TypeVar

from pilothouse.admission.quota.claims import ResourceClaimEvaluator, VolumeClaimEvaluator
from pilothouse.admission.quota.evaluators import Evaluator, ServiceEvaluator
from pilothouse.admission.quota.pods import PodEvaluator
from pilothouse.controllers.manager.context import ControllerContext
from pilothouse.controllers.runtime.client import Client
from pilothouse.controllers.runtime.discovery import discover
from pilothouse.controllers.runtime.handlers import Registration
from pilothouse.controllers.runtime.informer import Informer
from pilothouse.machinery.gvk import GroupResource, GroupVersionResource
from pilothouse.machinery.objects import Object

T = TypeVar("T")
_SERVICES: Final = GroupResource("", "services")
_IGNORED: Final = frozenset((GroupResource("", "events"), GroupResource("events.k8s.io", "events")))


@dataclass(frozen=True, slots=True)
class QuotaKind:
    """A kind that can be counted."""

    gvr: GroupVersionResource
    evaluator: Evaluator


class ListedObjects:
    """What an informer knows, as evaluators read other objects."""

    def __init__(self, find: Callable[[], Informer]) -> None:
        self._find = find

    def get(self, namespace: str, name: str) -> Object | None:
        """One object."""
        return self._find().lister.get(namespace, name)

    def list(self, namespace: str = "") -> list[Object]:
        """All objects, or those of a namespace."""
        return self._find().lister.list(namespace or None)

    def remembered(self, name: object, make: Callable[[], T]) -> T:
        """Something made from all objects."""
        return make()


class QuotaKinds:
    """All kinds that are served. ``on_watched`` hears of a kind when its informer is first needed."""

    def __init__(
        self, context: ControllerContext, client: Client, on_watched: Callable[[QuotaKind, Informer], Registration]
    ) -> None:
        self._informers, self._client, self._on_watched = context.informers, client, on_watched
        self._special: dict[GroupResource, Evaluator] = {
            GroupResource("", "pods"): PodEvaluator(now=lambda: context.clock.now().seconds),
            _SERVICES: ServiceEvaluator(_SERVICES),
            GroupResource("", "persistentvolumeclaims"): VolumeClaimEvaluator(),
            GroupResource("resource.k8s.io", "resourceclaims"): ResourceClaimEvaluator(
                self._listed("resource.k8s.io", "v1", "deviceclasses"),
                self._listed("", "v1", "pods"),
                self._listed("resource.k8s.io", "v1", "resourceclaims"),
            ),
        }
        self._kinds: dict[GroupResource, QuotaKind] = {}
        self._watched: dict[GroupResource, tuple[GroupVersionResource, Informer, Registration]] = {}

    def _listed(self, *gvr: Any) -> ListedObjects:
        return ListedObjects(lambda: self._informers.of(*gvr))

    async def refresh(self) -> bool:
        """Ask what is served now; whether that is something else than before."""
        found = (await discover(self._client)).with_verbs("create", "list", "watch", "delete", namespaced=True)
        kinds: dict[GroupResource, QuotaKind] = {}
        for each in found:
            resource = each.gvr.group_resource
            if resource not in _IGNORED:
                kinds[resource] = QuotaKind(each.gvr, self._special.get(resource) or Evaluator(resource))
        changed = kinds.keys() != self._kinds.keys()
        self._kinds = kinds
        await self._forget_unserved()
        return changed

    async def _forget_unserved(self) -> None:
        for resource in [each for each in self._watched if each not in self._kinds]:
            gvr, informer, registration = self._watched[resource]
            if informer.is_empty and not informer.is_served:
                del self._watched[resource]
                informer.remove_handler(registration)
                await self._informers.retire(gvr)

    @property
    def are_known(self) -> bool:
        """Whether anything was discovered yet."""
        return bool(self._kinds)

    def named_by(self, names: Collection[str]) -> list[tuple[QuotaKind, Informer]]:
        """The kinds that the names of a quota speak of."""
        return [(kind, self._watch(kind)) for kind in self._kinds.values() if kind.evaluator.matching(names)]

    def _watch(self, kind: QuotaKind) -> Informer:
        resource = kind.gvr.group_resource
        known = self._watched.get(resource)
        if known is not None:
            return known[1]
        gvr = kind.gvr
        informer = self._informers.of(gvr.group, gvr.version, gvr.resource)
        self._watched[resource] = gvr, informer, self._on_watched(kind, informer)
        return informer
