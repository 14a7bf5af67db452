"""Health checks, alone and together."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from pilothouse.endpoints.request import APIRequest
from pilothouse.server.health import HealthChecks
from pilothouse.server.routes import PathMux

Ask = Callable[..., APIRequest]


def health(errs: dict[str, str]) -> HealthChecks:
    checks = HealthChecks()
    for name, error in errs.items():
        checks.add(name, lambda error=error: error)  # type: ignore[misc]
    checks.add("extra", lambda: "", ("readyz",))
    return checks


@pytest.mark.parametrize(
    ("query", "status", "body"),
    [
        ("", 200, "ok"),
        ("?verbose", 200, "[+]ping ok\n[+]log ok\nhealthz check passed\n"),
        ("?verbose&exclude=log", 200, "[+]ping ok\n[+]log excluded: ok\nhealthz check passed\n"),
        (
            "?verbose&exclude=x&exclude=log",
            200,
            "[+]ping ok\n[+]log excluded: ok\n"
            'warn: some health checks cannot be excluded: no matches for "x"\nhealthz check passed\n',
        ),
        (
            "?verbose&exclude=ping,log&exclude=",
            200,
            "[+]ping ok\n[+]log ok\n"
            'warn: some health checks cannot be excluded: no matches for "","ping,log"\nhealthz check passed\n',
        ),
    ],
)
def test_good_health(ask: Ask, query: str, status: int, body: str) -> None:
    response = health({"ping": "", "log": ""}).evaluate("healthz", ask("GET", f"/healthz{query}"))
    assert (response.status, response.body.decode()) == (status, body)


def test_checks_of_a_group_are_left_out_together(ask: Ask) -> None:
    checks = HealthChecks()
    checks.add("store", lambda: "broken")
    checks.add("store-0", lambda: "broken", group="store")
    checks.add("store-1", lambda: "broken", group="store")
    response = checks.evaluate("livez", ask("GET", "/livez?verbose&exclude=store&exclude=store-1"))
    assert response.body.decode() == (
        "[+]store excluded: ok\n[+]store-0 excluded with store: ok\n[+]store-1 excluded: ok\nlivez check passed\n"
    )


def test_bad_health_says_which_and_not_why(ask: Ask) -> None:
    checks = health({"ping": "", "store": "the disk is full"})
    response = checks.evaluate("livez", ask("GET", "/livez"))
    assert response.status == 500
    assert response.body == b"[+]ping ok\n[-]store failed: reason withheld\nlivez check failed\n"
    assert checks.evaluate("livez", ask("GET", "/livez?exclude=store")).status == 200


async def test_single_checks_have_paths(ask: Ask) -> None:
    mux = PathMux()
    checks = health({"ping": "", "store": "full"})
    checks.install(mux)
    assert checks.names("readyz") == ["ping", "store", "extra"]
    for path, status in (("/readyz/extra", 200), ("/livez/extra", 404), ("/livez/store", 500), ("/healthz/ping", 200)):
        handler = mux.find(path)
        assert handler is not None
        assert (await handler(ask("GET", path))).status == status
    assert "/healthz/ping" in mux.paths()
