"""The manifests of one plug-in that are in force.

An error at the start ends the start; an error later is logged and counted, and what was in force stays so.
"""

from __future__ import annotations

import asyncio
import logging
from pathlib import Path
from typing import Any, Final

from pilothouse.admission.configuration import ConfigurationError
from pilothouse.admission.environment import Environment
from pilothouse.admission.manifests.files import ManifestError, describe
from pilothouse.admission.manifests.loading import Loaded, load_manifests
from pilothouse.machinery import field_errors
from pilothouse.machinery.go_quote import quote

logger = logging.getLogger(__name__)
GATE: Final = "ManifestBasedAdmissionControlConfig"
_FIELD: Final = field_errors.Path("staticManifestsDir")


class ManifestSource:
    """Objects of some kinds from a folder."""

    def __init__(self, environment: Environment, plugin: str, folder: str, kinds: tuple[str, ...]) -> None:
        self._plugin, self._folder, self._kinds = plugin, folder, kinds
        self._metrics = environment.metrics.manifests
        self._hash = ""
        self.loaded = Loaded()
        """Another object after each change."""
        self._take(load_manifests(folder, kinds))

    async def reload(self) -> None:
        """Look at the files again."""
        try:
            found = await asyncio.to_thread(load_manifests, self._folder, self._kinds)
        except ManifestError as error:
            logger.error("%s: reloading manifests of %s: %s", self._plugin, self._folder, error)
            self._metrics.note(self._plugin, "failure")
            return
        if found.hash != self._hash:
            self._take(found)
            logger.info("%s: reloaded manifests of %s", self._plugin, self._folder)

    def _take(self, found: Loaded) -> None:
        self.loaded, self._hash = found, found.hash
        self._metrics.note(self._plugin, "success")
        self._metrics.in_force(self._plugin, found.hash)


def find_source(
    environment: Environment, plugin: str, configuration: Any, kinds: tuple[str, ...], title: str
) -> ManifestSource | None:
    """The source that a plug-in's configuration asks for, if it does. Raises ConfigurationError."""
    folder = (configuration or {}).get("staticManifestsDir") or ""
    if not folder:
        return None
    _check_folder(environment, folder)
    try:
        return ManifestSource(environment, plugin, folder, kinds)
    except ManifestError as error:
        why = f"failed to load static {title} manifests from {quote(folder)}: {error}"
        raise ConfigurationError(why) from None


def _check_folder(environment: Environment, folder: str) -> None:
    if not environment.enabled(GATE):
        why = f"staticManifestsDir requires the {GATE} feature gate to be enabled"
        raise ConfigurationError(str(field_errors.forbidden(_FIELD, why)))
    why = ""
    if not folder.startswith("/"):
        why = "must be an absolute file path"
    else:
        try:
            Path(folder).stat()
        except OSError as error:
            why = f"unable to read: {describe(error, 'stat')}"
        else:
            why = "" if Path(folder).is_dir() else "must be a directory"
    if why:
        raise ConfigurationError(str(field_errors.invalid(_FIELD, folder, why)))
