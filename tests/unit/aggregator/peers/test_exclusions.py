"""Group versions that are never looked for at peers."""

import asyncio
from collections.abc import Callable
from typing import Any

from pilothouse.aggregator.peers.exclusions import GRACE_SECONDS, Exclusions
from pilothouse.controllers.own_objects import create, remove
from pilothouse.controllers.runtime.informers import InformerFactory
from pilothouse.controllers.runtime.sources import built_in_source
from pilothouse.machinery.gvk import GroupVersion
from pilothouse.machinery.supervision import Supervisor
from pilothouse.registry.storage import StorageFactory
from pilothouse.testing.fake_clock import FakeClock

SAILS = GroupVersion("example.com", "v1")
OLD_SAILS = GroupVersion("example.com", "v1beta1")


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(60):
        while not condition():
            await asyncio.sleep(0.005)


def definition() -> dict[str, Any]:
    versions = [
        {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": {"type": "object"}}},
        {"name": "v1beta1", "served": False, "storage": False, "schema": {"openAPIV3Schema": {"type": "object"}}},
    ]
    names = {"plural": "sails", "singular": "sail", "kind": "Sail", "listKind": "SailList"}
    return {
        "metadata": {"name": "sails.example.com"},
        "spec": {"group": "example.com", "scope": "Cluster", "names": names, "versions": versions},
    }


def api_service(version: str, service: dict[str, Any] | None) -> dict[str, Any]:
    spec: dict[str, Any] = {"group": "remote.com", "version": version, "groupPriorityMinimum": 1, "versionPriority": 1}
    if service is not None:
        spec |= {"service": service, "insecureSkipTLSVerify": True}
    return {"metadata": {"name": f"{version}.remote.com"}, "spec": spec}


async def test_what_is_defined_is_excluded_and_stays_so_for_a_while(storage: StorageFactory) -> None:
    supervisor, clock = Supervisor("test"), FakeClock()
    informers = InformerFactory(lambda gvr: built_in_source(storage, gvr), supervisor)
    excluded: set[GroupVersion] = set()

    def note(found: Any) -> None:
        excluded.clear()
        excluded.update(found)

    definitions = storage.store("apiextensions.k8s.io", "v1", "customresourcedefinitions")
    services = storage.store("apiregistration.k8s.io", "v1", "apiservices")
    try:
        exclusions = Exclusions(informers, note, clock)
        informers.start()
        exclusions.start(supervisor)
        await create(definitions, definition())
        await create(services, api_service("v1", {"name": "s", "namespace": "n"}))
        await create(services, api_service("v2", None))
        await until(lambda: excluded == {SAILS, OLD_SAILS, GroupVersion("remote.com", "v1")})
        await remove(services, "", "v1.remote.com")
        await until(lambda: bool(clock.waiting))
        assert GroupVersion("remote.com", "v1") in excluded
        clock.advance(GRACE_SECONDS + 1)
        await until(lambda: excluded == {SAILS, OLD_SAILS})
    finally:
        await supervisor.close()
