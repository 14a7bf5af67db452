"""The flag that routes outgoing connections."""

from __future__ import annotations

from collections.abc import Set
from dataclasses import dataclass
from pathlib import Path

from pilothouse.options.declaring import FlagGroup, flag
from pilothouse.options.kinds import STRING


@dataclass
class EgressSelectorOptions(FlagGroup):
    """The ``egress selector`` section."""

    section = "egress selector"

    config_file: str = flag("egress-selector-config-file", STRING, "", "File that says how other servers are reached.")

    def validate(self, given: Set[str]) -> list[str]:
        """The file must exist."""
        if self.config_file and not Path(self.config_file).exists():
            return [f"egress-selector-config-file {self.config_file} does not exist"]
        return []
