"""The server describing itself: filters, servers, routes and resources, for ``pilothouse inspect``."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from pilothouse.app.assembly import assemble
from pilothouse.filters.chain import filters

if TYPE_CHECKING:
    from pilothouse.options import ServerOptions


def describe(options: ServerOptions) -> str:
    """The whole server as text. Nothing is started."""
    return asyncio.run(_describe(options))


async def _describe(options: ServerOptions) -> str:
    assembly = assemble(options)
    lines = ["Filters, outermost first:"]
    lines += (f"  {name}" for name, _ in filters(assembly.filter_config()))
    for position, server in enumerate(assembly.chain.aggregator.chain(), 1):
        lines += ["", f"Server {position}: {server.name}"]
        for installed in server.versions.values():
            lines.append(f"  {installed.version.group_version}")
            for (resource, subresource), scope in sorted(installed.scopes.items()):
                name = f"{resource}/{subresource}" if subresource else resource
                place = "namespaced" if scope.resource.namespaced else "cluster"
                lines.append(f"    {name:45} {scope.kind.kind:32} {place:10} {','.join(sorted(scope.verbs))}")
        lines += (f"  {path}" for path in server.routes.paths() if not path.startswith("/api"))
    return "\n".join(lines)
