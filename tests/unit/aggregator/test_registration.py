import asyncio
from typing import Any

import pytest

from pilothouse.aggregator.registration import (
    ALWAYS,
    AUTOMANAGED,
    ON_START,
    AutoRegistration,
    api_service,
    built_in_services,
)
from pilothouse.apis.resources import table
from pilothouse.controllers.own_objects import condition_of, create, existing, remove, update
from pilothouse.controllers.runtime.informers import InformerFactory
from pilothouse.machinery.gvk import parse_group_version
from pilothouse.machinery.supervision import Supervisor
from pilothouse.registry.storage import StorageFactory
from pilothouse.registry.store.store import Store

NAME = "v1.example.com"


def services_of(storage: StorageFactory) -> Store:
    return storage.store("apiregistration.k8s.io", "v1", "apiservices")


def service(managed: str, priority: int = 1000) -> dict[str, Any]:
    made = api_service("example.com", "v1", (priority, 10), managed)
    if not managed:
        del made["metadata"]["labels"][AUTOMANAGED]
    return made


async def outcome(store: Store) -> int | None:
    """The priority of the stored service; None if there is none."""
    stored = await existing(store, "", NAME)
    return None if stored is None else int(stored["spec"]["groupPriorityMinimum"])


@pytest.mark.parametrize(
    ("stored", "wanted", "expected"),
    [
        (None, None, None),
        (None, ON_START, 2000),
        (None, ALWAYS, 2000),
        ("", None, 1000),
        ("", ON_START, 1000),
        ("", ALWAYS, 1000),
        (ON_START, None, None),
        (ON_START, ON_START, 2000),
        (ON_START, ALWAYS, 2000),
        (ALWAYS, None, None),
        (ALWAYS, ON_START, 2000),
        (ALWAYS, ALWAYS, 2000),
    ],
)
async def test_at_start(
    stored: str | None,
    wanted: str | None,
    expected: int | None,
    storage: StorageFactory,
    informers: InformerFactory,
    supervisor: Supervisor,
) -> None:
    store = services_of(storage)
    if stored is not None:
        await create(store, service(stored))
    registration = AutoRegistration(store, informers)
    if wanted is not None:
        registration.add(service(wanted, 2000))
    await registration.start(supervisor)
    assert await outcome(store) == expected


@pytest.mark.parametrize(("managed", "comes_back"), [(ON_START, False), (ALWAYS, True)])
async def test_later_only_what_is_wanted_always_is_put_right(
    managed: str, comes_back: bool, storage: StorageFactory, informers: InformerFactory, supervisor: Supervisor
) -> None:
    store = services_of(storage)
    registration = AutoRegistration(store, informers)
    registration.add(service(managed, 2000))
    await registration.start(supervisor)
    await update(store, "", NAME, lambda obj: {**obj, "spec": {**obj["spec"], "groupPriorityMinimum": 3}})
    await registration.reconcile(NAME)
    assert await outcome(store) == (2000 if comes_back else 3)
    await remove(store, "", NAME)
    await registration.reconcile(NAME)
    assert await outcome(store) == (2000 if comes_back else None)


async def test_what_is_no_longer_wanted_goes(
    storage: StorageFactory, informers: InformerFactory, supervisor: Supervisor
) -> None:
    store = services_of(storage)
    registration = AutoRegistration(store, informers)
    registration.add(service(ALWAYS))
    await registration.start(supervisor)
    registration.discard(NAME)
    await registration.reconcile(NAME)
    assert await outcome(store) is None


async def test_what_somebody_else_adds_later_as_managed_at_start_is_left_alone(
    storage: StorageFactory, informers: InformerFactory, supervisor: Supervisor
) -> None:
    store = services_of(storage)
    registration = AutoRegistration(store, informers)
    await registration.start(supervisor)
    await create(store, service(ON_START))
    await registration.reconcile(NAME)
    assert await outcome(store) == 1000


async def test_local_services_are_available_and_completion_says_when(
    storage: StorageFactory, informers: InformerFactory, supervisor: Supervisor
) -> None:
    store = services_of(storage)
    registration = AutoRegistration(store, informers)
    registration.add(service(ON_START))
    assert registration.missing() == f"missing APIService: [{NAME}]"
    await registration.start(supervisor)
    stored = await existing(store, "", NAME)
    assert stored is not None
    condition = condition_of(stored, "Available") or {}
    assert (condition["status"], condition["reason"]) == ("True", "Local")
    async with asyncio.timeout(120):
        while registration.missing():
            await asyncio.sleep(0)


def test_every_version_but_the_aggregators_own_is_registered() -> None:
    versions = [version for version in table().values() if not version.legacy]
    names = [made["metadata"]["name"] for made in built_in_services(filter(lambda each: each.is_default, versions))]
    assert len(names) == 22
    assert "v1." in names
    assert "v2.autoscaling" in names
    assert not [name for name in names if "apiregistration" in name]


def test_versions_that_are_off_unless_asked_for_have_priorities_too() -> None:
    off = [version for version in table().values() if not version.is_default and not version.legacy]
    specs = {made["metadata"]["name"]: made["spec"] for made in built_in_services(off)}
    assert len(specs) == 13
    assert specs["v1beta1.coordination.k8s.io"] == {
        "group": "coordination.k8s.io",
        "version": "v1beta1",
        "groupPriorityMinimum": 16500,
        "versionPriority": 13,
    }
    internal, migration = table()[parse_group_version("internal.apiserver.k8s.io/v1alpha1")], "storagemigration.k8s.io"
    assert internal.priority > table()[parse_group_version(f"{migration}/v1")].priority
