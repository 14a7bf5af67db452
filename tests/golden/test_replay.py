"""Recorded conversations with kube-apiserver 1.37: every answer must still be identical.

All recordings here are replayed by ``make golden``; the test takes the areas that need no waiting.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent
AREAS = (
    "admission", "aggregation", "apply", "authn", "authz", "certificates", "crd", "deletion", "discovery",
    "flowcontrol", "lifecycle", "lists", "namespaces", "negotiation", "patch", "services", "subresources", "validation",
)  # fmt: skip


def is_quick(scenario: Path) -> bool:
    """Whether no step waits: the text is enough to tell."""
    text = scenario.read_text()
    return not any(word in text for word in ('"sleep"', '"background"', "timeoutSeconds", '"pad"'))


def test_answers_are_identical_to_the_recorded_ones():
    folders = [HERE / "scenarios" / area for area in AREAS]
    scenarios = [path for folder in folders for path in sorted(folder.glob("*.json")) if is_quick(path)]
    replayed = subprocess.run(
        [sys.executable, str(HERE.parents[1] / "tools" / "golden.py"), *map(str, scenarios)],
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert replayed.returncode == 0, replayed.stdout[-6000:] + replayed.stderr[-2000:]
