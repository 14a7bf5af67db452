"""Cluster roles that are made of others: those whose aggregation rule selects by label, such as admin, edit and view.

kube-controller-manager does this elsewhere. A server without controllers does it for the roles that it makes itself:
otherwise these are empty, whoever may bind them binds what looks harmless, and gets the rights once a controller
manager comes. Roles that others make it leaves alone, as kube-apiserver does. Where two do it, they come to the same
rules under the same field manager.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from typing import Any, Final

import orjson

from pilothouse.controllers.manager.context import ControllerContext
from pilothouse.controllers.runtime.client import LoopbackClients
from pilothouse.controllers.runtime.controller import Controller, Synced
from pilothouse.controllers.runtime.indexer import Key, key_of
from pilothouse.controllers.runtime.informers import InformerFactory
from pilothouse.machinery import errors, labels
from pilothouse.machinery.objects import Object
from pilothouse.machinery.workers import weighed

logger = logging.getLogger(__name__)

NAME: Final = "clusterrole-aggregation-controller"
_GROUP: Final = "rbac.authorization.k8s.io"
_BOOTSTRAPPING: Final = "kubernetes.io/bootstrapping"
_WEIGHT: Final = 16
"""What a rule counts for, as bytes: a thousand of them are a matter of milliseconds."""


def start(context: ControllerContext) -> None:
    """Start the controller."""
    AggregatedRoles(context.informers, context.clients).controller.start(context.supervisor)


class AggregatedRoles:
    """Keeps the rules of aggregated cluster roles. Keys are their names."""

    def __init__(
        self,
        informers: InformerFactory,
        clients: LoopbackClients,
        wait_for: Sequence[Synced] = (),
        *,
        bootstrap_only: bool = False,
    ) -> None:
        """``bootstrap_only`` keeps the roles of a fresh cluster, and no others."""
        self._bootstrap_only = bootstrap_only
        self._roles = informers.of(_GROUP, "v1", "clusterroles")
        self._client = clients.controller(NAME).of(_GROUP, "v1", "clusterroles")
        self.controller: Controller[Key] = Controller(NAME, self._reconcile, wait_for=[self._roles, *wait_for])
        self._kept: set[Key] = set()
        self._roles.add_handler(self._seen, lambda old, new: self._seen(new), self._gone, name=NAME)

    def _seen(self, role: Object) -> None:
        """Any role may be a part of any aggregated one, of which there are few among many."""
        if self._keeps(role):
            self._kept.add(key_of(role))
        else:
            self._kept.discard(key_of(role))
        self._look_again()

    def _gone(self, role: Object) -> None:
        self._kept.discard(key_of(role))
        self._look_again()

    def _look_again(self) -> None:
        for key in self._kept:
            self.controller.queue.add(key)

    def _keeps(self, role: Object) -> bool:
        marks: dict[str, str] = role["metadata"].get("labels") or {}
        return bool(role.get("aggregationRule")) and (not self._bootstrap_only or marks.get(_BOOTSTRAPPING) is not None)

    async def _reconcile(self, key: Key) -> None:
        role = self._roles.lister.get(*key)
        if role is None or not self._keeps(role):
            return
        roles = self._roles.lister.list()
        rules = await weighed(_WEIGHT * sum(len(each.get("rules") or ()) for each in roles), aggregate, role, roles)
        if rules == [_plain(rule) for rule in role.get("rules") or ()]:
            return
        wanted = {"apiVersion": f"{_GROUP}/v1", "kind": "ClusterRole", "metadata": {"name": key[1]}, "rules": rules}
        try:
            await self._client.apply(wanted, NAME, force=True)
        except errors.NotFound:
            return
        except errors.Forbidden as error:  # where authorization is not by RBAC, others decide what this may do
            logger.warning("cluster role %s is not aggregated: %s", key[1], error)


def aggregate(role: Object, roles: Iterable[Object]) -> list[dict[str, Any]]:
    """The rules that a role is made of: each once, by selector, then by the names of the roles."""
    rules: dict[bytes, dict[str, Any]] = {}
    ordered = sorted(roles, key=lambda each: str(each["metadata"]["name"]))
    for each in role["aggregationRule"].get("clusterRoleSelectors") or ():
        selector = labels.from_object(each)
        for part in ordered:
            if part["metadata"]["name"] == role["metadata"]["name"]:
                continue
            if selector.matches(part["metadata"].get("labels") or {}):
                for rule in map(_plain, part.get("rules") or ()):
                    rules.setdefault(orjson.dumps(rule, option=orjson.OPT_SORT_KEYS), rule)
    return list(rules.values())


def _plain(rule: dict[str, Any]) -> dict[str, Any]:
    """A rule without what says nothing."""
    return {name: value for name, value in rule.items() if value}
