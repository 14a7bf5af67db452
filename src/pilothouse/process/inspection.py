"""The server describing itself, for ``pilothouse inspect``: filters, resources, routes, health checks, informers."""

from __future__ import annotations

import asyncio
from typing import Any

from pilothouse.cluster.hooks.registry import EVERYWHERE
from pilothouse.filters.chain import filters
from pilothouse.options import ServerOptions
from pilothouse.process.process import Process
from pilothouse.server.generic import GenericAPIServer

Description = dict[str, Any]


def describe(options: ServerOptions) -> Description:
    """The whole server as data. Nothing is started."""
    return asyncio.run(_describe(options))


async def _describe(options: ServerOptions) -> Description:
    cluster = Process(options).cluster
    return {
        "filters": [name for name, _ in filters(cluster.filter_config())],
        "servers": [_server(server) for server in cluster.servers.aggregator.chain()],
        "healthChecks": [
            {"name": name, "backedBy": backed_by, "endpoints": endpoints}
            for name, backed_by, endpoints in cluster.servers.aggregator.checks.described()
        ],
        "informers": list(cluster.informers.names()),
        "workers": {
            "count": options.own.worker_count(),
            "hooksOfEach": [name for name in cluster.servers.aggregator.hooks.names() if name in EVERYWHERE],
        },
    }


def _server(server: GenericAPIServer) -> Description:
    versions = [
        {
            "groupVersion": str(installed.version.group_version),
            "resources": [
                {
                    "name": f"{resource}/{subresource}" if subresource else resource,
                    "kind": scope.kind.kind,
                    "namespaced": scope.resource.namespaced,
                    "verbs": sorted(scope.verbs),
                }
                for (resource, subresource), scope in sorted(installed.all_scopes().items())
            ],
        }
        for installed in server.versions.values()
    ]
    paths = [path for path in server.routes.paths() if not path.startswith("/api")]
    return {"name": server.name, "versions": versions, "paths": paths}


def as_text(found: Description) -> str:
    """The description for people."""
    lines = ["Filters, outermost first:", *(f"  {name}" for name in found["filters"])]
    for position, server in enumerate(found["servers"], 1):
        lines += ["", f"Server {position}: {server['name']}"]
        for version in server["versions"]:
            lines.append(f"  {version['groupVersion']}")
            for each in version["resources"]:
                place = "namespaced" if each["namespaced"] else "cluster"
                lines.append(f"    {each['name']:45} {each['kind']:32} {place:10} {','.join(each['verbs'])}")
        lines += (f"  {path}" for path in server["paths"])
    lines += ["", "Health checks, what backs them, and where they are asked:"]
    for check in found["healthChecks"]:
        lines.append(f"  {check['name']:75} {check['backedBy']:70} {check['endpoints']}")
    lines += ["", "Informers:", *(f"  {name}" for name in found["informers"])]
    workers = found["workers"]
    lines += ["", f"Processes that serve: {workers['count']}"]
    if workers["count"] > 1:
        lines += [
            "  The first runs all hooks, each of the others these:",
            *(f"    {name}" for name in workers["hooksOfEach"]),
        ]
    return "\n".join(lines)
