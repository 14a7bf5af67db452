"""This server among others: the Lease that shows it is there, and the address that peers reach it at."""

from __future__ import annotations

from collections.abc import Iterator

from pilothouse.cluster.hooks.hook import HookContext, PostStartHook
from pilothouse.controllers.runtime.controller import Periodic
from pilothouse.controlplane.bootstrap.address_leases import IDENTITY_LABEL, RENEW_SECONDS
from pilothouse.controlplane.bootstrap.identity_lease import COLLECT_SECONDS, IdentityLease, collect_expired
from pilothouse.controlplane.bootstrap.identity_lease import RENEW_SECONDS as RENEW_IDENTITY_SECONDS
from pilothouse.machinery.supervision import Supervisor
from pilothouse.options.control_plane import PEER_GATE


def peer_lease(context: HookContext) -> Iterator[PostStartHook]:
    """The address, renewed once the server is ready; taken back first when it stops."""
    if PEER_GATE not in context.storage.gates:
        return
    leases = context.peer_leases
    host, _, port = context.peer_address.rpartition(":")
    ports = [{"name": "https", "port": int(port), "protocol": "TCP"}]
    subset = {"addresses": [{"ip": host.strip("[]")}], "ports": ports}
    name, stopping = context.identity, context.lifecycle.stopping

    async def renew() -> None:
        if not stopping.is_set():
            await leases.renew(name, subset, {IDENTITY_LABEL: name})

    async def start(supervisor: Supervisor) -> None:
        Periodic("peer lease", renew, RENEW_SECONDS, wait_for=context.lifecycle.ready).start(supervisor)

    async def stop() -> None:
        await leases.remove(name)

    hook = "peer-endpoint-reconciler-controller"
    yield PostStartHook(hook, "the renewal of this server's address for its peers", start, before_shutdown=(hook, stop))


def own_lease(context: HookContext) -> Iterator[PostStartHook]:
    """The Lease of this server, and the collection of those that other servers have left behind."""
    store = context.store("coordination.k8s.io", "leases")
    address = context.peer_address if PEER_GATE in context.storage.gates else ""
    lease = IdentityLease(store, address, context.hostname)

    async def start(supervisor: Supervisor) -> None:
        # A store that takes no writes just now (etcd's quota) is no reason not to serve: renewing makes up for it.
        await Periodic("identity lease", lease.begin, RENEW_IDENTITY_SECONDS).round()
        Periodic("identity lease", lease.renew, RENEW_IDENTITY_SECONDS, at_once=False).start(supervisor)

    async def collect(supervisor: Supervisor) -> None:
        ready = context.lifecycle.ready
        periodic = Periodic(
            "identity lease collection", lambda: collect_expired(store), COLLECT_SECONDS, wait_for=ready
        )
        periodic.start(supervisor)

    yield PostStartHook(
        "start-kube-apiserver-identity-lease-controller",
        "the Lease of this server",
        start,
        before_shutdown=("stop-kube-apiserver-identity-lease-controller", lease.end),
    )
    yield PostStartHook(
        "start-kube-apiserver-identity-lease-garbage-collector", "the collection of expired server Leases", collect
    )
