"""From flags to the admission chain of the server."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pilothouse.admission.catalogue import load_catalogue
from pilothouse.admission.chain import Chain
from pilothouse.admission.configuration import load_sections
from pilothouse.admission.environment import Environment
from pilothouse.admission.versions import ServedVersions
from pilothouse.authz.authorizer import Authorizer
from pilothouse.registry.storage import StorageFactory

if TYPE_CHECKING:
    from pilothouse.options import ServerOptions


def build_admission(
    options: ServerOptions,
    storage: StorageFactory,
    authorizer: Authorizer,
    served: ServedVersions,
) -> Chain:
    """Make the plug-ins that the flags ask for. Raises ``ConfigurationError`` for a faulty configuration file."""
    flags = options.admission
    environment = Environment(
        storage,
        authorizer,
        not_ready_seconds=flags.default_not_ready_toleration_seconds,
        unreachable_seconds=flags.default_unreachable_toleration_seconds,
        routes_services=options.control_plane.enable_aggregator_routing,
        served=served,
    )
    catalogue = load_catalogue(options.own.admission_plugin_modules)
    if flags.admission_control:
        wanted = [name for name in catalogue.loaders if name in flags.admission_control]
    else:
        wanted = catalogue.select(flags.enable, flags.disable)
    return Chain(catalogue.make(wanted, environment, load_sections(flags.config_file)), environment.metrics)
