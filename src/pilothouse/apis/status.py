"""Keeping status and the rest of an object apart, on create, on update and through ``/status``."""

from __future__ import annotations

from functools import cache
from typing import ClassVar

import orjson

from pilothouse.apis import types
from pilothouse.apis.strategy import Context, StatusStrategy, Strategy, keep
from pilothouse.machinery.objects import Object
from pilothouse.machinery.schema.decoding import decode

_RESET: tuple[str, ...] = (
    "deletionTimestamp",
    "generation",
    "selfLink",
    "labels",
    "annotations",
    "finalizers",
    "ownerReferences",
)


@cache
def _empty_status(type_name: str) -> bytes | None:
    status = decode(types.struct(type_name), {})[0].get("status")
    return None if status is None else orjson.dumps(status)


def clear_status(obj: Object, type_name: str) -> None:
    """Set the status to that of an object which never had one, e.g. of ``policy.v1.PodDisruptionBudget``."""
    empty = _empty_status(type_name)
    if empty is None:
        obj.pop("status", None)
    else:
        obj["status"] = orjson.loads(empty)


class StatusKeeper(Strategy):
    """Writes beside ``/status``: creators start without one, updaters cannot change it."""

    type_name: ClassVar[str]

    def prepare_for_create(self, ctx: Context, obj: Object) -> None:
        clear_status(obj, self.type_name)

    def prepare_for_update(self, ctx: Context, obj: Object, old: Object) -> None:
        keep(obj, old, "status")


class ResettingStatusStrategy(StatusStrategy):
    """Writes through ``/status`` of kinds that take nothing else: neither labels nor annotations nor finalizers."""

    reset_fields: tuple[str, ...] = ("metadata", "spec")

    def prepare_for_update(self, ctx: Context, obj: Object, old: Object) -> None:
        super().prepare_for_update(ctx, obj, old)
        keep(obj["metadata"], old["metadata"], *_RESET)
