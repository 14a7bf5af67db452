"""LimitRanger: defaults and bounds for the resources of containers, pods and claims, from a namespace's LimitRanges."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from pilothouse.admission.environment import Environment
from pilothouse.admission.objects import Objects
from pilothouse.admission.plugin import Plugin
from pilothouse.admission.plugins.limit_ranger.bounds import check_claim, check_pod
from pilothouse.admission.plugins.limit_ranger.compiled import CompiledRange, compile_range
from pilothouse.admission.plugins.limit_ranger.defaulting import fill_in
from pilothouse.admission.refusals import forbidden
from pilothouse.endpoints.admission import CREATE, UPDATE, Attributes
from pilothouse.machinery.field_errors import aggregate
from pilothouse.machinery.gvk import GroupResource
from pilothouse.machinery.workers import weighed
from pilothouse.storage.cacher import Entry

_PODS: Final = GroupResource("", "pods")
_CLAIMS: Final = GroupResource("", "persistentvolumeclaims")
_COMPILED: Final = "limit-ranger"


class LimitRanger(Plugin):
    """See the module's docstring."""

    name = "LimitRanger"

    def __init__(self, environment: Environment, configuration: Any = None) -> None:
        super().__init__(environment)
        self._ranges = environment.objects("", "v1", "limitranges")
        self._pod_level = environment.enabled("PodLevelResources")

    def concerns(self, operation: str, resource: GroupResource, subresource: str) -> bool:
        """New pods, resized pods, and claims. Other updates cannot change a pod's containers."""
        if resource == _PODS:
            return (operation, subresource) in ((CREATE, ""), (UPDATE, "resize"))
        return resource == _CLAIMS and not subresource and operation in (CREATE, UPDATE)

    def is_idle(self) -> bool:
        """Whether there are no limits anywhere."""
        return self._ranges.is_empty

    def idle_by(self) -> Sequence[Objects]:
        """The limits."""
        return (self._ranges,)

    async def admit(self, attributes: Attributes) -> None:
        """Fill in what containers leave open."""
        if self.is_idle() or attributes.resource.resource != "pods" or attributes.object is None:
            return
        for each in await self._applicable(attributes):
            weight = each.weight_of_defaults(attributes.object)
            await weighed(weight, fill_in, attributes.object, each)
            attributes.weight += weight

    async def validate(self, attributes: Attributes) -> None:
        """Refuse what is out of bounds."""
        obj = attributes.object
        if self.is_idle() or obj is None:
            return
        spec: dict[str, Any] = obj.get("spec") or {}
        for each in await self._applicable(attributes):
            weight = each.weight_of_limits(obj) + attributes.weight
            if attributes.resource.resource == "pods":
                errs = await weighed(weight, check_pod, each, spec, self._pod_level)
            else:
                errs = await weighed(weight, check_claim, each, spec)
            if errs:
                raise forbidden(attributes, aggregate(errs))

    async def _applicable(self, attributes: Attributes) -> list[CompiledRange]:
        old = attributes.old_object
        if old is not None and old["metadata"].get("deletionTimestamp"):
            return []
        ranges = self._ranges
        await ranges.ready()
        entries = ranges.entries(attributes.namespace)
        unread = sum(len(entry.data) for entry in entries if _COMPILED not in (entry.forms or ()))
        return await weighed(unread, self._compile_all, entries)

    def _compile_all(self, entries: list[Entry]) -> list[CompiledRange]:
        return [Objects.derived(entry, _COMPILED, self._compile) for entry in entries]

    def _compile(self, entry: Entry) -> CompiledRange:
        return compile_range(self._ranges.store.decode(entry))
