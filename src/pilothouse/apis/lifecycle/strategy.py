"""Evictions of pods, and requests for them. What they are about never changes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from pilothouse.apis.lifecycle.columns import EVICTION_COLUMNS, REQUEST_COLUMNS
from pilothouse.apis.lifecycle.validation import (
    validate_eviction,
    validate_eviction_request,
    validate_eviction_status,
    validate_request_status,
)
from pilothouse.apis.status import ResettingStatusStrategy, StatusKeeper
from pilothouse.apis.strategy import Context, Object, Strategy
from pilothouse.machinery.field_errors import FieldError


class _StatusStrategy(ResettingStatusStrategy):
    allow_unconditional_update = False
    reset_fields = ("spec", "metadata")


class EvictionStatusStrategy(_StatusStrategy):
    """How far an eviction is; written by requesters, responders and the eviction's controller."""

    def validate_update(self, ctx: Context, obj: Object, old: Object) -> list[FieldError]:
        return validate_eviction_status(obj.get("status") or {}, old.get("status") or {}, ctx.now)


class EvictionStrategy(StatusKeeper):
    """Evictions."""

    type_name = "lifecycle.v1alpha1.Eviction"
    generation = True
    allow_unconditional_update = False
    reset_fields = ("status",)
    subresources: ClassVar[Mapping[str, type[Strategy]]] = {"status": EvictionStatusStrategy}
    columns = EVICTION_COLUMNS

    def validate(self, ctx: Context, obj: Object) -> list[FieldError]:
        return validate_eviction(obj)

    def validate_update(self, ctx: Context, obj: Object, old: Object) -> list[FieldError]:
        return validate_eviction(obj, old)


class EvictionRequestStatusStrategy(_StatusStrategy):
    """What became of a request."""

    def validate_update(self, ctx: Context, obj: Object, old: Object) -> list[FieldError]:
        return validate_request_status(obj.get("status") or {}, old.get("status") or {})


class EvictionRequestStrategy(StatusKeeper):
    """Requests for evictions; only their intent may change."""

    type_name = "lifecycle.v1alpha1.EvictionRequest"
    generation = True
    allow_unconditional_update = False
    reset_fields = ("status",)
    subresources: ClassVar[Mapping[str, type[Strategy]]] = {"status": EvictionRequestStatusStrategy}
    columns = REQUEST_COLUMNS

    def validate(self, ctx: Context, obj: Object) -> list[FieldError]:
        return validate_eviction_request(obj)

    def validate_update(self, ctx: Context, obj: Object, old: Object) -> list[FieldError]:
        return validate_eviction_request(obj, old)


STRATEGIES: dict[str, type[Strategy]] = {
    "evictions": EvictionStrategy,
    "evictionrequests": EvictionRequestStrategy,
}
