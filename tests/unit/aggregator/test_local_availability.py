"""The condition of APIServices that are served here."""

from __future__ import annotations

from typing import Any

import pytest

from pilothouse.aggregator.local_availability import LocalAvailability
from pilothouse.controllers.own_objects import condition_of, create, existing
from pilothouse.controllers.runtime.informers import InformerFactory
from pilothouse.registry.storage import StorageFactory

SERVICE = {"namespace": "default", "name": "behind", "port": 443}


@pytest.mark.parametrize(("spec", "reason"), [({}, "Local"), ({"service": SERVICE}, None)])
async def test_only_local_ones_are_judged(
    spec: dict[str, Any], reason: str | None, storage: StorageFactory, informers: InformerFactory
) -> None:
    store = storage.store("apiregistration.k8s.io", "v1", "apiservices")
    full = {"group": "example.com", "version": "v1", "groupPriorityMinimum": 1, "versionPriority": 1, **spec}
    await create(store, {"metadata": {"name": "v1.example.com"}, "spec": full})
    await LocalAvailability(store, informers).reconcile("v1.example.com")
    stored = await existing(store, "", "v1.example.com")
    assert stored is not None
    assert (condition_of(stored, "Available") or {}).get("reason") == reason
