"""Flags that only Pilothouse has: where the embedded store lives and where the administrator's kubeconfig goes."""

from __future__ import annotations

from collections.abc import Set
from dataclasses import dataclass

from pilothouse.options.declaring import FlagGroup, flag
from pilothouse.options.kinds import STRING


@dataclass
class OwnOptions(FlagGroup):
    """The ``Pilothouse`` section."""

    section = "Pilothouse"

    data_dir: str = flag(
        "data-dir",
        STRING,
        "./pilothouse-data",
        "Folder of the embedded store and of the certificates made at the first start.",
        effective=True,
    )
    write_kubeconfig: str = flag(
        "write-kubeconfig",
        STRING,
        "",
        "File to write the administrator's kubeconfig to. Default: admin.kubeconfig in --data-dir.",
        effective=True,
    )

    def validate(self, given: Set[str]) -> list[str]:
        """There must be a folder to keep data in."""
        return [] if self.data_dir else ["--data-dir must not be empty"]
