from __future__ import annotations

import logging
from collections.abc import Callable

import pytest

from pilothouse.endpoints.request import APIRequest
from pilothouse.filters import access_log
from pilothouse.filters.access_log import log_answer
from pilothouse.machinery.verbosity import REQUESTS

Ask = Callable[..., APIRequest]


@pytest.mark.parametrize(("level", "shown"), [(REQUESTS, True), (logging.INFO, False)])
def test_every_request_is_logged_at_its_verbosity(
    ask: Ask, caplog: pytest.LogCaptureFixture, level: int, shown: bool
) -> None:
    request = ask("GET", "/api/v1/pods?limit=1", authorization="Bearer secret", user_agent='x"y')
    request.target, request.audit_id = b"/api/v1/pods?limit=1", "the-id"
    with caplog.at_level(level, access_log.logger.name):
        log_answer(request, 0.001, 404)
    assert ('HTTP verb="GET" URI="/api/v1/pods?limit=1" latency="' in caplog.text) is shown
    if shown:
        assert 'userAgent="x\\"y" audit-ID="the-id" user="admin" resp=404' in caplog.text
    assert "secret" not in caplog.text


def test_slow_requests_are_logged_always(ask: Ask, caplog: pytest.LogCaptureFixture) -> None:
    request = ask()
    request.target, request.audit_id = b"/api/v1/pods", "the-id"
    request.queued_seconds = 0.25
    with caplog.at_level(logging.INFO, access_log.logger.name):
        log_answer(request, 0.6, 404)
    assert "Slow request verb=" in caplog.text
    assert 'queued="250.000ms"' in caplog.text
