"""Endpoints that do not serve stored objects as they are: scale, bindings, evictions, logs, proxies, components.

``MAKERS`` tells for each of them how it is made, given a way to the stores it works on. What needs layers above this
one (reviews, service account tokens) is handed to the installer instead.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Final

from pilothouse.endpoints.subresources.binding import make_binding_endpoint
from pilothouse.endpoints.subresources.components import make_components_endpoint
from pilothouse.endpoints.subresources.connecting import make_connecting_endpoint
from pilothouse.endpoints.subresources.endpoints import LinkedMaker, Maker
from pilothouse.endpoints.subresources.eviction import make_eviction_endpoint
from pilothouse.endpoints.subresources.links import Links
from pilothouse.endpoints.subresources.logs import make_log_endpoint
from pilothouse.endpoints.subresources.proxying import make_proxy_endpoint
from pilothouse.endpoints.subresources.rollback import make_rollback_endpoint
from pilothouse.endpoints.subresources.scale import make_scale_scope

MAKERS: Final[Mapping[tuple[str, str, str], Maker]] = {
    ("", "bindings", ""): make_binding_endpoint,
    ("", "componentstatuses", ""): make_components_endpoint,
    ("", "pods", "binding"): make_binding_endpoint,
    ("", "pods", "eviction"): make_eviction_endpoint,
    ("", "replicationcontrollers", "scale"): make_scale_scope,
    ("apps", "deployments", "rollback"): make_rollback_endpoint,
    ("apps", "deployments", "scale"): make_scale_scope,
    ("apps", "replicasets", "scale"): make_scale_scope,
    ("apps", "statefulsets", "scale"): make_scale_scope,
    ("extensions", "deployments", "rollback"): make_rollback_endpoint,
    ("extensions", "deployments", "scale"): make_scale_scope,
    ("extensions", "replicasets", "scale"): make_scale_scope,
    ("extensions", "replicationcontrollers", "scale"): make_scale_scope,
}
"""By group, resource and subresource."""
LINKED_MAKERS: Final[Mapping[tuple[str, str, str], LinkedMaker]] = {
    ("", "nodes", "proxy"): make_proxy_endpoint,
    ("", "pods", "attach"): make_connecting_endpoint,
    ("", "pods", "exec"): make_connecting_endpoint,
    ("", "pods", "log"): make_log_endpoint,
    ("", "pods", "portforward"): make_connecting_endpoint,
    ("", "pods", "proxy"): make_proxy_endpoint,
    ("", "services", "proxy"): make_proxy_endpoint,
}
"""Those that connect to nodes, pods and services."""


def makers_with(links: Links) -> dict[tuple[str, str, str], Maker]:
    """All of them, connecting by these links."""
    linked = {key: partial(maker, links=links) for key, maker in LINKED_MAKERS.items()}
    return {**MAKERS, **linked}
