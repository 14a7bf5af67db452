"""Routes, health checks, hooks, life, and the chain of servers."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pilothouse.endpoints.request import APIRequest
from pilothouse.net.messages import Response
from pilothouse.server.generic import GenericAPIServer, json_route, only_get
from pilothouse.server.health import HealthChecks
from pilothouse.server.hooks import Hooks
from pilothouse.server.lifecycle import Lifecycle
from pilothouse.server.routes import PathMux

Ask = Callable[..., APIRequest]


def named(name: str) -> Callable[[APIRequest], object]:
    async def serve(request: APIRequest) -> Response:
        return Response(200, name.encode())

    return serve


# Routes


def test_routes() -> None:
    mux = PathMux()
    exact, short, long, index = (named(name) for name in ("exact", "short", "long", "index"))
    mux.add("/a/b", exact)  # type: ignore[arg-type]
    mux.add("/", index, hidden=True)  # type: ignore[arg-type]
    mux.add_prefix("/a/", short)  # type: ignore[arg-type]
    mux.add_prefix("/a/b/", long, hidden=True)  # type: ignore[arg-type]
    wanted = {"/a/b": exact, "/a/b/": long, "/a/b/c/d": long, "/a/x": short, "/a/": short, "/": index}
    assert {path: mux.find(path) for path in wanted} == wanted
    assert [mux.find(path) for path in ("/a", "/b", "", "a/b", "//a/")] == [None] * 5
    assert mux.paths() == ["/a/", "/a/b"]
    mux.remove("/a/b")
    assert mux.find("/a/b") is short


@given(st.lists(st.sampled_from(["a", "b", ""]), max_size=8))
def test_the_longest_prefix_wins(parts: list[str]) -> None:
    mux = PathMux()
    prefixes = ["/a/", "/a/b/", "/b/", "/a/b/a/"]
    for prefix in prefixes:
        mux.add_prefix(prefix, prefix)  # type: ignore[arg-type]
    path = "/" + "/".join(parts)
    fitting = [prefix for prefix in prefixes if path.startswith(prefix)]
    assert mux.find(path) == max(fitting, key=len, default=None)


# Health


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


# Hooks


async def test_hooks_are_checks_until_they_are_done() -> None:
    checks = HealthChecks()
    hooks = Hooks(checks)
    go = asyncio.Event()

    async def slow() -> None:
        await go.wait()

    hooks.add_post_start("slow", slow)
    assert checks.names("readyz") == ["poststarthook/slow"]
    (check,) = checks._checks["readyz"]
    running = asyncio.create_task(hooks.run_post_start())
    await asyncio.sleep(0)
    assert check.check() == "not finished"
    go.set()
    await running
    assert check.check() == ""


async def test_a_hook_that_fails_is_raised() -> None:
    hooks = Hooks(HealthChecks())

    async def bad() -> None:
        raise RuntimeError("no")

    hooks.add_post_start("bad", bad)
    with pytest.raises(RuntimeError) as failure:
        await hooks.run_post_start()
    assert failure.value.__notes__ == ["in post-start hook bad"]
    with pytest.raises(ValueError, match="registered twice"):
        hooks.add_post_start("bad", bad)


async def test_the_stop_goes_on_when_a_hook_fails(caplog: pytest.LogCaptureFixture) -> None:
    hooks = Hooks(HealthChecks())
    ran: list[str] = []

    async def bad() -> None:
        raise RuntimeError("no")

    async def good() -> None:
        ran.append("good")

    hooks.add_pre_shutdown("bad", bad)
    hooks.add_pre_shutdown("good", good)
    await hooks.run_pre_shutdown()
    assert ran == ["good"]
    assert "pre-shutdown hook bad failed" in caplog.text


def test_lifecycle() -> None:
    life = Lifecycle()
    phases = [life.phase]
    for signal in ("started", "ready", "stopping", "delayed", "drained", "closed"):
        getattr(life, signal).set()
        phases.append(life.phase)
    assert phases == ["starting", "started", "ready", "stopping", "delayed", "drained", "closed"]


# The chain


async def test_a_request_goes_down_the_chain(ask: Ask) -> None:
    last = GenericAPIServer("last")
    first = GenericAPIServer("first", last)
    first.routes.add("/a", named("first"))  # type: ignore[arg-type]
    last.routes.add("/a", named("last"))  # type: ignore[arg-type]
    last.routes.add("/b", named("last"))  # type: ignore[arg-type]
    assert (await first.handle(ask("GET", "/a"))).body == b"first"
    assert (await first.handle(ask("GET", "/b"))).body == b"last"
    nothing = await first.handle(ask("GET", "/c"))
    assert (nothing.status, nothing.body) == (404, b"404 page not found\n")
    last.fall_back_to(named("fallen"))  # type: ignore[arg-type]
    assert (await first.handle(ask("GET", "/c"))).body == b"fallen"
    assert [server.name for server in first.chain()] == ["first", "last"]
    assert first.paths() == ["/a", "/b"]
    assert first.hooks is last.hooks
    assert first.checks is last.checks


async def test_only_get(ask: Ask) -> None:
    route = only_get(json_route(lambda: {"a": 1}))
    assert (await route(ask("GET", "/x"))).body == b'{\n  "a": 1\n}'
    refused = await route(ask("POST", "/x"))
    assert refused.status == 405
