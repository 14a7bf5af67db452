"""Flags that only Pilothouse has: where data and kubeconfig go, and plug-ins of one's own."""

from __future__ import annotations

from collections.abc import Set
from dataclasses import dataclass
from typing import Final

from pilothouse.net.processors import processors
from pilothouse.options.declaring import FlagGroup, flag
from pilothouse.options.kinds import BOOL, DURATION, INT, STRING, STRINGS

_MOST_BY_ITSELF: Final = 4
_MOST_WORKERS: Final = 64


@dataclass
class StateOptions(FlagGroup):
    """Where a server keeps what it has, and how often it looks at files of others: of every server."""

    section = "Pilothouse"

    data_dir: str = flag(
        "data-dir",
        STRING,
        "./pilothouse-data",
        "Folder of the embedded store and of the certificates made at the first start.",
    )
    file_check_interval: float = flag(
        "file-check-interval",
        DURATION,
        10.0,
        "How often files named by flags are looked at for changes: certificates, tokens, keys, configurations.",
    )

    hostname_override: str = flag(
        "hostname-override",
        STRING,
        "",
        "Name of this server's host, of which its identity among several servers is made. Default: the host's own.",
    )

    def validate(self, given: Set[str]) -> list[str]:
        """There must be a folder to keep data in, and time between two looks at a file."""
        errs = [] if self.data_dir else ["--data-dir must not be empty"]
        if self.file_check_interval <= 0:
            errs.append("--file-check-interval must be greater than 0")
        return errs


@dataclass
class OwnOptions(StateOptions):
    """The ``Pilothouse`` section of the main server."""

    write_kubeconfig: str = flag(
        "write-kubeconfig",
        STRING,
        "",
        "File to write the administrator's kubeconfig to. Default: admin.kubeconfig in --data-dir.",
    )
    admission_plugin_modules: tuple[str, ...] = flag(
        "admission-plugin-module",
        STRINGS,
        (),
        "Python modules with admission plug-ins of your own; may be given several times.",
    )
    check_policy_types: bool = flag(
        "check-policy-types",
        BOOL,
        False,
        "Report in the status of validating admission policies what does not fit the types they match; "
        "elsewhere the controller manager does.",
    )
    workers: int = flag(
        "workers",
        INT,
        0,
        "Processes that serve on the port, of which the first keeps the store and runs the controllers; 0 decides by "
        "the processors that the server may use: one process with up to three of them, half as many with more, at "
        f"most {_MOST_BY_ITSELF}.",
    )

    def worker_count(self) -> int:
        """How many processes serve."""
        return self.workers or max(1, min(processors() // 2, _MOST_BY_ITSELF))

    def validate(self, given: Set[str]) -> list[str]:
        """As every server; and no more processes than anybody could mean."""
        errs = super().validate(given)
        if not 0 <= self.workers <= _MOST_WORKERS:
            errs.append(f"--workers must be between 0 and {_MOST_WORKERS}")
        return errs
