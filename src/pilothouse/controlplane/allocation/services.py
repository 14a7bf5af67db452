"""Allocation around one write of a service.

    allocation = await allocations.allocate_create(ctx, service)      # before validation; changes the service
    try:
        … validate, admit, write …
    except BaseException:
        await allocation.undo()                                       # gives back what was taken
        raise
    await allocation.commit()                                         # gives back what the service no longer has

What is taken is kept before the service is written, and what is given back is given back after: a server that dies in
between leaks, which the repair loops mend, but never hands out anything twice. ``release`` is for removed services.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from pilothouse.apis.core.checks import is_ipv6
from pilothouse.apis.core.service.fields import (
    HEADLESS,
    Spec,
    default_stored,
    needs_cluster_ip,
    normalize_cluster_ips,
    patch_allocated,
    spec_of,
)
from pilothouse.apis.strategy import Context
from pilothouse.controlplane.allocation.cluster_ips import AllocationError, ClusterIPs
from pilothouse.controlplane.allocation.families import SERVICE, keeps_preference, settle_families
from pilothouse.controlplane.allocation.node_ports import NodePorts
from pilothouse.controlplane.allocation.port_plans import PortPlan, plan_create, plan_update, ports_of
from pilothouse.controlplane.allocation.ranges import DryPortSet, PortSet
from pilothouse.machinery import errors
from pilothouse.machinery.field_errors import Path, invalid
from pilothouse.machinery.go_quote import quote
from pilothouse.machinery.objects import Object
from pilothouse.machinery.workers import weighed

_Work = Callable[[PortSet], PortPlan]


class Allocation:
    """What one write took, and what it will give back. Either ``commit`` or ``undo`` is called, once."""

    def __init__(self, owner: ServiceAllocations) -> None:
        self._owner = owner
        self.taken_ips: list[str] = []
        self.released_ips: list[str] = []
        self.ports = PortPlan()

    async def commit(self) -> None:
        """The service is written: give back what it no longer has."""
        await self._owner.give_back(self.released_ips, self.ports.released)

    async def undo(self) -> None:
        """The service is not written: give back what was taken for it."""
        await self._owner.give_back(self.taken_ips, self.ports.allocated)


class ServiceAllocations:
    """Cluster addresses and node ports for services. ``families`` has the cluster's families, the default one first."""

    def __init__(self, families: Sequence[str], cluster_ips: ClusterIPs, node_ports: NodePorts) -> None:
        self._families = tuple(families)
        self._ips = cluster_ips
        self.node_ports = node_ports

    async def allocate_create(self, ctx: Context, service: Object) -> Allocation:
        """Give a new service what it needs. Raises the Status that refuses it, with nothing left allocated."""
        spec = service.setdefault("spec", {})
        normalize_cluster_ips(spec)
        name = service["metadata"].get("name", "")
        await weighed(ctx.weight, settle_families, spec, None, name, self._families)
        allocation = Allocation(self)
        try:
            await self._take_ips(ctx, service, spec, allocation)
            allocation.ports = await self._plan_ports(ctx, lambda ports: plan_create(spec, name, ports))
            await weighed(ctx.weight, allocation.ports.apply, spec)
        except BaseException:
            await self._undo(ctx, allocation)
            raise
        return Allocation(self) if ctx.dry_run else allocation

    async def allocate_update(self, ctx: Context, service: Object, old: Object) -> Allocation:
        """Give a changed service what it needs now. Raises the Status that refuses it, with nothing left allocated."""
        spec, before = service.setdefault("spec", {}), dict(spec_of(old))
        default_stored(before, self._families[0])
        patch_allocated(spec, before)
        normalize_cluster_ips(spec, before)
        name = service["metadata"].get("name", "")
        await weighed(ctx.weight, settle_families, spec, before, name, self._families)
        allocation = Allocation(self)
        try:
            await self._change_ips(ctx, service, before, allocation)
            allocation.ports = await self._plan_ports(ctx, lambda ports: plan_update(spec, before, name, ports))
            await weighed(ctx.weight, allocation.ports.apply, spec)
        except BaseException:
            await self._undo(ctx, allocation)
            raise
        return Allocation(self) if ctx.dry_run else allocation

    async def release(self, service: Object) -> None:
        """Give back everything a removed service had."""
        spec = dict(spec_of(service))
        default_stored(spec, self._families[0])
        ips = spec.get("clusterIPs") or [] if needs_cluster_ip(spec) else []
        await self.give_back([ip for ip in ips if ip != HEADLESS], ports_of(spec))

    async def give_back(self, ips: Sequence[str], ports: Sequence[int]) -> None:
        """Give back addresses and ports."""
        for ip in ips:
            await self._ips.release(ip)
        if ports:

            def free(allocated: PortSet) -> None:
                for port in ports:
                    allocated.release(port)

            await self.node_ports.change(free)

    async def _undo(self, ctx: Context, allocation: Allocation) -> None:
        if not ctx.dry_run:
            await allocation.undo()

    async def _plan_ports(self, ctx: Context, work: _Work) -> PortPlan:
        if ctx.dry_run:
            return await weighed(ctx.weight, work, DryPortSet(await self.node_ports.peek()))
        return await self.node_ports.change(work, ctx.weight)

    # Addresses

    async def _take_ips(self, ctx: Context, service: Object, spec: Spec, allocation: Allocation) -> None:
        """An address for each family of a service that has none yet."""
        if not needs_cluster_ip(spec) or HEADLESS in (spec.get("clusterIPs") or ())[:1]:
            return
        families = spec.get("ipFamilies") or []
        ips = list(spec.get("clusterIPs") or [])
        spec["clusterIPs"] = ips + [""] * (len(families) - len(ips))
        for at, family in enumerate(families):
            await self._take_ip(ctx, service, spec, allocation, at, family)
        spec["clusterIP"] = spec["clusterIPs"][0]

    async def _take_ip(
        self, ctx: Context, service: Object, spec: Spec, allocation: Allocation, at: int, family: str
    ) -> None:
        ips: list[str] = spec["clusterIPs"]
        wanted, name = ips[at], service["metadata"].get("name", "")
        try:
            if wanted:
                await self._ips.allocate(service, wanted, dry_run=ctx.dry_run)
            else:
                ips[at] = await self._ips.allocate_next(service, family, dry_run=ctx.dry_run)
        except AllocationError as error:
            if error.full and not wanted:
                why = f"failed to allocate a serviceIP for Service {quote(name)}: {error}"
                raise errors.internal_error(why) from None
            why = f"failed to allocate IP {wanted}: {error}" if wanted else f"failed to allocate IP: {error}"
            raise errors.invalid(SERVICE, name, [invalid(Path("spec", "clusterIPs"), ips, why)]) from None
        allocation.taken_ips.append(ips[at])

    async def _change_ips(self, ctx: Context, service: Object, before: Spec, allocation: Allocation) -> None:
        """All new for what was an external name, all back for what becomes one, and a second one that comes or goes."""
        spec = service["spec"]
        if keeps_preference(spec, before):
            return
        if not needs_cluster_ip(before):
            await self._take_ips(ctx, service, spec, allocation)
            return
        old_ips, old_families = before.get("clusterIPs") or [], before.get("ipFamilies") or []
        families = spec.get("ipFamilies") or []
        if old_ips[:1] == [HEADLESS]:
            return
        if not needs_cluster_ip(spec):
            allocation.released_ips += old_ips[: len(old_families)]
        elif len(old_families) == 1 and len(families) == 2:
            ips = list(spec.get("clusterIPs") or [])
            spec["clusterIPs"] = ips if len(ips) > 1 else [*ips, ""]
            await self._take_ip(ctx, service, spec, allocation, 1, families[1])
        elif len(old_families) == 2 and len(families) == 1:
            allocation.released_ips += [ip for ip in old_ips if is_ipv6(ip) == (old_families[1] == "IPv6")]
