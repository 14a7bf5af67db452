"""All plug-ins by name, in the order they run, and how a user's own join ours.

Ours and a user's are found the same way: a module and a class in it. Modules are imported when their plug-in is
switched on. A user's plug-in comes from the entry point group ``pilothouse.admission_plugins`` of an installed package,
or from a module named on the command line, of which every subclass of ``Plugin`` with a name is taken. They run where
``OWN_PLACE`` says: after our plug-ins that complete objects, before policies, webhooks and quota see the result.
"""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from pilothouse.admission.builtin import DEFAULT_OFF, MODULES
from pilothouse.admission.configuration import ConfigurationError, InitializationError
from pilothouse.admission.environment import Environment
from pilothouse.admission.plugin import Plugin
from pilothouse.machinery.go_quote import quote
from pilothouse.machinery.lazy import imported

ENTRY_POINTS: Final = "pilothouse.admission_plugins"
OWN_PLACE: Final = "MutatingAdmissionPolicy"
_PACKAGE: Final = "pilothouse.admission.plugins"
Loader = Callable[[], type[Plugin]]


@dataclass(slots=True)
class Catalogue:
    """What can be switched on, in order."""

    loaders: dict[str, Loader]
    default_off: frozenset[str]

    def select(self, enable: Iterable[str], disable: Iterable[str]) -> list[str]:
        """The names of the plug-ins to run, in order."""
        on, off = set(enable), set(disable)
        return [name for name in self.loaders if name in on or (name not in self.default_off and name not in off)]

    def make(self, names: Iterable[str], environment: Environment, configuration: Mapping[str, Any]) -> list[Plugin]:
        """Make plug-ins."""
        return [self._make(name, environment, configuration.get(name)) for name in names]

    def _make(self, name: str, environment: Environment, section: Any) -> Plugin:
        try:
            return self.loaders[name]()(environment, section)
        except InitializationError as error:
            why = f"failed to initialize admission plugin {quote(name)}: {error}"
            raise ConfigurationError(f"failed to apply admission: {why}") from None
        except ConfigurationError as error:
            why = f"couldn't init admission plugin {quote(name)}: {error}"
            raise ConfigurationError(f"failed to apply admission: {why}") from None


def load_catalogue(modules: Iterable[str] = ()) -> Catalogue:
    """Our plug-ins and the user's."""
    own = find_own_plugins(modules)
    loaders: dict[str, Loader] = {}
    for name, module in MODULES.items():
        if name == OWN_PLACE:
            loaders.update((each, lambda found=found: found) for each, found in own.items())  # type: ignore[misc]
        loaders[name] = _loader(module, name)
    off = DEFAULT_OFF | {name for name, found in own.items() if not found.default_on}
    return Catalogue(loaders, frozenset(off))


def find_own_plugins(modules: Iterable[str] = ()) -> dict[str, type[Plugin]]:
    """The user's plug-ins by name; raises ConfigurationError for those that cannot be imported."""
    return {**_from_entry_points(), **_from_modules(modules)}


def _loader(module: str, name: str) -> Loader:
    def load() -> type[Plugin]:
        found: type[Plugin] = imported(f"{_PACKAGE}.{module}.{name}")
        return found

    return load


def _from_modules(modules: Iterable[str]) -> dict[str, type[Plugin]]:
    found: dict[str, type[Plugin]] = {}
    for name in modules:
        try:
            members = vars(importlib.import_module(name)).values()
        except Exception as error:
            raise ConfigurationError(f"--admission-plugin-module: cannot import {name}: {error}") from error
        found.update({each.name: each for each in members if _is_plugin(each)})
    return found


def _from_entry_points() -> dict[str, type[Plugin]]:
    if not any(map(_names_plugins, sys.path)):
        return {}
    from importlib.metadata import entry_points

    found: dict[str, type[Plugin]] = {}
    for point in entry_points(group=ENTRY_POINTS):
        try:
            plugin = point.load()
        except Exception as error:
            raise ConfigurationError(f"cannot import the admission plug-in {point.value}: {error}") from error
        if _is_plugin(plugin):
            found[plugin.name] = plugin
    return found


def _names_plugins(folder: str) -> bool:
    """Whether a package of a folder may have plug-ins.

    Few installations have any, and what it takes to read all that packages say of themselves is more than half a
    megabyte in every server. Of archives nothing is known without.
    """
    try:
        names = os.listdir(folder or ".")
    except NotADirectoryError:
        return True
    except OSError:
        return False
    infos = (name for name in names if name.endswith((".dist-info", ".egg-info")) or name == "EGG-INFO")
    return any(_names_group(os.path.join(folder, name, "entry_points.txt")) for name in infos)


def _names_group(path: str) -> bool:
    try:
        with open(path, "rb") as file:
            return ENTRY_POINTS.encode() in file.read()
    except OSError:
        return False


def _is_plugin(value: Any) -> bool:
    return isinstance(value, type) and issubclass(value, Plugin) and bool(value.name)
