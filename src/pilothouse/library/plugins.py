"""The author's admission plug-ins, and the stored objects they may look at."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from pilothouse.admission.catalogue import load_catalogue
from pilothouse.admission.chain import AdmissionChain
from pilothouse.admission.configuration import load_sections
from pilothouse.admission.environment import Environment
from pilothouse.admission.objects import Objects
from pilothouse.admission.plugin import Plugin
from pilothouse.library.main_server import Main
from pilothouse.library.mirror import MirroredObjects
from pilothouse.library.options import PluginOptions
from pilothouse.machinery.go_quote import quote
from pilothouse.registry.store.store import Store

GENERIC_PLUGINS: Final = (
    "NamespaceLifecycle",
    "MutatingAdmissionPolicy",
    "MutatingAdmissionWebhook",
    "ValidatingAdmissionPolicy",
    "ValidatingAdmissionWebhook",
)
"""What every server behind a main one runs first, as Kubernetes' generic API server does."""


@dataclass(slots=True, kw_only=True)
class LibraryEnvironment(Environment):
    """What plug-ins are given: objects of the server's own kinds, and the main API server, if there is one."""

    stores: Mapping[tuple[str, str, str], Store]
    main: Main | None = None

    def objects(self, group: str, version: str, name: str) -> Objects:
        """The objects of one of the server's own resources, as a version has them, or of one of the main server."""
        found = self._objects.get((group, f"{version}/{name}"))
        if found is None:
            found = self._objects[group, f"{version}/{name}"] = self._make(group, version, name)
        return found

    def late_objects(self, group: str, version: str, name: str) -> Objects:
        """The same: what is of the main server is loaded late anyway, and what is of this one it serves."""
        return self.objects(group, version, name)

    def _make(self, group: str, version: str, name: str) -> Objects:
        own = self.stores.get((group, version, name))
        if own is not None or self.main is None:
            return Objects(self.stores[group, version, name])
        store = self.storage.store(group, version, name)
        return MirroredObjects(store, self.main, store.resource)

    def own_objects(self) -> tuple[Objects, ...]:
        """Those that are here before the first request, whatever becomes of the main server."""
        return tuple(each for each in self.all_objects() if not isinstance(each, MirroredObjects))


def generic_plugins() -> list[type[Plugin]]:
    """The first plug-ins of a server behind a main one."""
    loaders = load_catalogue().loaders
    return [loaders[name]() for name in GENERIC_PLUGINS]


def select_plugins(plugins: Sequence[type[Plugin]], flags: PluginOptions) -> list[type[Plugin]]:
    """Those that run. Raises ``ValueError`` for a name that nobody has."""
    known = {*GENERIC_PLUGINS, *(each.name for each in plugins)}
    for title, names in (("enable", flags.enable), ("disable", flags.disable)):
        for name in names:
            if name not in known:
                raise ValueError(f"{title}-admission-plugins plugin {quote(name)} is unknown")
    return [each for each in plugins if each.name in flags.enable or each.name not in flags.disable]


def make_admission(
    plugins: Sequence[type[Plugin]], environment: LibraryEnvironment, flags: PluginOptions
) -> AdmissionChain:
    """The chain, in the order of the declaration, of those that run. Raises ``ValueError`` for what flags get wrong."""
    sections = load_sections(flags.config_file)
    made = [each(environment, sections.get(each.name)) for each in select_plugins(plugins, flags)]
    return AdmissionChain(made, environment.metrics, environment.own_objects())
