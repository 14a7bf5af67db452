"""Routes every API server has beside its resources: version, metrics."""

from __future__ import annotations

import platform
from collections.abc import Iterable
from functools import cache, partial
from typing import Any, Final

from pilothouse import KUBERNETES_VERSION, __version__
from pilothouse.apis.emulation import PRESENT, Emulation
from pilothouse.endpoints.negotiation import JSON
from pilothouse.machinery.metrics import Instrument
from pilothouse.server.generic import GenericAPIServer
from pilothouse.server.metrics_routes import Processes, install_metrics
from pilothouse.server.route_handlers import json_route, only_content, only_get, only_json

NATIVE_HISTOGRAMS: Final = "NativeHistograms"


@cache
def version_info(emulation: Emulation = PRESENT) -> dict[str, Any]:
    """What ``/version`` says."""
    major, minor = KUBERNETES_VERSION.split(".")
    machine = {"x86_64": "amd64", "aarch64": "arm64"}.get(platform.machine(), platform.machine())
    return {
        "major": major,
        "minor": minor,
        "emulationMajor": str(emulation.version[0]),
        "emulationMinor": str(emulation.version[1]),
        "minCompatibilityMajor": str(emulation.compatible[0]),
        "minCompatibilityMinor": str(emulation.compatible[1]),
        "gitVersion": f"v{KUBERNETES_VERSION}.0",
        "gitCommit": f"pilothouse-{__version__}",
        "gitTreeState": "clean",
        "buildDate": "1970-01-01T00:00:00Z",
        "goVersion": f"python{platform.python_version()}",
        "compiler": platform.python_implementation().lower(),
        "platform": f"{platform.system().lower()}/{machine}",
    }


def install_standard_routes(
    server: GenericAPIServer,
    instruments: Iterable[Instrument],
    processes: Processes | None = None,
    emulation: Emulation = PRESENT,
    *,
    native_histograms: bool = True,
) -> None:
    """Add them to the first server of a chain. Of several ``processes`` a page of metrics is that of all."""
    version = only_get(only_content(only_json(json_route(partial(version_info, emulation))), (JSON,)))
    server.routes.add_with_slash("/version", version)
    install_metrics(server, instruments, processes, native=native_histograms)
