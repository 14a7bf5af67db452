"""All post-start hooks, in the order in which health checks name them, which is kube-apiserver's.

A new controller is a file beside this one with a function that declares its hooks, and a line in ``HOOKS``.
"""

from __future__ import annotations

from functools import partial
from typing import Final

from pilothouse.cluster.hooks import (
    admission,
    aggregation,
    authentication_trust,
    bootstrap_objects,
    custom_resources,
    flow_control,
    identity,
    informers,
    kubernetes_service,
    leadership,
    living,
    namespaces,
    peers,
    policy_types,
    service_repair,
    storage,
    token_tracking,
)
from pilothouse.cluster.hooks.hook import Declare, HookContext, PostStartHook
from pilothouse.cluster.workers import Workers
from pilothouse.machinery.supervision import Supervisor
from pilothouse.server.hooks import Hooks

HOOKS: Final[tuple[Declare, ...]] = (
    admission.initializer,
    informers.shared,
    flow_control.consumer,
    storage.object_counts,
    custom_resources.controllers,
    namespaces.system_namespaces,
    leadership.coordinated,
    identity.peer_lease,
    peers.proxying,
    authentication_trust.cluster_authentication,
    identity.own_lease,
    storage.readiness,
    token_tracking.legacy_tokens,
    service_repair.repair,
    bootstrap_objects.roles,
    bootstrap_objects.priority_classes,
    flow_control.producer,
    kubernetes_service.service,
    kubernetes_service.default_cidr,
    aggregation.proxying,
    aggregation.registration,
    aggregation.documents,
    policy_types.type_checking,
    living.controllers,
    living.scheduler,
    living.simulated_nodes,
)


EVERYWHERE: Final = frozenset(
    {
        "start-apiserver-admission-initializer",
        "generic-apiserver-start-informers",
        "priority-and-fairness-config-consumer",
        "priority-and-fairness-filter",
        "max-in-flight-filter",
        "storage-object-count-tracker-hook",
        "storage-readiness",
        "start-apiextensions-informers",
        "crd-informer-synced",
        "mixed-version-proxy-handler",
        "local-discovery-cache-sync",
        "peer-discovery-workers",
        "aggregator-reload-proxy-client-cert",
        "start-kube-aggregator-informers",
        "apiservice-registration-controller",
        "apiservice-discovery-controller",
        "apiservice-openapi-controller",
        "apiservice-openapiv3-controller",
    }
)
"""Hooks that a process needs in order to serve. All others act on the cluster: of several workers one has them."""


def install_hooks(context: HookContext, hooks: Hooks, supervisor: Supervisor, workers: Workers) -> None:
    """Register every hook, each with a supervisor of its own under the given one."""
    for declare in HOOKS:
        for hook in declare(context):
            if workers.acts or hook.name in EVERYWHERE:
                _install(hook, hooks, supervisor.child(hook.name))
            else:
                _install_name(hook, hooks, workers)


def _install_name(hook: PostStartHook, hooks: Hooks, workers: Workers) -> None:
    """A hook that another process has: here it is a health check alone, which says how it is there."""

    async def nothing() -> None:
        """It is done elsewhere."""

    hooks.add_post_start(
        hook.name, nothing, lambda: workers.error_of(f"poststarthook/{hook.name}"), "the process that acts for all"
    )


def _install(hook: PostStartHook, hooks: Hooks, supervisor: Supervisor) -> None:
    def error() -> str:
        found = [hook.check(), *(f"{name}: {why}" for name, why in supervisor.unhealthy().items())]
        return "; ".join(each for each in found if each)

    hooks.add_post_start(hook.name, partial(hook.start, supervisor), error, hook.backed_by)
    if hook.before_shutdown is not None:
        hooks.add_pre_shutdown(*hook.before_shutdown)
