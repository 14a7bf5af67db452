"""The author's admission plug-ins, and the stored objects they may look at."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pilothouse.admission.chain import AdmissionChain
from pilothouse.admission.configuration import load_sections
from pilothouse.admission.environment import Environment
from pilothouse.admission.objects import Objects
from pilothouse.admission.plugin import Plugin
from pilothouse.library.main_server import Main
from pilothouse.library.options import PluginOptions
from pilothouse.machinery.go_quote import quote
from pilothouse.registry.store.store import Store


@dataclass(slots=True, kw_only=True)
class LibraryEnvironment(Environment):
    """What plug-ins are given: objects of the server's own kinds, and the main API server, if there is one."""

    stores: Mapping[tuple[str, str, str], Store]
    main: Main | None = None

    def objects(self, group: str, version: str, name: str) -> Objects:
        """The stored objects of one of the server's own resources, as a version has them."""
        found = self._objects.get((group, f"{version}/{name}"))
        if found is None:
            found = self._objects[group, f"{version}/{name}"] = Objects(self.stores[group, version, name])
        return found


def select_plugins(plugins: Sequence[type[Plugin]], flags: PluginOptions) -> list[type[Plugin]]:
    """Those that run. Raises ``ValueError`` for a name that nobody has."""
    known = {each.name for each in plugins}
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
    return AdmissionChain(made, environment.metrics, environment.all_objects())
