"""From flags to the admission chain of the server."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pilothouse.admission.catalogue import load_catalogue
from pilothouse.admission.chain import Chain
from pilothouse.admission.environment import Environment
from pilothouse.authz.authorizer import Authorizer
from pilothouse.registry.storage import StorageFactory

if TYPE_CHECKING:
    from pilothouse.options import ServerOptions


def build_admission(options: ServerOptions, storage: StorageFactory, authorizer: Authorizer) -> Chain:
    """Make the plug-ins that the flags ask for."""
    flags = options.admission
    environment = Environment(
        storage,
        authorizer,
        not_ready_seconds=flags.default_not_ready_toleration_seconds,
        unreachable_seconds=flags.default_unreachable_toleration_seconds,
    )
    catalogue = load_catalogue()
    return Chain(catalogue.make(catalogue.select(flags.enable, flags.disable), environment, {}))
