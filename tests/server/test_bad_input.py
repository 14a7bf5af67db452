"""Bad input is normal input: a clear Status, never a traceback, and the server goes on."""

from __future__ import annotations

import pytest

MAP = "/api/v1/namespaces/default/configmaps"
GOOD = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x"}}


@pytest.mark.parametrize(
    ("body", "content_type", "status", "part"),
    [
        (b"{", "application/json", 400, "unexpected end of JSON input"),
        (b"{]", "application/json", 400, "invalid character ']' looking for beginning of object key string"),
        (b"a: [", "application/yaml", 400, "yaml: line 1"),
        (b"- a", "application/yaml", 400, "cannot unmarshal array"),
        (b"{}", "text/plain", 415, "unknown format"),
        (b"x", "application/vnd.kubernetes.protobuf", 400, "does not appear to be a protobuf message"),
        (b'{"kind":"ConfigMap","metadata":{"name":5}}', "application/json", 400, "ObjectMeta.metadata.name"),
        (b'{"kind":"Secret","apiVersion":"v1"}', "application/json", 400, "unknown conversion"),
        (b'{"kind":"Nope","apiVersion":"v1"}', "application/json", 400, 'no kind "Nope" is registered'),
        (b'{"kind":"ConfigMap","apiVersion":"a/b/c"}', "application/json", 400, "unexpected GroupVersion"),
        (b"[" * 100_000, "application/json", 400, "exceeded max depth"),
        (b'{"a":' * 100_000, "application/json", 400, "exceeded max depth"),
        (b"x: " + b"[" * 100_000, "application/yaml", 400, "max depth"),
        (b" " * (3 * 1024 * 1024 + 1), "application/json", 413, "limit is 3145728"),
        (b"\xff\xfe", "application/json", 400, "invalid character"),
        (b'{"kind":"ConfigMap","metadata":{"generation":1e400}}', "application/json", 400, "number 1e400 into"),
    ],
)  # fmt: skip
def test_bodies_that_cannot_be_read(server, body, content_type, status, part):
    code, _, answer = server.call("POST", MAP, body, {"Content-Type": content_type})
    assert (code, answer["kind"], answer["code"]) == (status, "Status", status)
    assert part in answer["message"]


def test_yaml_bombs_are_refused(server):
    levels = ["a: &a [x,x,x,x,x,x,x,x,x,x]"]
    levels += [f"{c}: &{c} [{','.join(['*' + p] * 10)}]" for p, c in zip("abcdefgh", "bcdefghi", strict=True)]
    code, _, answer = server.call("POST", MAP, "\n".join(levels).encode(), {"Content-Type": "application/yaml"})
    assert code == 400
    assert "excessive aliasing" in answer["message"]


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/api/v1/nothing", 404),
        ("GET", "/apis/none.example.com/v1", 404),
        ("GET", "/api/v1/namespaces/default/configmaps/none", 404),
        ("PUT", "/api/v1/namespaces/default/configmaps", 405),
        ("POST", "/api/v1/namespaces/default/configmaps/x", 405),
        ("OPTIONS", "/api/v1/pods", 405),
        ("GET", "/api/v1/watch", 500),
        ("GET", "/api/v1/pods?labelSelector=a%20b", 400),
        ("GET", "/api/v1/pods?fieldSelector=spec.containers%3D1", 400),
        ("GET", "/api/v1/pods?limit=many", 400),
        ("PATCH", "/apis/apps//", 405),
        ("PUT", "/api/v1//", 405),
        ("GET", "/apis//", 404),
        ("GET", "/api/v1/pods?continue=!!", 400),
        ("GET", "/api/v1/pods?resourceVersion=x", 400),
        ("GET", "/api/v1/pods?resourceVersionMatch=Exact", 422),
        ("GET", "/api/v1/pods?watch=1&resourceVersion=x", 500),
    ],
)
def test_paths_methods_and_queries(server, method, path, status):
    assert server.call(method, path)[0] == status


