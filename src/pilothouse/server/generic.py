"""GenericAPIServer: groups of resources, other routes, hooks, health checks, and a delegate for what it does not serve.

Servers form a chain. A request is offered to the first; each looks whether the group version or path is its own and
otherwise hands the request on. The last delegate answers 404. All servers of a chain share one set of health checks and
hooks.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any

from pilothouse.endpoints import discovery
from pilothouse.endpoints.installed import InstalledVersion
from pilothouse.endpoints.request import APIRequest
from pilothouse.endpoints.responses import page_not_found
from pilothouse.machinery.gvk import GroupVersion
from pilothouse.net.messages import Response
from pilothouse.server.health import HealthChecks
from pilothouse.server.hooks import Hooks
from pilothouse.server.route_handlers import RouteHandler, only_content, only_get
from pilothouse.server.routes import PathMux

Delegate = Callable[[APIRequest], Coroutine[Any, Any, Response]]


async def not_found(request: APIRequest) -> Response:
    """The end of every chain."""
    return page_not_found()


class GenericAPIServer:
    """One server of the chain."""

    def __init__(
        self, name: str, delegate: GenericAPIServer | None = None, *, livez_grace_seconds: float = 0.0
    ) -> None:
        self.name = name
        self.delegate = delegate
        self.versions: dict[GroupVersion, InstalledVersion] = {}
        self.routes = PathMux()
        if delegate is None:
            self.checks = HealthChecks()
            self.hooks = Hooks(self.checks, livez_grace_seconds)
            self._next: Delegate = not_found
        else:
            self.checks = delegate.checks
            self.hooks = delegate.hooks
            self._next = delegate.handle

    def install_version(self, installed: InstalledVersion) -> None:
        """Serve a group version and its discovery documents."""
        gv = installed.version.group_version
        self.versions[gv] = installed
        document = discovery.KeptDocument(lambda: discovery.resource_list(installed.version))
        custom = installed.version.custom
        handler = _serving(document, routed=not custom)
        self.routes.add_with_slash(_path_of(gv), handler if custom else only_get(only_content(handler)))

    def uninstall_version(self, gv: GroupVersion) -> None:
        """Stop serving a group version."""
        if self.versions.pop(gv, None) is not None:
            self.routes.remove_with_slash(_path_of(gv))

    def fall_back_to(self, handler: Delegate) -> None:
        """Let ``handler`` answer what this last server of a chain does not serve."""
        self._next = handler

    def handle(self, request: APIRequest) -> Coroutine[Any, Any, Response]:
        """Serve the request or hand it on."""
        info = request.info
        if info.is_resource and (info.group or info.prefix == "api"):
            installed = self.versions.get(info.group_version)
            if installed is not None:
                return installed.dispatch(request)
        path = request.path
        handler = self.routes.find(path)
        if handler is None and path.endswith("//"):
            handler = self._find_trimmed(path)
        return self._next(request) if handler is None else handler(request)

    def answering(self, request: APIRequest) -> str:
        """The name of the server of this chain that ``handle`` finds for a request; empty where none has it."""
        info = request.info
        if info.is_resource and info.group_version in self.versions:
            return self.name
        if self.routes.find(request.path) is not None:
            return self.name
        return "" if self.delegate is None else self.delegate.answering(request)

    def _find_trimmed(self, path: str) -> RouteHandler | None:
        """Discovery documents are found however many slashes end their path, but for the list of all groups."""
        if not path.startswith("/api") or path.strip("/") == "apis":
            return None
        handler = self.routes.find(path.rstrip("/"))
        # Behind the first server, which knows the exact path alone, groups of built-in resources are asked for by GET.
        group = path[1:].split("/", 2)[1]
        routed = any(
            gv.group == group and not installed.version.custom
            for server in self.chain()
            for gv, installed in server.versions.items()
        )
        return only_get(handler) if handler is not None and routed else handler

    def chain(self) -> list[GenericAPIServer]:
        """This server and all its delegates, in order."""
        return [self, *(self.delegate.chain() if self.delegate else ())]

    def paths(self) -> list[str]:
        """All paths that the chain serves."""
        return sorted({path for server in self.chain() for path in server.routes.paths()})


def _path_of(gv: GroupVersion) -> str:
    """Where a group version's resources are, and its own discovery document."""
    return f"/apis/{gv}" if gv.group else f"/api/{gv}"


def _serving(document: discovery.KeptDocument, *, routed: bool) -> RouteHandler:
    async def serve(request: APIRequest) -> Response:
        return document.respond(request, routed=routed)

    return serve
