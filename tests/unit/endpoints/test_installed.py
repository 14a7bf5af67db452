"""Installed versions make the endpoints of a resource when it is first asked for."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from pilothouse.apis.resources import Resource, table
from pilothouse.endpoints.installed import InstalledVersion
from pilothouse.endpoints.installer import install_version
from pilothouse.endpoints.request import APIRequest
from pilothouse.machinery.gvk import GroupVersion
from pilothouse.registry.storage import StorageFactory
from pilothouse.registry.store.store import Store

CORE = GroupVersion("", "v1")


@pytest.fixture
def stored(storage: StorageFactory) -> tuple[InstalledVersion, list[str]]:
    """The core version, and the names of resources whose store was asked for."""
    asked: list[str] = []

    def store_for(resource: Resource) -> Store:
        asked.append(resource.name)
        return storage.store_for(resource)

    return install_version(table()[CORE], store_for), asked


async def test_nothing_is_made_before_it_is_asked_for(
    stored: tuple[InstalledVersion, list[str]], ask: Callable[..., APIRequest]
) -> None:
    installed, asked = stored
    assert asked == []
    gets = [ask("GET", "/api/v1/namespaces/default/configmaps/none") for _ in range(3)]
    answers = await asyncio.gather(*map(installed.dispatch, gets))
    assert [answer.status for answer in answers] == [404] * 3
    assert asked == ["configmaps"]
    assert (await installed.dispatch(ask("GET", "/api/v1/nothings/a"))).status == 404
    assert asked == ["configmaps"]


def test_subresources_come_with_their_resource(stored: tuple[InstalledVersion, list[str]]) -> None:
    installed, asked = stored
    assert installed.scope("pods", "status") is not None
    assert installed.scope("pods", "none") is None
    assert asked[0] == "pods"
    assert {resource for resource, _ in installed.all_scopes()} == {each.name for each in table()[CORE].resources}
