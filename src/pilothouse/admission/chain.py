"""The chain: plug-ins in order, first those that mutate, then, on the final object, those that validate.

Which plug-ins care for an operation on a resource is worked out once and looked up afterwards. When a webhook or a
policy has changed the object, all mutating plug-ins see it once more (reinvocation), as later changes may be against
what earlier plug-ins ensure.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Final

from pilothouse.admission.plugin import Plugin
from pilothouse.admission.reinvocation import Reinvocation
from pilothouse.endpoints.admission import Attributes
from pilothouse.machinery.gvk import GroupResource

Step = Callable[[Attributes], Awaitable[None]]
_Key = tuple[str, str, str, str]
_MUTATING: Final = "admit"
_VALIDATING: Final = "validate"


class Chain:
    """All plug-ins of a server, in the order they run."""

    def __init__(self, plugins: Sequence[Plugin]) -> None:
        self.plugins = tuple(plugins)
        self._mutating: dict[_Key, tuple[Step, ...]] = {}
        self._validating: dict[_Key, tuple[Step, ...]] = {}

    def handles(self, operation: str) -> bool:
        """Whether any plug-in cares for this operation."""
        return bool(self.plugins)

    async def admit(self, attributes: Attributes) -> None:
        """Run the mutating plug-ins that this request concerns, twice if that is called for."""
        steps = self._steps(self._mutating, _MUTATING, attributes)
        for step in steps:
            await step(attributes)
        state = attributes.reinvocation
        if isinstance(state, Reinvocation) and state.begin():
            for step in steps:
                await step(attributes)

    async def validate(self, attributes: Attributes) -> None:
        """Run the validating plug-ins that this request concerns."""
        for step in self._steps(self._validating, _VALIDATING, attributes):
            await step(attributes)

    def _steps(self, known: dict[_Key, tuple[Step, ...]], phase: str, attributes: Attributes) -> tuple[Step, ...]:
        """What concerns a request of this shape in one phase, worked out once."""
        resource = attributes.resource
        key = (attributes.operation, resource.group, resource.resource, attributes.subresource)
        steps = known.get(key)
        if steps is None:
            steps = known[key] = self._select(phase, key)
        return steps

    async def close(self) -> None:
        """Release what plug-ins hold."""
        for plugin in self.plugins:
            await plugin.close()

    def _select(self, hook: str, key: _Key) -> tuple[Step, ...]:
        operation, group, resource, subresource = key
        return tuple(
            getattr(plugin, hook)
            for plugin in self.plugins
            if getattr(type(plugin), hook) is not getattr(Plugin, hook)
            and plugin.concerns(operation, GroupResource(group, resource), subresource)
        )
