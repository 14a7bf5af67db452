"""The flag that switches API versions and resources on and off."""

from __future__ import annotations

from collections.abc import Set
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from pilothouse.options.declaring import FlagGroup, flag
from pilothouse.options.kinds import MAP_STRING_STRING

if TYPE_CHECKING:
    from pilothouse.apis.emulation import Emulation
    from pilothouse.apis.resources import Version

_MATCHERS = ("api/all", "api/ga", "api/beta", "api/alpha", "api/legacy")
_FLOW_CONTROL = ("flowcontrol.apiserver.k8s.io/v1", "api/ga", "api/all")
_NOT_SERVED: Final = frozenset(("admission.k8s.io", "imagepolicy.k8s.io", "extensions"))
"""Groups that kube-apiserver has types of and no resources."""


@dataclass
class APIEnablementOptions(FlagGroup):
    """The ``API enablement`` section. Versions that do not exist are refused."""

    section = "API enablement"

    runtime_config: dict[str, str] = flag(
        "runtime-config",
        MAP_STRING_STRING,
        {},
        "APIs to switch: v1=true|false, group/version=..., "
        "group/version/resource=..., api/all, api/ga, api/beta or api/alpha=...; "
        "api/legacy=true serves the versions that this release has no more.",
    )

    def validate(self, given: Set[str]) -> list[str]:
        """The form of the keys, and the values of the keys that name many versions."""
        if self.runtime_config == {"api/all": "false"}:
            return ["invalid runtime-config with only api/all=false"]
        for key, value in self.runtime_config.items():
            if key in _MATCHERS:
                if value not in ("true", "false"):
                    return [f"invalid value {key}={value}"]
            elif len(key.split("/")) not in (2, 3):
                return [f"runtime-config invalid key {key}"]
        return self._unknown() if self.runtime_config else []

    def _unknown(self) -> list[str]:
        """Groups that do not exist, or else the first version that does not.

        Alpha and beta versions of a known group pass: kube-apiserver still has types of many that it serves no longer.
        """
        from pilothouse.apis.resources import table  # the whole catalogue, which most command lines do not need

        named = sorted({"/".join(key.split("/")[:2]) for key in self.runtime_config if key not in _MATCHERS})
        groups = {version.group for version in table()} | _NOT_SERVED
        unknown = [each for each in named if each.partition("/")[0] not in groups]
        if unknown:
            return [f"unknown api groups {','.join(unknown)}"]
        known = {f"{version.group}/{version.version}" for version in table()}
        for each in named:
            group, _, version = each.partition("/")
            if each not in known and group not in _NOT_SERVED and not ("alpha" in version or "beta" in version):
                return [f"group version {each.removeprefix('/')} that has not been registered"]
        return []

    def enabled_versions(self, gates: frozenset[str], emulation: Emulation) -> list[Version]:
        """The versions to serve, with the resources whose features are on and that the emulated version has."""
        from pilothouse.apis.enabled_versions import enabled_versions

        return enabled_versions(self.runtime_config, gates, emulation)

    def too_new_errors(self, emulation: Emulation) -> list[str]:
        """What is switched on by name although the emulated version does not have it."""
        if not emulation.is_older or emulation.switches_newer or not self.runtime_config:
            return []
        from pilothouse.apis.enabled_versions import too_new

        return too_new(self.runtime_config, emulation)

    def normalise(self) -> None:
        """Bring the spellings of the core group to ``/v1``."""
        for key, value in list(self.runtime_config.items()):
            if key in ("v1", "api/v1") or key.startswith(("v1/", "api/v1/")):
                del self.runtime_config[key]
                self.runtime_config["/v1"] = value

    def flow_control_conflict(self) -> list[str]:
        """Priority and fairness needs its own API."""
        for key in _FLOW_CONTROL:
            if self.runtime_config.get(key) == "false":
                return [f"--runtime-config={key}=false conflicts with --enable-priority-and-fairness=true"]
            if self.runtime_config.get(key) == "true":
                return []
        return []
