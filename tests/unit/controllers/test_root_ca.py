"""Without a certificate nothing is published, and the log says so."""

from __future__ import annotations

from typing import Any

import pytest

from pilothouse.controllers import root_ca
from pilothouse.controllers.manager.context import ControllerContext


def test_who_wonders_why_pods_have_no_certificate_finds_it_in_the_log(caplog: pytest.LogCaptureFixture) -> None:
    nothing: Any = None
    root_ca.start(ControllerContext(nothing, nothing, nothing))
    assert "No namespace gets a config map kube-root-ca.crt" in caplog.text
    assert "--root-ca-file" in caplog.text
