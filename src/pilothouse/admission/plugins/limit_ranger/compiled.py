"""A LimitRange in the form that is checked against: quantities read once."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from pilothouse.apis.core.pod_spec.amounts import Amounts, read_amounts
from pilothouse.machinery.weights import weight_of_values


@dataclass(slots=True)
class Limit:
    """One item of a LimitRange."""

    type: str
    minimum: Amounts
    maximum: Amounts
    ratio: Amounts


@dataclass(slots=True)
class CompiledRange:
    """The items, and the defaults of all container items together."""

    limits: list[Limit]
    default_requests: dict[str, str] = field(default_factory=dict)
    default_limits: dict[str, str] = field(default_factory=dict)
    bounds: int = 0
    """How many amounts the items bound."""

    def weight_of_defaults(self, pod: dict[str, Any]) -> int:
        """By how much this makes a pod longer at most."""
        return weight_of_values(_containers_of(pod) * (len(self.default_requests) + len(self.default_limits)))

    def weight_of_limits(self, obj: dict[str, Any]) -> int:
        """How much work it is to hold an object against this."""
        return weight_of_values((1 + _containers_of(obj)) * self.bounds)


def _containers_of(obj: dict[str, Any]) -> int:
    spec = obj.get("spec") or {}
    return len(spec.get("containers") or ()) + len(spec.get("initContainers") or ())


def compile_range(limit_range: dict[str, Any]) -> CompiledRange:
    """Read a LimitRange."""
    compiled = CompiledRange([])
    for item in (limit_range.get("spec") or {}).get("limits") or ():
        compiled.limits.append(
            Limit(
                item.get("type", ""),
                _sorted(item.get("min")),
                _sorted(item.get("max")),
                _sorted(item.get("maxLimitRequestRatio")),
            )
        )
        compiled.bounds += sum(len(item.get(kind) or ()) for kind in ("min", "max", "maxLimitRequestRatio"))
        if item.get("type") == "Container":
            compiled.default_requests.update(item.get("defaultRequest") or {})
            compiled.default_limits.update(item.get("default") or {})
    return compiled


def _sorted(texts: dict[str, Any] | None) -> Amounts:
    return dict(sorted(read_amounts(texts).items()))
