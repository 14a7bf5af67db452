"""Candidates for leases."""

from __future__ import annotations

from typing import Any

import pytest


@pytest.mark.parametrize(
    ("fields", "wanted"),
    [
        ({}, []),
        ({"leaseName": ""}, ["spec.leaseName: Required value"]),
        ({"binaryVersion": "1.0"}, 2),
        ({"binaryVersion": "1.36.9"}, 1),
        ({"binaryVersion": "1.37.0-alpha.1"}, 1),
        ({"binaryVersion": "1.37.0-rc.2", "emulationVersion": "1.37.0-rc.1"}, []),
        ({"binaryVersion": "1.37.0-rc.10", "emulationVersion": "1.37.0-rc.9"}, []),
        ({"strategy": "a.b/c", "emulationVersion": ""}, []),
        (
            {"strategy": "Odd"},
            ['spec.strategy.strategy: Unsupported value: "Odd": supported values: "OldestEmulationVersion"'],
        ),
        (
            {"emulationVersion": ""},
            ["spec.emulationVersion: Required value: must be specified when `strategy` is 'OldestEmulationVersion'"],
        ),
    ],
)
def test_candidates(kind: Any, fields: dict[str, Any], wanted: Any) -> None:
    spec = {
        "leaseName": "l", "binaryVersion": "1.37.0", "emulationVersion": "1.37.0", "strategy": "OldestEmulationVersion",
    }  # fmt: skip
    found = kind("coordination.k8s.io/v1beta1", "leasecandidates").errors({"spec": {**spec, **fields}})
    assert (len(found) if isinstance(wanted, int) else found) == wanted
