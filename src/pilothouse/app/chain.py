"""The chain of three servers: aggregator → built-in API → CRD extensions → not found."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from pilothouse.aggregator.server import build_aggregator
from pilothouse.apiextensions.custom_resources import CustomResources
from pilothouse.apiextensions.server import build_extensions
from pilothouse.apis.gated import is_served
from pilothouse.apis.gates import default_gates
from pilothouse.apis.resources import Version, table
from pilothouse.controlplane.server import build_control_plane
from pilothouse.endpoints.admission import Admission
from pilothouse.endpoints.installed import InstalledVersion
from pilothouse.endpoints.installer import OwnVerbs, install_version
from pilothouse.machinery.gvk import GroupVersion
from pilothouse.registry.storage import StorageFactory
from pilothouse.server.discovery import ChainDiscovery
from pilothouse.server.generic import GenericAPIServer

_EXTENSIONS = "apiextensions.k8s.io"
_DEFINITIONS = "customresourcedefinitions"
_AGGREGATION = "apiregistration.k8s.io"


@dataclass(slots=True)
class Chain:
    """The servers, first to last, and what they serve together."""

    aggregator: GenericAPIServer
    control_plane: GenericAPIServer
    extensions: GenericAPIServer
    custom: CustomResources
    discovery: ChainDiscovery


def build_chain(
    storage: StorageFactory,
    enabled: list[Version],
    address: str,
    admission: Admission | None = None,
    own_verbs: OwnVerbs | None = None,
    guards: Mapping[str, Admission] | None = None,
) -> Chain:
    """Make the servers from the inside out, each delegating to the one before it.

    ``guards`` take the place of ``admission`` for single groups.
    """
    guards = guards or {}
    extensions = build_extensions(_own(enabled, _EXTENSIONS, storage, admission))
    built_in = [v for v in enabled if v.group not in (_EXTENSIONS, _AGGREGATION)]
    served = frozenset(v.group_version for v in enabled)
    installed = [
        install_version(v, storage.store_for, own_verbs, guards.get(v.group, admission), served) for v in built_in
    ]
    control_plane = build_control_plane(installed, extensions)
    aggregator = build_aggregator(_own(enabled, _AGGREGATION, storage, admission), control_plane)
    discovery = ChainDiscovery(aggregator, lambda: address)
    discovery.install()
    custom = CustomResources(extensions, storage.store(_EXTENSIONS, "v1", _DEFINITIONS), storage, admission=admission)
    custom.tell(discovery)
    return Chain(aggregator, control_plane, extensions, custom, discovery)


def _own(
    enabled: list[Version], group: str, storage: StorageFactory, admission: Admission | None
) -> list[InstalledVersion]:
    own = (version for version in enabled if version.group == group)
    return [install_version(version, storage.store_for, admission=admission) for version in own]


def enabled_versions(runtime_config: dict[str, str], gates: frozenset[str] | None = None) -> list[Version]:
    """The versions to serve: those on by default, as changed by ``--runtime-config``.

    Keys are ``api/all``, ``api/ga``, ``api/beta``, ``api/alpha``, or a group version; the more specific one wins.
    Resources of features that are off are left out, and versions in which none is left.
    """
    gates = default_gates() if gates is None else gates
    enabled = [v for gv, v in table().items() if _is_enabled(gv, v.priority is not None, runtime_config)]
    served = [_gated(version, gates) for version in enabled]
    return [version for version in served if version.resources]


def _gated(version: Version, gates: frozenset[str]) -> Version:
    rows = [row for row in version.resources if is_served(row.group, row.name, gates)]
    return version if len(rows) == len(version.resources) else replace(version, resources=rows)


def _is_enabled(gv: GroupVersion, default: bool, runtime_config: dict[str, str]) -> bool:
    if gv.group == _AGGREGATION:
        return True
    stage = "alpha" if "alpha" in gv.version else "beta" if "beta" in gv.version else "ga"
    for key in (str(gv), f"api/{stage}", "api/all"):
        value = runtime_config.get(key)
        if value is not None:
            return value in ("", "true")
    return default
