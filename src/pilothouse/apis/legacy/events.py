"""Events through events.k8s.io/v1beta1: in the form of v1, by the rules of core/v1."""

from __future__ import annotations

from typing import ClassVar

from pilothouse.apis.core.event import EventStrategy
from pilothouse.apis.events.conversion import from_core, to_core
from pilothouse.apis.events.event import StrictEventStrategy
from pilothouse.apis.legacy.older import Older
from pilothouse.apis.strategy import Context
from pilothouse.apis.strategy_rules import MetadataRules
from pilothouse.machinery.field_errors import FieldError
from pilothouse.machinery.objects import Object


class LaxEvents(StrictEventStrategy):
    """The rules of core/v1."""

    metadata_rules: ClassVar[MetadataRules] = EventStrategy.metadata_rules

    def validate(self, ctx: Context, obj: Object) -> list[FieldError]:
        return EventStrategy.validate(self, ctx, obj)

    def validate_update(self, ctx: Context, obj: Object, old: Object) -> list[FieldError]:
        return EventStrategy.validate_update(self, ctx, obj, old)


OLDER: dict[tuple[str, str], Older] = {("v1beta1", "events"): Older(to_core, from_core, strategy=LaxEvents)}
