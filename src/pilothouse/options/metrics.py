"""Flags of the /metrics page."""

from __future__ import annotations

import logging
import re
from collections.abc import Set
from dataclasses import dataclass

from pilothouse import KUBERNETES_VERSION
from pilothouse.machinery.field_errors import FieldError, Path, invalid
from pilothouse.machinery.go_quote import quote
from pilothouse.machinery.metric_registry import Registry
from pilothouse.machinery.shown_metrics import read_allowed
from pilothouse.machinery.yaml_codec import YamlError, load
from pilothouse.options.declaring import FlagGroup, flag
from pilothouse.options.kinds import STRING, STRING_TO_STRING, STRINGS

logger = logging.getLogger(__name__)
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

    def build(self) -> Registry:
        """What keeps all families, and shows them as these flags say."""
        return Registry(self.disabled, read_allowed(self._allowed()), shows_hidden=bool(self.show_hidden_for_version))

    def _allowed(self) -> dict[str, str]:
        """The flag, else the file. As in kube-apiserver, a file that cannot be used is logged and not minded."""
        if self.allow_labels or not self.allow_labels_manifest:
            return self.allow_labels
        try:
            with open(self.allow_labels_manifest, "rb") as file:
                found = load(file.read())
        except (OSError, YamlError) as error:
            logger.error("--allow-metric-labels-manifest: %s", error)
            return {}
        if not isinstance(found, dict) or not all(_is_allowance(key, value) for key, value in found.items()):
            form = "metric,label: value,value"
            logger.error("--allow-metric-labels-manifest: %s has other lines than %s", self.allow_labels_manifest, form)
            return {}
        return found


def _is_allowance(key: object, value: object) -> bool:
    return isinstance(key, str) and isinstance(value, str) and _LABEL_KEY.fullmatch(key) is not None
