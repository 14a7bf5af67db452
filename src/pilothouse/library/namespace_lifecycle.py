"""NamespaceLifecycle for servers behind another: nothing new in namespaces that do not exist there or are going.

The main API server has the namespaces. What it says of one is believed for some seconds, so that writes do not wait for
it each time; that a namespace is missing is not believed but asked again.
"""

from __future__ import annotations

import time
from typing import Any, Final

from pilothouse.admission.environment import Environment
from pilothouse.admission.plugin import Plugin
from pilothouse.admission.refusals import forbidden
from pilothouse.endpoints.admission import CREATE, Attributes
from pilothouse.library.plugins import LibraryEnvironment
from pilothouse.machinery import errors
from pilothouse.machinery.gvk import GroupResource
from pilothouse.machinery.objects import Object

_NAMESPACES: Final = GroupResource("", "namespaces")
_BELIEVED_SECONDS: Final = 5.0
_MOST_KNOWN: Final = 10_000


class NamespaceLifecycle(Plugin):
    """See the module's docstring. A server that stands alone has no namespaces to look for."""

    name = "NamespaceLifecycle"
    operations = frozenset({CREATE})

    def __init__(self, environment: Environment, configuration: Any = None) -> None:
        super().__init__(environment)
        assert isinstance(environment, LibraryEnvironment)
        self._main = environment.main
        self._alive: dict[str, float] = {}

    async def admit(self, attributes: Attributes) -> None:
        """Refuse what does not fit the namespace's life."""
        name = attributes.namespace
        if not name or self._main is None or self._alive.get(name, 0.0) > time.monotonic():
            return
        try:
            namespace: Object = await self._main.get(f"/api/v1/namespaces/{name}")
        except errors.StatusError as error:
            if error.code == 404:
                raise errors.not_found(_NAMESPACES, name) from None
            raise forbidden(attributes, f"namespace {name} cannot be looked at: {error.message}") from None
        if (namespace.get("status") or {}).get("phase") == "Terminating":
            why = f"unable to create new content in namespace {name} because it is being terminated"
            raise forbidden(attributes, why)
        if len(self._alive) >= _MOST_KNOWN:
            self._alive.clear()
        self._alive[name] = time.monotonic() + _BELIEVED_SECONDS
