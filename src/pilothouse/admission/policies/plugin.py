"""What the two plug-ins that follow policies have in common: which policies there are, and whom one concerns."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar, Generic, TypeVar

from pilothouse.admission.configuration import require_kind
from pilothouse.admission.environment import Environment
from pilothouse.admission.manifests.source import find_source
from pilothouse.admission.plugin import Plugin
from pilothouse.admission.policies.criteria import Match, is_policy
from pilothouse.admission.policies.definitions import Binding, Definition, Policies, Policy
from pilothouse.admission.policies.params import Misconfigured, Params, Source
from pilothouse.admission.webhooks.matching import EXCLUDED
from pilothouse.endpoints.admission import Attributes
from pilothouse.machinery import errors
from pilothouse.machinery.gvk import GroupResource

T = TypeVar("T")


class PolicyPlugin(Plugin, ABC, Generic[T]):
    """Base of the plug-ins that follow policies; the kinds of policies are named after the plug-in."""

    policy_resource: ClassVar[str]

    def __init__(self, environment: Environment, configuration: Any = None) -> None:
        super().__init__(environment)
        if configuration is not None:
            require_kind(configuration, "apiserver.config.k8s.io", ("v1",), f"{self.name}Configuration")
        static = find_source(environment, self.name, configuration, (self.name, f"{self.name}Binding"), "policy")
        self.policies = Policies(
            environment, self.policy_resource, f"{self.name.lower()}bindings", self.compile_policy, static
        )
        self.namespaces = environment.objects("", "v1", "namespaces")
        self.params = Params(environment)

    @abstractmethod
    def compile_policy(self, spec: dict[str, Any]) -> T:
        """Compile the expressions of a policy."""

    def concerns(self, operation: str, resource: GroupResource, subresource: str) -> bool:
        """Everything but policies themselves."""
        if resource in EXCLUDED:
            return False
        return self.policies.source is not None or not is_policy(resource)

    async def policies_for(self, attributes: Attributes) -> Sequence[Policy[T]]:
        """The policies that may see a request."""
        return self.policies.static() if is_policy(attributes.resource) else await self.policies.current()

    async def match(self, definition: Definition[T], attributes: Attributes) -> tuple[Match, Source | None] | None:
        """How a policy sees a request and where its params are; None if it is not concerned. Raises Misconfigured."""
        try:
            found = await definition.criteria.match(attributes, self.namespaces, self.environment.served)
        except errors.StatusError as error:
            raise Misconfigured(error.message) from None
        return None if found is None else (found, self.params.find_kind(definition.param_kind))

    async def collect(self, binding: Binding, source: Source | None, attributes: Attributes) -> list[Any]:
        """The params that a binding brings to a request, none if it is not concerned. Raises Misconfigured."""
        criteria = binding.criteria
        try:
            if criteria is not None and not await criteria.match(attributes, self.namespaces, self.environment.served):
                return []
            return await self.params.collect(source, binding.param_ref, attributes.namespace)
        except errors.StatusError as error:
            raise Misconfigured(error.message) from None

    async def reload(self) -> None:
        """Read the manifests again if they changed."""
        if self.policies.source is not None:
            await self.policies.source.reload()
