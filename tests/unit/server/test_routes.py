"""Which handler a path leads to."""

from __future__ import annotations

from collections.abc import Callable

from hypothesis import given
from hypothesis import strategies as st

from pilothouse.endpoints.request import APIRequest
from pilothouse.net.messages import Response
from pilothouse.server.routes import PathMux


def named(name: str) -> Callable[[APIRequest], object]:
    async def serve(request: APIRequest) -> Response:
        return Response(200, name.encode())

    return serve


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


def test_a_path_and_the_same_with_a_slash() -> None:
    mux = PathMux()
    mux.add_with_slash("/a", handler := named("handler"))  # type: ignore[arg-type]
    assert (mux.find("/a"), mux.find("/a/"), mux.paths()) == (handler, handler, ["/a"])
    mux.remove_with_slash("/a")
    assert (mux.find("/a"), mux.find("/a/")) == (None, None)


@given(st.lists(st.sampled_from(["a", "b", ""]), max_size=8))
def test_the_longest_prefix_wins(parts: list[str]) -> None:
    mux = PathMux()
    prefixes = ["/a/", "/a/b/", "/b/", "/a/b/a/"]
    for prefix in prefixes:
        mux.add_prefix(prefix, prefix)  # type: ignore[arg-type]
    path = "/" + "/".join(parts)
    fitting = [prefix for prefix in prefixes if path.startswith(prefix)]
    assert mux.find(path) == max(fitting, key=len, default=None)
