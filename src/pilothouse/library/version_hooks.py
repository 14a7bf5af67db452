"""A strategy, which knows the storage version alone, at the version that a client speaks."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import orjson

from pilothouse.apiextensions.serving.additions import KindHooks
from pilothouse.apis.strategy import Context
from pilothouse.library.declarations import Strategy, Version
from pilothouse.machinery.field_errors import FieldError
from pilothouse.machinery.objects import Object

T = TypeVar("T")


def _same(obj: Object) -> Object:
    return obj


class VersionHooks(KindHooks):
    """The rules of a kind at one version."""

    def __init__(self, version: Version, strategy: Strategy, *, stored: bool) -> None:
        self._version, self._strategy, self._stored = version, strategy, stored
        self._to_storage, self._from_storage = version.to_storage or _same, version.from_storage or _same

    def default(self, obj: Object) -> None:
        if self._version.default is not None:
            self._version.default(obj)

    def prepare_for_create(self, ctx: Context, obj: Object) -> None:
        if self._overrides("prepare_for_create"):
            hub = self._hub(obj)
            self._strategy.prepare_for_create(ctx, hub)
            self._put_back(obj, hub)

    def prepare_for_update(self, ctx: Context, obj: Object, old: Object) -> None:
        if self._overrides("prepare_for_update"):
            hub = self._hub(obj)
            self._strategy.prepare_for_update(ctx, hub, self._hub(old))
            self._put_back(obj, hub)

    def validate(self, ctx: Context, obj: Object) -> list[FieldError]:
        return self._strategy.validate(ctx, self._hub(obj)) if self._overrides("validate") else []

    def validate_update(self, ctx: Context, obj: Object, old: Object) -> list[FieldError]:
        return self._changed(Strategy.validate_update, self._strategy.validate_update, ctx, obj, old)

    def validate_status_update(self, ctx: Context, obj: Object, old: Object) -> list[FieldError]:
        rule = self._strategy.validate_status_update
        return self._changed(Strategy.validate_status_update, rule, ctx, obj, old)

    def warnings_on_create(self, ctx: Context, obj: Object) -> list[str]:
        return self._strategy.warnings_on_create(ctx, self._hub(obj)) if self._overrides("warnings_on_create") else []

    def warnings_on_update(self, ctx: Context, obj: Object, old: Object) -> list[str]:
        return self._changed(Strategy.warnings_on_update, self._strategy.warnings_on_update, ctx, obj, old)

    def _changed(
        self, plain: object, rule: Callable[[Context, Object, Object], list[T]], ctx: Context, obj: Object, old: Object
    ) -> list[T]:
        """What a rule about changes says, unless it is the plain one."""
        return [] if getattr(rule, "__func__", None) is plain else rule(ctx, self._hub(obj), self._hub(old))

    def _overrides(self, rule: str) -> bool:
        """Whether the author wrote this rule: an object is converted for no other."""
        return getattr(type(self._strategy), rule) is not getattr(Strategy, rule)

    def _hub(self, obj: Object) -> Object:
        """The object in the storage version: itself, or a copy."""
        if self._stored:
            return obj
        metadata = obj["metadata"]
        return {**self._to_storage(orjson.loads(orjson.dumps(obj))), "metadata": metadata}

    def _put_back(self, obj: Object, hub: Object) -> None:
        """What a strategy made of the hub object, as this version has it."""
        if self._stored:
            return
        head = {key: obj[key] for key in ("apiVersion", "kind")}
        metadata = hub["metadata"]
        made = self._from_storage(hub)
        obj.clear()
        obj.update({**made, **head, "metadata": metadata})
