"""An API server as its author writes it down, and what its command line does."""

from __future__ import annotations

import logging
import sys
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field

from pilothouse.admission.plugin import Plugin
from pilothouse.cli.logging import set_up_logging
from pilothouse.library.declarations import Group
from pilothouse.library.definitions import definition_of
from pilothouse.library.main_server import Main
from pilothouse.library.options import LibraryOptions
from pilothouse.library.provisioning import StartError, provisioned
from pilothouse.library.server import LibraryServer
from pilothouse.options.completion import host_address
from pilothouse.options.parsing import UsageError, parse_into
from pilothouse.process.hosting import HostingProcess
from pilothouse.process.run import serve_process

logger = logging.getLogger(__name__)
Work = Callable[[Main | None], Awaitable[None]]


@dataclass(frozen=True, kw_only=True)
class APIServer:
    """A server of one's own. What is wrong with its declarations is told when it is made (``ValueError``)."""

    name: str
    groups: Sequence[Group]
    plugins: Sequence[type[Plugin]] = ()
    """Admission plug-ins, in the order they run. Behind another server NamespaceLifecycle, admission policies and
    webhooks run before them, as the objects of that server say; all are on unless ``--disable-admission-plugins`` says
    otherwise."""
    hooks: Mapping[str, Work] = field(default_factory=dict)
    """Post-start hooks by name: run once the server listens, each with a health check of its own. They are given the
    main API server, or None where there is none."""

    def __post_init__(self) -> None:
        for group in self.groups:
            for kind in group.kinds:
                definition_of(group.name, kind)

    def run(self, argv: Sequence[str] | None = None) -> int:
        """Run the command line until the server is told to stop; the answer is the exit code."""
        words = list(sys.argv[1:] if argv is None else argv)
        try:
            options = self.options(words)
        except UsageError as refusal:
            print(f"Error: {refusal}", file=sys.stderr)
            return 1
        if options.global_flags.help:
            self._print_usage()
            return 0
        set_up_logging(options.logs)
        problems = options.errors()
        for problem in problems:
            print(f"Error: {problem}", file=sys.stderr)
        if problems:
            return 1
        for notice in options.notices:
            logger.warning(notice)
        try:
            with provisioned(options):
                return serve_process(options, lambda: self.process(options))
        except StartError as refusal:
            print(f"Error: {refusal}", file=sys.stderr)
            return 1

    def options(self, argv: Sequence[str]) -> LibraryOptions:
        """The flags of a command line. Raises ``UsageError``."""
        options = LibraryOptions(program=self.name)
        options.own.data_dir = f"./{self.name}-data"
        options.etcd.etcd_prefix = f"/registry/{self.groups[0].name}"
        options.generic.external_hostname = host_address()
        return parse_into(options, argv, self.name)

    def process(self, options: LibraryOptions) -> HostingProcess[LibraryServer]:
        """The process around the server, to be made on an event loop; nothing is opened yet."""
        endpoint = options.endpoint("")
        main = None if endpoint is None else Main(endpoint, agent=self.name)
        return HostingProcess(options, lambda shared: LibraryServer(self, options, main, shared))

    def _print_usage(self) -> None:
        from pilothouse.options.usage import flag_usage  # only this needs it

        flags = flag_usage(120, LibraryOptions)
        print(f"{self.name} is an API server.\n\nUsage:\n  {self.name} [flags]\n\n{flags}", end="")
