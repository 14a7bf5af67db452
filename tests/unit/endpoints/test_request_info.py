"""What a request is about, for every shape of path."""

from __future__ import annotations

from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pilothouse.endpoints.query import Query
from pilothouse.endpoints.request_info import BadPath, RequestInfo, resolve
from pilothouse.machinery import fields


def read(method: str, target: str) -> RequestInfo:
    path, _, query = target.partition("?")
    return resolve(method, path, Query(query))


def shown(info: RequestInfo) -> tuple[str, ...]:
    return info.verb, info.group, info.version, info.namespace, info.resource, info.subresource, info.name


@pytest.mark.parametrize(
    ("method", "path", "wanted"),
    [
        ("GET", "/api/v1/namespaces", ("list", "", "v1", "", "namespaces", "", "")),
        ("GET", "/api/v1/namespaces/a", ("get", "", "v1", "a", "namespaces", "", "a")),
        ("GET", "/api/v1/namespaces/a/", ("get", "", "v1", "a", "namespaces", "", "a")),
        ("PUT", "/api/v1/namespaces/a/finalize", ("update", "", "v1", "a", "namespaces", "finalize", "a")),
        ("GET", "/api/v1/namespaces/a/status", ("get", "", "v1", "a", "namespaces", "status", "a")),
        ("GET", "/api/v1/namespaces/a/pods", ("list", "", "v1", "a", "pods", "", "")),
        ("HEAD", "/api/v1/namespaces/a/pods/b", ("get", "", "v1", "a", "pods", "", "b")),
        ("GET", "/api/v1/namespaces/a/pods/b/log", ("get", "", "v1", "a", "pods", "log", "b")),
        ("GET", "/api/v1/namespaces/a/pods/b/proxy/x/y", ("get", "", "v1", "a", "pods", "proxy", "b")),
        ("GET", "/api/v1/pods", ("list", "", "v1", "", "pods", "", "")),
        ("GET", "/api/v1/pods?watch=true", ("watch", "", "v1", "", "pods", "", "")),
        ("GET", "/api/v1/pods?watch=0", ("list", "", "v1", "", "pods", "", "")),
        ("GET", "/api/v1/pods?watch=perhaps", ("watch", "", "v1", "", "pods", "", "")),
        ("GET", "/api/v1/watch/pods", ("watch", "", "v1", "", "pods", "", "")),
        ("GET", "/api/v1/watch/namespaces/a/pods/b", ("watch", "", "v1", "a", "pods", "", "b")),
        ("GET", "/api/v1/proxy/namespaces/a/pods/b/c", ("proxy", "", "v1", "a", "pods", "", "b")),
        ("POST", "/apis/apps/v1/namespaces/a/deployments", ("create", "apps", "v1", "a", "deployments", "", "")),
        ("PATCH", "/apis/apps/v1/namespaces/a/deployments/b", ("patch", "apps", "v1", "a", "deployments", "", "b")),
        (
            "DELETE",
            "/apis/apps/v1/namespaces/a/deployments",
            ("deletecollection", "apps", "v1", "a", "deployments", "", ""),
        ),
        ("DELETE", "/api/v1/nodes/n", ("delete", "", "v1", "", "nodes", "", "n")),
        ("OPTIONS", "/api/v1/nodes/n", ("", "", "v1", "", "nodes", "", "n")),
        ("GET", "/api/v1/secrets?fieldSelector=metadata.name%3Dx", ("list", "", "v1", "", "secrets", "", "x")),
        ("GET", "/api/v1/secrets?fieldSelector=a%3Db,metadata.name%3D%3Dx", ("list", "", "v1", "", "secrets", "", "x")),
        ("GET", "/api/v1/secrets?fieldSelector=metadata.name!%3Dx", ("list", "", "v1", "", "secrets", "", "")),
        ("GET", "/api/v1/secrets?fieldSelector=metadata.name%3Da/b", ("list", "", "v1", "", "secrets", "", "")),
    ],
)
def test_resources(method: str, path: str, wanted: tuple[str, ...]) -> None:
    info = read(method, path)
    assert info.is_resource
    assert shown(info) == wanted


@pytest.mark.parametrize(
    "path", ["/", "/api", "/api/v1", "/api/v1/", "/apis", "/apis/apps", "/apis/apps/v1", "/healthz/ping"]
)
def test_everything_else(path: str) -> None:
    info = read("POST", path)
    assert not info.is_resource
    assert shown(info) == ("post", "", "", "", "", "", "")


@pytest.mark.parametrize("path", ["/api/v1/watch", "/api/v1/proxy", "/apis/apps/v1/watch/"])
def test_paths_that_stop_short(path: str) -> None:
    with pytest.raises(BadPath, match="unable to determine kind and namespace from url"):
        read("GET", path)


SEGMENTS = st.sampled_from(["", "api", "apis", "v1", "watch", "proxy", "namespaces", "pods", "a", "status", "é", ".."])


@given(st.sampled_from(["GET", "POST", "DELETE", "BREW"]), st.lists(SEGMENTS, max_size=9), st.text(max_size=30))
def test_any_path_is_read_or_refused(method: str, segments: list[str], query: str) -> None:
    try:
        info = resolve(method, "/" + "/".join(segments), Query(query))
    except BadPath:
        return
    if info.is_resource:
        assert info.prefix in ("api", "apis")
        assert info.resource == info.parts[0]


SELECTOR = st.lists(
    st.sampled_from(["metadata.name", "metadata.namespace", "=", "==", "!=", ",", "\\", "\\,", "\\=", "a", "b", " "]),
    max_size=12,
).map("".join)


@given(SELECTOR)
def test_a_name_is_taken_only_from_a_selector_that_demands_it(selector: str) -> None:
    """Otherwise somebody allowed to list one name could list others."""
    name = read("GET", f"/api/v1/secrets?fieldSelector={quote(selector)}").name
    if not name:
        return
    try:
        parsed = fields.parse(selector)
    except ValueError:
        return  # such a list is refused
    demanded = [r.value for r in parsed.requirements if r.field == "metadata.name" and r.operator != "!="]
    assert name in demanded
