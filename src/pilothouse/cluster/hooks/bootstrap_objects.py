"""Objects that a fresh cluster has and that are put right at every start."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from pilothouse.cluster.hooks.hook import HookContext, PostStartHook
from pilothouse.controllers.cluster_roles import NAME as AGGREGATION
from pilothouse.controllers.cluster_roles import AggregatedRoles
from pilothouse.controllers.runtime.controller import Until
from pilothouse.controlplane.bootstrap.policy import reconcile_policy
from pilothouse.controlplane.bootstrap.priority_classes import create_system_priority_classes
from pilothouse.machinery.supervision import Supervisor

_RBAC: Final = "rbac.authorization.k8s.io"
_SCHEDULING: Final = "scheduling.k8s.io"


def roles(context: HookContext) -> Iterator[PostStartHook]:
    """The RBAC policy."""
    if not context.serves(_RBAC):
        return

    async def start(supervisor: Supervisor) -> None:
        gates = context.options.generic.enabled_gates()
        await reconcile_policy(lambda name: context.store(_RBAC, name), gates)
        if all(row.name != AGGREGATION for row in context.options.living.rows()):
            ready = Until(context.lifecycle.ready)
            aggregated = AggregatedRoles(context.informers, context.clients, [ready], bootstrap_only=True)
            aggregated.controller.start(supervisor)

    backed_by = "the roles and bindings of a fresh cluster, aggregated ones too"
    yield PostStartHook("rbac/bootstrap-roles", backed_by, start)


def priority_classes(context: HookContext) -> Iterator[PostStartHook]:
    """The priority classes of system components."""
    if not context.serves(_SCHEDULING):
        return

    async def start(supervisor: Supervisor) -> None:
        await create_system_priority_classes(context.store(_SCHEDULING, "priorityclasses"))

    yield PostStartHook("scheduling/bootstrap-system-priority-classes", "the system priority classes", start)
