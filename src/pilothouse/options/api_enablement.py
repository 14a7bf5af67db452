"""The flag that switches API versions and resources on and off."""

from __future__ import annotations

from collections.abc import Set
from dataclasses import dataclass

from pilothouse.options.declaring import FlagGroup, flag
from pilothouse.options.kinds import MAP_STRING_STRING

_MATCHERS = ("api/all", "api/ga", "api/beta", "api/alpha")
_FLOW_CONTROL = ("flowcontrol.apiserver.k8s.io/v1", "api/ga", "api/all")


@dataclass
class APIEnablementOptions(FlagGroup):
    """The ``API enablement`` section. Whether a named group exists is checked by the server, which knows the groups."""

    section = "API enablement"

    runtime_config: dict[str, str] = flag(
        "runtime-config",
        MAP_STRING_STRING,
        {},
        "APIs to switch: v1=true|false, group/version=..., "
        "group/version/resource=..., api/all, api/ga, api/beta or api/alpha=...",
        effective=True,
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
        return []

    def normalise(self) -> None:
        """Bring the spellings of the core group to ``/v1`` and drop the key that no longer means anything."""
        for key, value in list(self.runtime_config.items()):
            if key in ("v1", "api/v1") or key.startswith(("v1/", "api/v1/")):
                del self.runtime_config[key]
                self.runtime_config["/v1"] = value
            elif key == "api/legacy":
                del self.runtime_config[key]

    def flow_control_conflict(self) -> list[str]:
        """Priority and fairness needs its own API."""
        for key in _FLOW_CONTROL:
            if self.runtime_config.get(key) == "false":
                return [f"--runtime-config={key}=false conflicts with --enable-priority-and-fairness=true"]
            if self.runtime_config.get(key) == "true":
                return []
        return []
