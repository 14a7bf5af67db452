"""What custom resources need of the rest of the server, and who hears of their group versions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pilothouse.admission.environment import Environment
from pilothouse.admission.webhooks.services import ServiceResolver
from pilothouse.aggregator.registration import ALWAYS, AutoRegistration, api_service
from pilothouse.endpoints.installed import InstalledVersion
from pilothouse.machinery.gvk import GroupVersion, GroupVersionKind, GroupVersionResource
from pilothouse.openapi.registry import OpenApi
from pilothouse.registry.storage import StorageFactory

if TYPE_CHECKING:
    from pilothouse.apiextensions.serving.definition import ServedDefinition
    from pilothouse.apiextensions.serving.versions import CustomVersion
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


class CustomDefinitions:
    """Finds the definitions behind them, for admission that looks at other versions or takes params of such kinds."""

    def __init__(self) -> None:
        self._versions: dict[GroupVersion, InstalledVersion] = {}

    def version_changed(self, gv: GroupVersion, version: InstalledVersion | None) -> None:
        if version is None:
            self._versions.pop(gv, None)
        else:
            self._versions[gv] = version

    def of_kind(self, kind: GroupVersionKind) -> ServedDefinition | None:
        """The definition of a kind; None for one that is not served."""
        version = self._find(kind.group_version)
        if version is None:
            return None
        return next((each for each in version.established if each.names["kind"] == kind.kind), None)

    def of_resource(self, resource: GroupVersionResource) -> ServedDefinition | None:
        """The definition of a resource; None for one that is not served."""
        version = self._find(resource.group_version)
        return None if version is None else version.definitions.get(resource.resource)

    def _find(self, gv: GroupVersion) -> CustomVersion | None:
        from pilothouse.apiextensions.serving.versions import CustomVersion

        version = self._versions.get(gv)
        return version if isinstance(version, CustomVersion) else None
