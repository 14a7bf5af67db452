"""The order of API versions."""

from __future__ import annotations

import random

from pilothouse.machinery.kube_versions import compare, preferred_first

ORDERED = ["v10", "v2", "v1", "v11beta2", "v10beta3", "v3beta1", "v12alpha1", "v11alpha2", "foo1", "foo10", "v0"]


def test_stable_before_beta_before_alpha_before_names():
    shuffled = random.Random(1).sample(ORDERED, len(ORDERED))
    assert sorted(shuffled, key=preferred_first) == ORDERED


def test_comparing():
    assert compare("v1", "v1") == 0
    assert compare("v2", "v1") > 0 > compare("v1beta1", "v1")