@pytest.mark.parametrize("name", ["", "UPPER", "a" * 254, "..", "a/b", "-a", "a_b", "ä"])
def test_bad_names(server, name):
    code, _, answer = server.call("POST", MAP, {**GOOD, "metadata": {"name": name}})
    assert (code, answer["reason"]) == (422, "Invalid")
    assert answer["details"]["causes"][0]["field"] == "metadata.name"


def test_unknown_fields_are_dropped_and_warned_about(server):
    body = {**GOOD, "metadata": {"generateName": "warned-", "labls": {}}, "extra": 1}
    code, headers, answer = server.call("POST", MAP, body)
    assert code == 201
    assert "extra" not in answer
    assert 'unknown field \\"metadata.labls\\"' in headers["warning"]


def test_strict_validation_names_every_error(server):
    raw = b'{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"s"},"data":{"a":"1","a":"2"},"b":1}'
    code, _, answer = server.call("POST", MAP + "?fieldValidation=Strict", raw, {"Content-Type": "application/json"})
    assert code == 400
    assert answer["message"].endswith('strict decoding error: duplicate field "data.a", unknown field "b"')


def test_characters_of_unknown_fields_are_quoted_as_the_way_of_reading_has_it(server):
    server.call("POST", MAP, {**GOOD, "metadata": {"name": "quoted"}})
    strict, body = f"{MAP}/quoted?fieldValidation=Strict", {"metadata": {"a\u2028b": 1}}
    for kind, shown in (("strategic-merge-patch", "a\u2028b"), ("merge-patch", "a\\u2028b")):
        code, _, answer = server.call("PATCH", strict, body, {"Content-Type": f"application/{kind}+json"})
        assert code == 422
        assert answer["message"].endswith(f'strict decoding error: unknown field "metadata.{shown}"')


@pytest.mark.parametrize("version", ["v1/", "apps/"])
def test_a_group_and_a_slash_are_no_version(server, version):
    body = {**GOOD, "apiVersion": version}
    code, _, answer = server.call("POST", MAP, body)
    assert code == 400
    why = "ConfigMap in version \"\" cannot be handled as a ConfigMap: Object 'apiVersion' is missing in '{"
    assert answer["message"].startswith(why)
    options = {"kind": "DeleteOptions", "apiVersion": version}
    code, _, answer = server.call("DELETE", f"{MAP}/none", options)
    assert (code, answer["message"][:34]) == (400, "Object 'apiVersion' is missing in ")
    code, _, answer = server.call("DELETE", f"{MAP}/none", {**options, "apiVersion": "a/b/c"})
    assert (code, answer["message"]) == (400, "unexpected GroupVersion string: a/b/c")


def test_optimistic_concurrency(server):
    _, _, made = server.call("POST", MAP, {**GOOD, "metadata": {"generateName": "lock-"}})
    path = f"{MAP}/{made['metadata']['name']}"
    assert server.call("PUT", path, {**made, "data": {"a": "1"}})[0] == 200
    code, _, answer = server.call("PUT", path, {**made, "data": {"a": "2"}})
    assert (code, answer["reason"]) == (409, "Conflict")


@pytest.mark.parametrize(
    ("raw", "part"),
    [
        (b"\x08\x01", "proto: wrong wireType = 0 for field ObjectMeta"),
        (b"\x12\x01\x0b", "unexpected EOF"),
    ],
)
def test_faulty_protobuf_is_told_with_the_names_of_go(server, raw, part):
    body = b"k8s\0\x0a\x0f\x0a\x02v1\x12\x09ConfigMap\x12" + bytes((len(raw),)) + raw
    code, _, answer = server.call("POST", MAP, body, {"Content-Type": "application/vnd.kubernetes.protobuf"})
    assert (code, part in answer["message"]) == (400, True), answer["message"]


@pytest.mark.parametrize(
    ("path", "rows"),
    [
        ("/apis/rbac.authorization.k8s.io/v1/roles", None),
        ("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", None),
        ("/api/v1/nodes", []),
    ],
)
def test_tables_without_rows(server, path, rows):
    table = {"Accept": "application/json;as=Table;g=meta.k8s.io;v=v1"}
    code, _, answer = server.call("GET", f"{path}?labelSelector=nobody%3Dhas", headers=table)
    assert (code, answer["rows"]) == (200, rows)
