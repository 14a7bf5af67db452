"""Horizontal pod autoscalers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from pilothouse.apis.autoscaling.conversion import drop_round_trip_annotations
from pilothouse.apis.autoscaling.horizontal_pod_autoscaler.columns import COLUMNS
from pilothouse.apis.autoscaling.horizontal_pod_autoscaler.defaults import default_autoscaler
from pilothouse.apis.autoscaling.horizontal_pod_autoscaler.validation import (
    validate_autoscaler,
    validate_autoscaler_status,
)
from pilothouse.apis.status import StatusKeeper
from pilothouse.apis.strategy import Context, NamespaceLabels, StatusStrategy, Strategy
from pilothouse.apis.strategy_rules import GenerationRules
from pilothouse.machinery.field_errors import FieldError
from pilothouse.machinery.objects import Object


class AutoscalerStatusStrategy(StatusStrategy):
    """What the autoscaling controller reports."""

    def default(self, obj: Object) -> None:
        default_autoscaler(obj)

    def validate_update(self, ctx: Context, obj: Object, old: Object) -> list[FieldError]:
        return validate_autoscaler_status(obj)


class AutoscalerStrategy(StatusKeeper):
    """Horizontal pod autoscalers. The annotations that carry newer fields through v1 are never stored."""

    type_name = "autoscaling.v2.HorizontalPodAutoscaler"
    subresources: ClassVar[Mapping[str, type[Strategy]]] = {"status": AutoscalerStatusStrategy}
    columns = COLUMNS

    def __init__(self, gates: frozenset[str] | None = None, labels_of: NamespaceLabels | None = None) -> None:
        super().__init__(gates, labels_of)
        self.generation_rules = GenerationRules(counted="HPAGeneration" in self.gates)

    def default(self, obj: Object) -> None:
        drop_round_trip_annotations(obj["metadata"])
        default_autoscaler(obj)

    def validate(self, ctx: Context, obj: Object) -> list[FieldError]:
        return validate_autoscaler(obj, least_allowed=self._least())

    def validate_update(self, ctx: Context, obj: Object, old: Object) -> list[FieldError]:
        return validate_autoscaler(obj, old, least_allowed=self._least(old))

    def _least(self, old: Object | None = None) -> int:
        had_none = old is not None and old["spec"].get("minReplicas") == 0
        return 0 if had_none or "HPAScaleToZero" in self.gates else 1
