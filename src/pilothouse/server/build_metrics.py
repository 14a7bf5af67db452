"""What this server is: its version, its feature gates, and how many families it shows."""

from __future__ import annotations

from collections.abc import Iterable

from pilothouse import KUBERNETES_VERSION
from pilothouse.apis.emulation import PRESENT, Emulation
from pilothouse.apis.gates import PRE_ALPHA, STAGES, known_gates
from pilothouse.machinery.metrics import CollectedGauge, Instrument
from pilothouse.server.standard_routes import version_info

_STAGES = {"ga": "", "alpha": "ALPHA", "beta": "BETA", "deprecated": "DEPRECATED"}


class BuildMetrics:
    """The families that say which server this is."""

    def __init__(self, gates: frozenset[str], emulation: Emulation = PRESENT) -> None:
        self._gates, self._emulation = gates, emulation

    def instruments(self) -> list[Instrument]:
        """All of them."""
        info = version_info(self._emulation)
        build = {
            "build_date": info["buildDate"], "compiler": info["compiler"], "git_commit": info["gitCommit"],
            "git_tree_state": info["gitTreeState"], "git_version": info["gitVersion"], "go_version": info["goVersion"],
            "major": info["major"], "minor": info["minor"], "platform": info["platform"],
        }  # fmt: skip
        least = f"{info['minCompatibilityMajor']}.{info['minCompatibilityMinor']}"
        versions = (f"{KUBERNETES_VERSION}.0", "kube", self._emulation.text(), least)
        return [
            CollectedGauge(
                "kubernetes_build_info", "[BETA] What was built.", tuple(build), lambda: [(tuple(build.values()), 1)]
            ),
            CollectedGauge(
                "version_info",
                "[ALPHA] The versions that are served and emulated.",
                ("binary", "component", "emulation", "min_compat"),
                lambda: [(versions, 1)],
            ),
            CollectedGauge(
                "kubernetes_feature_enabled", "[BETA] Feature gates.", ("name", "stage"), self._features, joined="most"
            ),
        ]

    def _features(self) -> Iterable[tuple[tuple[str, ...], float]]:
        for name, stage in STAGES.items():
            yield (name, _STAGES[stage]), float(name in self._gates)
        for name, gate in known_gates(self._emulation).items():
            if gate.stage != PRE_ALPHA:
                yield (name, _STAGES.get(gate.stage, "")), float(name in self._gates)
