"""Which drivers are simulated: all that nobody has registered with a ``CSIDriver``, for then a real one is at work."""

from __future__ import annotations

from typing import Final

from pilothouse.controllers.runtime.indexer import Lister
from pilothouse.machinery.objects import Object

OWN_DRIVER: Final = "simulation.pilothouse.dev"


def is_simulated(driver: str, registered: Lister) -> bool:
    """Whether to do the work of a driver."""
    return bool(driver) and registered.get("", driver) is None


def driver_of(volume: Object) -> str:
    """The driver of a volume; empty for other kinds of volumes."""
    return (volume["spec"].get("csi") or {}).get("driver") or ""
