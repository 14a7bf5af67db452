"""ResourceQuota: no more of anything in a namespace than its quotas allow, whoever asks at the same moment.

Runs last, when everything else has agreed: what is charged is used.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from pilothouse.admission.environment import Environment
from pilothouse.admission.objects import Objects
from pilothouse.admission.plugin import Plugin
from pilothouse.admission.quota.claims import ResourceClaimEvaluator, VolumeClaimEvaluator
from pilothouse.admission.quota.configuration import read_configuration
from pilothouse.admission.quota.evaluators import Evaluator, ServiceEvaluator
from pilothouse.admission.quota.ledger import Ledger
from pilothouse.admission.quota.pods import PodEvaluator
from pilothouse.endpoints.admission import Attributes
from pilothouse.machinery.gvk import GroupResource

_SERVICES: Final = GroupResource("", "services")
_RESOURCE_CLAIMS: Final = GroupResource("resource.k8s.io", "resourceclaims")
_IGNORED: Final = frozenset(
    {
        GroupResource("", "bindings"),
        GroupResource("", "componentstatuses"),
        GroupResource("authentication.k8s.io", "tokenreviews"),
        GroupResource("authentication.k8s.io", "selfsubjectreviews"),
        GroupResource("authorization.k8s.io", "subjectaccessreviews"),
        GroupResource("authorization.k8s.io", "selfsubjectaccessreviews"),
        GroupResource("authorization.k8s.io", "localsubjectaccessreviews"),
        GroupResource("authorization.k8s.io", "selfsubjectrulesreviews"),
        GroupResource("", "events"),
        GroupResource("events.k8s.io", "events"),
        GroupResource("", "namespaces"),
    }
)


class ResourceQuota(Plugin):
    """See the module's docstring."""

    name = "ResourceQuota"

    def __init__(self, environment: Environment, configuration: Any = None) -> None:
        super().__init__(environment)
        self._quotas = environment.objects("", "v1", "resourcequotas")
        self._limited = read_configuration(configuration)
        self._ledger: Ledger | None = None
        self._beside_claims = (
            environment.late_objects("resource.k8s.io", "v1", "deviceclasses"),
            environment.late_objects("", "v1", "pods"),
            environment.late_objects("resource.k8s.io", "v1", "resourceclaims"),
        )
        """What resource claims are counted with."""
        self._evaluators: dict[GroupResource, Evaluator] = {
            GroupResource("", "pods"): PodEvaluator(environment.enabled("PodLevelResources")),
            _SERVICES: ServiceEvaluator(_SERVICES),
            GroupResource("", "persistentvolumeclaims"): VolumeClaimEvaluator(),
            _RESOURCE_CLAIMS: ResourceClaimEvaluator(*self._beside_claims),
        }

    def concerns(self, operation: str, resource: GroupResource, subresource: str) -> bool:
        """What can change what is used; cluster-wide objects drop out when their namespace is seen to be empty."""
        return resource not in _IGNORED and self._evaluator(resource).concerns(operation, subresource)

    def is_idle(self) -> bool:
        """Whether there are no quotas anywhere, and nothing needs one."""
        return not self._limited and self._quotas.is_empty

    def idle_by(self) -> Sequence[Objects]:
        """The quotas; what is limited without one is configured."""
        return (self._quotas,)

    async def validate(self, attributes: Attributes) -> None:
        """Charge the request, or refuse it."""
        namespace = attributes.namespace
        if not namespace:
            return
        if self.is_idle():
            return
        quotas = self._quotas
        if not self._limited:
            await quotas.ready()
            if not quotas.entries(namespace):
                return
        evaluator = self._evaluator(attributes.resource.group_resource)
        if evaluator.handles(attributes):
            if attributes.resource.group_resource == _RESOURCE_CLAIMS:
                for objects in self._beside_claims:
                    await objects.ready()
            if self._ledger is None:
                self._ledger = Ledger(quotas, self._limited)
            await self._ledger.charge(attributes, evaluator)

    async def close(self) -> None:
        """Stop charging."""
        if self._ledger is not None:
            await self._ledger.close()

    def _evaluator(self, resource: GroupResource) -> Evaluator:
        found = self._evaluators.get(resource)
        if found is None:
            found = self._evaluators[resource] = Evaluator(resource)
        return found
