"""Who hears of the group versions of custom resources: OpenAPI documents, and whoever looks for definitions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pilothouse.apiextensions.document_metrics import DocumentMetrics
from pilothouse.endpoints.installed import InstalledVersion
from pilothouse.machinery.gvk import GroupVersion, GroupVersionKind, GroupVersionResource
from pilothouse.openapi.registry import OpenApi

if TYPE_CHECKING:
    from pilothouse.apiextensions.serving.definition import ServedDefinition
    from pilothouse.apiextensions.serving.versions import CustomVersion


class CustomVersionDocuments:
    """Describes each of them in the OpenAPI documents."""

    def __init__(self, openapi: OpenApi) -> None:
        self._openapi = openapi
        self.metrics = DocumentMetrics()

    def version_changed(self, gv: GroupVersion, version: InstalledVersion | None) -> None:
        from pilothouse.apiextensions.openapi import CustomVersionSource
        from pilothouse.apiextensions.serving.versions import CustomVersion

        if isinstance(version, CustomVersion):
            self._openapi.set_group_version(gv, CustomVersionSource(gv, version.established))
            self.metrics.note(gv, ((each.crd["metadata"]["name"], each) for each in version.established))
        else:
            self._openapi.remove_group_version(gv)
            self.metrics.note(gv, ())


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
