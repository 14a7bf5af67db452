"""Endpoints that do not serve stored objects as they are: scale, bindings, evictions, logs, proxies, components.

``MAKERS`` tells for each of them how its verbs are made, given a way to the stores it works on. What needs layers above
this one (reviews, service account tokens) is handed to the installer instead.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from pilothouse.endpoints.scope import EndpointVerb
from pilothouse.registry.store.store import Store

StoreOf = Callable[[str, str], Store]
"""The store of a group's resource."""
VerbMaker = Callable[[StoreOf], Mapping[str, EndpointVerb]]

MAKERS: Final[Mapping[tuple[str, str, str], VerbMaker]] = {}
"""By group, resource and subresource."""
