"""The flag that sends traces somewhere."""

from __future__ import annotations

from collections.abc import Set
from dataclasses import dataclass
from pathlib import Path

from pilothouse.options.declaring import FlagGroup, flag
from pilothouse.options.kinds import STRING


@dataclass
class TracingOptions(FlagGroup):
    """The ``traces`` section."""

    section = "traces"

    config_file: str = flag("tracing-config-file", STRING, "", "File that says where traces are sent.")

    def validate(self, given: Set[str]) -> list[str]:
        """The file must exist."""
        if self.config_file and not Path(self.config_file).exists():
            return [f"tracing-config-file {self.config_file} does not exist"]
        return []
