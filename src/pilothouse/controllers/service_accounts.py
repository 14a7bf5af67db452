"""Every namespace has a service account ``default``: created when the namespace is, and again when it was deleted."""

from __future__ import annotations

from typing import Final

from pilothouse.controllers.manager.context import ControllerContext
from pilothouse.controllers.runtime.controller import Controller
from pilothouse.controllers.runtime.indexer import Key, key_of
from pilothouse.controllers.runtime.pod_control import is_namespace_terminating
from pilothouse.machinery import errors
from pilothouse.machinery.objects import Object

_ACCOUNT: Final = "service-account-controller"
_NAME: Final = "default"


def start(context: ControllerContext) -> None:
    """Start the service account controller."""
    DefaultServiceAccounts(context).controller.start(context.supervisor)


class DefaultServiceAccounts:
    """Keeps the service account of each active namespace. Keys are namespaces."""

    def __init__(self, context: ControllerContext) -> None:
        self._namespaces = context.informers.of("", "v1", "namespaces")
        self._accounts = context.informers.of("", "v1", "serviceaccounts")
        self._client = context.client(_ACCOUNT).of("", "v1", "serviceaccounts")
        self.controller: Controller[Key] = Controller(
            "serviceaccount-controller",
            self._reconcile,
            wait_for=[self._namespaces, self._accounts],
            clock=context.clock,
        )
        add = self.controller.queue.add
        self._namespaces.add_handler(
            lambda obj: add(key_of(obj)), lambda old, new: add(key_of(new)), name="serviceaccount-controller"
        )
        self._accounts.add_handler(on_delete=self._account_gone, name="serviceaccount-controller")

    def _account_gone(self, account: Object) -> None:
        if account["metadata"]["name"] == _NAME:
            self.controller.queue.add(("", account["metadata"]["namespace"]))

    async def _reconcile(self, key: Key) -> None:
        namespace = self._namespaces.lister.get(*key)
        if namespace is None or namespace["status"].get("phase") != "Active":
            return
        if self._accounts.lister.get(key[1], _NAME) is not None:
            return
        try:
            await self._client.create({"metadata": {"name": _NAME, "namespace": key[1]}})
        except errors.AlreadyExists:
            return
        except errors.StatusError as error:
            if not isinstance(error, errors.NotFound) and not is_namespace_terminating(error):
                raise
