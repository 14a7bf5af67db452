"""Deletes bootstrap tokens when they expire."""

from __future__ import annotations

from typing import Final

from pilothouse.controllers.manager.context import ControllerContext
from pilothouse.controllers.runtime.controller import Controller
from pilothouse.controllers.runtime.indexer import Key, key_of
from pilothouse.controllers.tokens.bootstrap import is_bootstrap_token, seconds_left
from pilothouse.machinery import errors
from pilothouse.machinery.objects import Object

_ACCOUNT: Final = "token-cleaner"


def start(context: ControllerContext) -> None:
    """Start the cleaner."""
    secrets = context.informers.of("", "v1", "secrets")
    client = context.client(_ACCOUNT).of("", "v1", "secrets")

    async def reconcile(key: Key) -> float | None:
        secret = secrets.lister.get(*key)
        left = None if secret is None else seconds_left(secret, context.clock.now())
        if secret is None or left is None or left > 0:
            return left
        try:
            await client.delete(*key, uid=secret["metadata"]["uid"])
        except (errors.NotFound, errors.Conflict):
            return None
        return None

    controller: Controller[Key] = Controller(
        "token-cleaner-controller", reconcile, wait_for=[secrets], clock=context.clock
    )

    def seen(secret: Object) -> None:
        if is_bootstrap_token(secret):
            controller.queue.add(key_of(secret))

    secrets.add_handler(seen, lambda old, new: seen(new), name=_ACCOUNT)
    controller.start(context.supervisor)
