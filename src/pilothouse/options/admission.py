"""Flags that choose and configure admission plug-ins."""

from __future__ import annotations

from collections.abc import Sequence, Set
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pilothouse.admission.builtin import MODULES
from pilothouse.machinery.go_quote import quote
from pilothouse.options.declaring import FlagGroup, flag
from pilothouse.options.kinds import INT, STRING, STRINGS

if TYPE_CHECKING:
    from pilothouse.admission.chain import AdmissionChain
    from pilothouse.admission.versions import ServedVersions
    from pilothouse.authz.authorizer import Authorizer
    from pilothouse.net.dialing.egress import Egress
    from pilothouse.registry.storage import StorageFactory


@dataclass
class AdmissionOptions(FlagGroup):
    """The ``admission`` section."""

    section = "admission"

    admission_control: tuple[str, ...] = flag(
        "admission-control",
        STRINGS,
        (),
        "All plug-ins to run.",
        deprecated="Use --enable-admission-plugins or --disable-admission-plugins instead. "
        "Will be removed in a future version.",
    )
    config_file: str = flag("admission-control-config-file", STRING, "", "File that configures the plug-ins.")
    default_not_ready_toleration_seconds: int = flag(
        "default-not-ready-toleration-seconds",
        INT,
        300,
        "Seconds of the toleration for notReady that pods without one get.",
    )
    default_unreachable_toleration_seconds: int = flag(
        "default-unreachable-toleration-seconds",
        INT,
        300,
        "Seconds of the toleration for unreachable that pods without one get.",
    )
    disable: tuple[str, ...] = flag(
        "disable-admission-plugins", STRINGS, (), "Plug-ins to switch off that are on by default."
    )
    enable: tuple[str, ...] = flag(
        "enable-admission-plugins",
        STRINGS,
        (),
        f"Plug-ins to switch on beside the default ones: {', '.join(sorted(MODULES))}.",
    )

    own_plugins: frozenset[str] = frozenset()
    """The names of plug-ins that the user brings along."""

    def build(
        self,
        storage: StorageFactory,
        authorizer: Authorizer,
        served: ServedVersions,
        modules: Sequence[str],
        *,
        routes_services: bool,
        egress: Egress,
    ) -> AdmissionChain:
        """The plug-ins, those of further ``modules`` too. Raises ConfigurationError for an invalid file."""
        from pilothouse.admission.catalogue import load_catalogue
        from pilothouse.admission.chain import AdmissionChain
        from pilothouse.admission.configuration import load_sections
        from pilothouse.admission.environment import Environment

        environment = Environment(
            storage,
            authorizer,
            not_ready_seconds=self.default_not_ready_toleration_seconds,
            unreachable_seconds=self.default_unreachable_toleration_seconds,
            routes_services=routes_services,
            egress=egress,
            served=served,
        )
        catalogue = load_catalogue(modules)
        if self.admission_control:
            wanted = [name for name in catalogue.loaders if name in self.admission_control]
        else:
            wanted = catalogue.select(self.enable, self.disable)
        plugins = catalogue.make(wanted, environment, load_sections(self.config_file))
        return AdmissionChain(plugins, environment.metrics, environment.all_objects())

    def validate(self, given: Set[str]) -> list[str]:
        """Every name must be known, and none both on and off."""
        known = self.own_plugins.union(MODULES)
        errors = []
        newer = {"enable-admission-plugins", "disable-admission-plugins"} & given
        if "admission-control" in given and newer:
            errors.append(
                "admission-control and enable-admission-plugins/disable-admission-plugins flags are mutually exclusive"
            )
        for title, names in (
            ("admission-control", self.admission_control),
            ("enable-admission-plugins", self.enable),
            ("disable-admission-plugins", self.disable),
        ):
            errors += [f"{title} plugin {quote(name)} is unknown" for name in names if name not in known]
        both = sorted(set(self.enable) & set(self.disable))
        if both:
            errors.append(f"[{' '.join(both)}] in enable-admission-plugins and disable-admission-plugins overlapped")
        return errors
