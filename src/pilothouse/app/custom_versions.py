"""What custom resources need of the rest of the server, and who hears of their group versions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pilothouse.admission.environment import Environment
from pilothouse.admission.webhooks.services import ServiceResolver
from pilothouse.aggregator.registration import ALWAYS, AutoRegistration, api_service
from pilothouse.endpoints.installed import InstalledVersion
from pilothouse.machinery.gvk import GroupVersion, GroupVersionKind
from pilothouse.openapi.registry import OpenApi
from pilothouse.registry.storage import StorageFactory
from pilothouse.registry.store.store import Store

if TYPE_CHECKING:
    from pilothouse.apiextensions.serving.webhook import ConversionWebhooks


def conversion_webhooks(storage: StorageFactory, *, by_endpoints: bool) -> ConversionWebhooks:
    """Conversion webhooks find services the way admission webhooks do."""
    from pilothouse.apiextensions.serving.webhook import ConversionWebhooks

    resolver = ServiceResolver(Environment(storage), by_endpoints=by_endpoints)
    return ConversionWebhooks(resolver.dial)


class CustomVersionServices:
    """Has an APIService kept for each of them."""

    def __init__(self, registration: AutoRegistration) -> None:
        self._registration = registration

    def version_changed(self, gv: GroupVersion, version: InstalledVersion | None) -> None:
        if version is None:
            self._registration.discard(f"{gv.version}.{gv.group}")
        elif version.version.priority is not None:
            self._registration.add(api_service(gv.group, gv.version, version.version.priority, ALWAYS))


class CustomVersionDocuments:
    """Describes each of them in the OpenAPI documents."""

    def __init__(self, openapi: OpenApi) -> None:
        self._openapi = openapi

    def version_changed(self, gv: GroupVersion, version: InstalledVersion | None) -> None:
        from pilothouse.apiextensions.openapi import CustomVersionSource
        from pilothouse.apiextensions.serving.versions import CustomVersion

        if isinstance(version, CustomVersion):
            self._openapi.set_group_version(gv, CustomVersionSource(gv, version.established))
        else:
            self._openapi.remove_group_version(gv)


class CustomVersionStores:
    """Finds the stores of their kinds, for admission policies that take params of such kinds."""

    def __init__(self) -> None:
        self._versions: dict[GroupVersion, InstalledVersion] = {}

    def version_changed(self, gv: GroupVersion, version: InstalledVersion | None) -> None:
        if version is None:
            self._versions.pop(gv, None)
        else:
            self._versions[gv] = version

    def find(self, kind: GroupVersionKind) -> Store | None:
        """The store of a kind; None for one that is not served."""
        version = self._versions.get(kind.group_version)
        if version is None:
            return None
        from pilothouse.apiextensions.serving.versions import CustomVersion

        if not isinstance(version, CustomVersion):
            return None
        served = next((each for each in version.established if each.names["kind"] == kind.kind), None)
        scope = served.scope(kind.version) if served is not None else None
        return scope.store if scope is not None else None
