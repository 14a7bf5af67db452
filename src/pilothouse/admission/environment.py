"""What plug-ins are given to work with: stored objects, the authorizer, features, clocks and randomness."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from pilothouse.admission.metrics import AdmissionMetrics
from pilothouse.admission.objects import Objects
from pilothouse.admission.versions import ServedVersions
from pilothouse.authz.authorizer import Authorizer
from pilothouse.net.dialing.egress import Egress
from pilothouse.registry.storage import StorageFactory


@dataclass(slots=True)
class Environment:
    """Shared by all plug-ins of one server."""

    storage: StorageFactory
    authorizer: Authorizer | None = None
    rng: random.Random = field(default_factory=random.Random)
    monotonic: Callable[[], float] = time.monotonic
    not_ready_seconds: int = 300
    unreachable_seconds: int = 300
    routes_services: bool = False
    """Whether services are reached at their endpoints instead of their cluster address."""
    egress: Egress = field(default_factory=Egress)
    """The ways that calls to webhooks take."""
    served: ServedVersions = field(default_factory=ServedVersions)
    metrics: AdmissionMetrics = field(default_factory=AdmissionMetrics)
    _objects: dict[tuple[str, str], Objects] = field(default_factory=dict)
    _late: dict[tuple[str, str], Objects] = field(default_factory=dict)

    def objects(self, group: str, version: str, name: str) -> Objects:
        """The stored objects of a resource that requests of all kinds are judged by. They are loaded at the start."""
        found = self._objects.get((group, name))
        if found is None:
            found = self._objects[group, name] = Objects(self.storage.store(group, version, name))
        return found

    def late_objects(self, group: str, version: str, name: str) -> Objects:
        """Those of a resource that few requests are judged by, or that there may be very many of: pods, nodes, classes.

        They are loaded when they are first needed: ``ready`` must be awaited before anything else is asked of them.
        """
        found = self._objects.get((group, name)) or self._late.get((group, name))
        if found is None:
            found = self._late[group, name] = Objects(lambda: self.storage.store(group, version, name))
        return found

    def all_objects(self) -> tuple[Objects, ...]:
        """All that anybody has asked for so far and that are loaded at the start."""
        return tuple(self._objects.values())

    def enabled(self, feature: str) -> bool:
        """Whether a feature gate is on."""
        return feature in self.storage.gates
