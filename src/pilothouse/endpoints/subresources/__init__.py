"""Endpoints that do not serve stored objects as they are: scale, bindings, evictions, logs, proxies, components.

``makers_with`` tells for each of them how it is made, given a way to the stores it works on. Its module is imported
when it is first made. What needs layers above this one (reviews, service account tokens) is handed to the installer
instead.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any, Final

from pilothouse.apis.resources import Resource, Subresource
from pilothouse.endpoints.admission import Admission
from pilothouse.endpoints.scope import Endpoint
from pilothouse.endpoints.subresources.endpoints import Maker, StoreOf
from pilothouse.endpoints.subresources.links import Links
from pilothouse.machinery.lazy import imported

_BINDING: Final = "binding.make_binding_endpoint"
_CONNECTING: Final = "connecting.make_connecting_endpoint"
_PROXY: Final = "proxying.make_proxy_endpoint"
_ROLLBACK: Final = "rollback.make_rollback_endpoint"
_SCALE: Final = "scale.make_scale_scope"
_MAKERS: Final[Mapping[tuple[str, str, str], str]] = {
    ("", "bindings", ""): _BINDING,
    ("", "componentstatuses", ""): "components.make_components_endpoint",
    ("", "pods", "binding"): _BINDING,
    ("", "pods", "eviction"): "eviction.make_eviction_endpoint",
    ("", "replicationcontrollers", "scale"): _SCALE,
    ("apps", "deployments", "rollback"): _ROLLBACK,
    ("apps", "deployments", "scale"): _SCALE,
    ("apps", "replicasets", "scale"): _SCALE,
    ("apps", "statefulsets", "scale"): _SCALE,
    ("extensions", "deployments", "rollback"): _ROLLBACK,
    ("extensions", "deployments", "scale"): _SCALE,
    ("extensions", "replicasets", "scale"): _SCALE,
    ("extensions", "replicationcontrollers", "scale"): _SCALE,
}
"""By group, resource and subresource: the module here, and the function in it."""
_LINKED_MAKERS: Final[Mapping[tuple[str, str, str], str]] = {
    ("", "nodes", "proxy"): _PROXY,
    ("", "pods", "attach"): _CONNECTING,
    ("", "pods", "exec"): _CONNECTING,
    ("", "pods", "log"): "logs.make_log_endpoint",
    ("", "pods", "portforward"): _CONNECTING,
    ("", "pods", "proxy"): _PROXY,
    ("", "services", "proxy"): _PROXY,
}
"""Those that connect to nodes, pods and services."""


def makers_with(links: Links) -> dict[tuple[str, str, str], Maker]:
    """All of them, connecting by these links."""
    plain = {key: partial(_make, place, {}) for key, place in _MAKERS.items()}
    linked = {key: partial(_make, place, {"links": links}) for key, place in _LINKED_MAKERS.items()}
    return {**plain, **linked}


def _make(
    place: str,
    more: Mapping[str, Any],
    resource: Resource,
    sub: Subresource | None,
    store_of: StoreOf,
    admission: Admission | None,
) -> Endpoint:
    made: Endpoint = imported(f"{__name__}.{place}")(resource, sub, store_of, admission, **more)
    return made
