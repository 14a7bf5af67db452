"""A server written with the library inside the process of a test, alone or behind another.

    with InProcessServer() as main, InProcessLibraryServer(SERVER, main=main) as server:
        server.register(main)

It is started and stopped as ``InProcessServer`` is. Alone, ``call`` speaks as the administrator; behind another server
clients go through that one.
"""

from __future__ import annotations

import asyncio
import tempfile
import time
from pathlib import Path
from typing import Any

from pilothouse.library import APIServer
from pilothouse.library.provisioning import provisioned
from pilothouse.process.hosting import HostingProcess
from pilothouse.testing.in_process import InProcessServer

_AVAILABLE_SECONDS = 120.0


class InProcessLibraryServer(InProcessServer):
    """A server for the time of a ``with`` or ``async with`` block. ``flags`` are those of its command line."""

    def __init__(
        self, declared: APIServer, *flags: str, main: InProcessServer | None = None, data_dir: str | Path | None = None
    ) -> None:
        delegating = () if main is None else (f"--kubeconfig={main.kubeconfig}",)
        super().__init__(*flags, *delegating, data_dir=data_dir)
        self._declared = declared
        self._folder, self._port = Path(), 0

    @property
    def port(self) -> int:
        return self._port

    @property
    def url(self) -> str:
        """Where the server is reached."""
        return f"https://{self._host}:{self._port}"

    @property
    def _host(self) -> str:
        return "127.0.0.1"

    @property
    def data_dir(self) -> Path:
        """The folder with the store and the certificates."""
        return self._folder

    @property
    def kubeconfig(self) -> Path:
        """A kubeconfig file of the administrator, where the server stands alone."""
        return self._folder / "admin.kubeconfig"

    async def _make(self, port: int) -> HostingProcess[Any]:
        """The process, not yet started."""
        self._folder, self._port = await asyncio.to_thread(self._choose_folder), port
        words = (f"--data-dir={self._folder}", f"--bind-address={self._host}", f"--secure-port={port}")
        options = self._declared.options([*words, "--permit-port-sharing", *self._flags])
        if errs := options.errors():
            raise ValueError("; ".join(errs))
        await asyncio.to_thread(self._closing.enter_context, provisioned(options))
        return self._declared.process(options)

    def _choose_folder(self) -> Path:
        folder = self._given or self._closing.enter_context(tempfile.TemporaryDirectory(prefix="pilothouse-"))
        return Path(folder).absolute()

    def register(self, main: InProcessServer) -> None:
        """Announce all group versions to the main server, and wait until it passes requests on. Blocks."""
        name = self._declared.name
        external = {"type": "ExternalName", "externalName": "localhost", "ports": [{"port": self.port}]}
        service = {"metadata": {"name": name}, "spec": external}
        assert main.call("POST", "/api/v1/namespaces/default/services", service).status == 201
        pairs = {
            (group.name, version.name)
            for group in self._declared.groups
            for kind in group.kinds
            for version in kind.versions
        }
        for group, version in sorted(pairs):
            spec = {
                "group": group,
                "version": version,
                "groupPriorityMinimum": 1000,
                "versionPriority": 20,
                "insecureSkipTLSVerify": True,
                "service": {"namespace": "default", "name": name, "port": self.port},
            }
            document = {"metadata": {"name": f"{version}.{group}"}, "spec": spec}
            assert main.call("POST", "/apis/apiregistration.k8s.io/v1/apiservices", document).status == 201
            _wait_available(main, f"{version}.{group}")


def _wait_available(main: InProcessServer, name: str) -> None:
    deadline = time.monotonic() + _AVAILABLE_SECONDS
    while True:
        found = main.call("GET", f"/apis/apiregistration.k8s.io/v1/apiservices/{name}").json
        conditions = (found.get("status") or {}).get("conditions") or ()
        if any(each["type"] == "Available" and each["status"] == "True" for each in conditions):
            return
        if time.monotonic() > deadline:
            raise TimeoutError(f"{name} is not available: {conditions}")
        time.sleep(0.02)
