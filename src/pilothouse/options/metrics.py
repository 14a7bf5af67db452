"""Flags of the /metrics page."""

from __future__ import annotations

import re
from collections.abc import Set
from dataclasses import dataclass

from pilothouse import KUBERNETES_VERSION
from pilothouse.machinery.field_errors import FieldError, Path, invalid
from pilothouse.machinery.go_quote import quote
from pilothouse.options.declaring import FlagGroup, flag
from pilothouse.options.kinds import STRING, STRING_TO_STRING, STRINGS

_NAME = "[a-zA-Z_:][a-zA-Z0-9_:]*"
_LABEL = "[a-zA-Z_][a-zA-Z0-9_]*"
_METRIC_NAME = re.compile(_NAME)
_LABEL_KEY = re.compile(f"{_NAME},{_LABEL}")


@dataclass
class MetricsOptions(FlagGroup):
    """The ``metrics`` section."""

    section = "metrics"

    allow_labels: dict[str, str] = flag(
        "allow-metric-labels", STRING_TO_STRING, {}, "Values kept of a metric's label: metric,label='v1,v2'."
    )
    allow_labels_manifest: str = flag(
        "allow-metric-labels-manifest", STRING, "", "File with the same content as --allow-metric-labels."
    )
    disabled: tuple[str, ...] = flag("disabled-metrics", STRINGS, (), "Metrics to leave out, by their full names.")
    show_hidden_for_version: str = flag(
        "show-hidden-metrics-for-version",
        STRING,
        "",
        "Also show the metrics hidden since this version: the previous minor.",
    )

    def validate(self, given: Set[str]) -> list[str]:
        """Version, metric names and label keys."""
        path = Path("metrics")
        errors: list[FieldError] = []
        major, minor = KUBERNETES_VERSION.split(".")[:2]
        previous = f"{major}.{int(minor) - 1}"
        if self.show_hidden_for_version not in ("", previous):
            errors.append(
                invalid(
                    path.child("showHiddenMetricsForVersion"),
                    self.show_hidden_for_version,
                    f"must be omitted or have the value '{previous}'; only the previous minor version is allowed",
                )
            )
        for name in self.disabled:
            if not _METRIC_NAME.fullmatch(name):
                errors.append(
                    invalid(
                        path.child("disabledMetrics"),
                        list(self.disabled),
                        f"must be fully qualified metric names matching {quote(f'^{_NAME}$')}, got {quote(name)}",
                    )
                )
                break
        if not all(_LABEL_KEY.fullmatch(key) for key in self.allow_labels):
            errors.append(
                invalid(
                    path.child("allowListMapping"),
                    self.allow_labels,
                    "must have keys with format `metricName,labelName` where metricName matches "
                    f"{quote(_NAME)} and labelName matches {quote(_LABEL)}",
                )
            )
        return [str(error) for error in errors]
