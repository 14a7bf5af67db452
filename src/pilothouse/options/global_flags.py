"""Flags that print something and end the program."""

from __future__ import annotations

from dataclasses import dataclass

from pilothouse.options.declaring import FlagGroup, flag
from pilothouse.options.kinds import BOOL, VERSION


@dataclass
class GlobalOptions(FlagGroup):
    """The ``global`` section."""

    section = "global"

    help: bool = flag("help", BOOL, False, "Print this help.", short="h")
    version: str = flag("version", VERSION, "false", "Print the version; raw prints it in full.")
