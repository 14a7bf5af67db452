"""The APIServices of custom resources."""

from __future__ import annotations

from pilothouse.aggregator.registration import ALWAYS, AutoRegistration, api_service
from pilothouse.endpoints.installed import InstalledVersion
from pilothouse.machinery.gvk import GroupVersion


class CustomVersionServices:
    """Has an APIService kept for each group version of custom resources."""

    def __init__(self, registration: AutoRegistration) -> None:
        self._registration = registration

    def version_changed(self, gv: GroupVersion, version: InstalledVersion | None) -> None:
        if version is None:
            self._registration.discard(f"{gv.version}.{gv.group}")
        else:
            self._registration.add(api_service(gv.group, gv.version, version.version.priority, ALWAYS))
