"""Heads of requests that are long or odd: headers, queries, tokens, and paths that cost more than they should."""

from __future__ import annotations

import base64
import socket
from collections.abc import Callable
from contextlib import suppress
from http.client import HTTPException, HTTPSConnection
from typing import Any
from urllib.parse import quote

import orjson
import pytest

MAPS = "/api/v1/namespaces/default/configmaps"
LONG = 900_000


def ask(victim: Any, path: str, headers: list[tuple[str, str]], *, anonymous: bool = False, method: str = "GET") -> int:
    """The status; 0 if the server hung up."""
    connection = HTTPSConnection("127.0.0.1", victim.port, timeout=60, context=victim.contexts[anonymous])
    try:
        connection.putrequest(method, path, skip_accept_encoding=True)
        for name, value in headers:
            connection.putheader(name, value)
        connection.endheaders()
        answer = connection.getresponse()
        answer.read()
        return answer.status
    except (OSError, HTTPException):
        return 0
    finally:
        connection.close()


@pytest.mark.parametrize(
    ("what", "make"),
    [
        ("an Accept of 300,000 clauses", lambda: [("Accept", "a/b," * 220_000 + "*/*")]),
        ("an Accept with 100,000 parameters", lambda: [("Accept", "application/json" + ";a=b" * 200_000)]),
        ("Accepts of growing weights", lambda: [("Accept", ",".join(f"a/b;q=0.{n}" for n in range(60_000)))]),
        ("an Accept-Encoding of 200,000 codings", lambda: [("Accept-Encoding", "a," * 400_000 + "gzip")]),
        ("an If-None-Match of 100,000 tags", lambda: [("If-None-Match", '"a",' * 200_000)]),
        ("an Authorization of 900 KB", lambda: [("Authorization", "Bearer " + "a" * LONG)]),
        ("a token of 900 KB", lambda: [("Authorization", "Bearer " + "a." * (LONG // 2))]),
        ("a user agent of 900 KB", lambda: [("User-Agent", "a/" * (LONG // 2))]),
        ("20,000 headers", lambda: [(f"x-{number}", "a") for number in range(20_000)]),
        (
            "20,000 groups",
            lambda: [("Impersonate-User", "a"), *(("Impersonate-Group", f"g{n}") for n in range(20_000))],
        ),
        ("extras", lambda: [("Impersonate-User", "a"), *((f"Impersonate-Extra-k{n}", "v") for n in range(10_000))]),
        ("an Origin of 900 KB", lambda: [("Origin", "http://" + "a." * (LONG // 2))]),
        ("a traceparent of 900 KB", lambda: [("traceparent", "00-" + "0" * LONG)]),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_long_headers(victim: Any, what: str, make: Callable[[], list[tuple[str, str]]]) -> None:
    headers = make()
    with victim.attacked(what):
        for anonymous in (False, True):
            assert ask(victim, MAPS, headers, anonymous=anonymous) in (0, 200, 304, 400, 401, 403, 406, 431)


@pytest.mark.parametrize(
    ("what", "make"),
    [
        ("100,000 parameters", lambda: "&".join(f"a{n}=b" for n in range(90_000))),
        ("one parameter 200,000 times", lambda: "limit=1&" * 100_000),
        ("a continue token of 900 KB", lambda: "continue=" + "A" * LONG),
        (
            "a continue token of deep JSON",
            lambda: "continue=" + quote(base64.urlsafe_b64encode(b"[" * 500_000).decode()),
        ),
        ("a limit of many digits", lambda: "limit=" + "9" * 200_000),
        ("a resourceVersion of many digits", lambda: "resourceVersion=" + "9" * 200_000),
        ("a timeout of many digits", lambda: "watch=1&timeoutSeconds=" + "9" * 200_000),
        ("a timeout that is a duration", lambda: "timeout=" + "1h" * 200_000),
        ("escapes", lambda: "a=" + "%41" * 300_000),
        ("nested parentheses in a selector", lambda: "labelSelector=" + quote("a in (" * 100_000)),
        ("a field selector of escapes", lambda: "fieldSelector=" + quote("metadata.name=" + "\\," * 200_000)),
        ("a field manager of 900 KB", lambda: "fieldManager=" + "a" * LONG),
        ("dry runs", lambda: "dryRun=All&" * 80_000),
    ],
    ids=lambda value: value[:20] if isinstance(value, str) else "",
)
def test_long_queries(victim: Any, what: str, make: Callable[[], str]) -> None:
    query = make()
    body = orjson.dumps({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"generateName": "query-"}})
    with victim.attacked(f"{what} in the query"):
        assert victim.call("GET", f"{MAPS}?{query}").status in (0, 200, 400, 410, 414, 431)
        assert victim.call("POST", f"{MAPS}?{query}", body).status in (0, 201, 400, 414, 422, 431)
        assert victim.call("DELETE", f"{MAPS}/none?{query}").status in (0, 400, 404, 414, 422, 431)
        assert victim.call("GET", f"{MAPS}?{query}", anonymous=True).status in (0, 400, 403, 414, 431)


@pytest.mark.parametrize(
    ("head", "part", "count", "tail"),
    [
        ("", "/", 500_000, ""),
        ("/api/v1", "/a", 200_000, ""),
        ("/apis/", "a.", 200_000, "/v1/x"),
        ("", "/%2e", 100_000, ""),
        ("/", "%61", 320_000, ""),
        ("/openapi/v3/", "a/", 200_000, ""),
    ],
)
def test_long_paths(victim: Any, head: str, part: str, count: int, tail: str) -> None:
    path = head + part * count + tail
    with victim.attacked(f"a path of {len(path) >> 10} KB, {path[:8]}"):
        for anonymous in (False, True):
            for method in ("GET", "POST", "PATCH"):
                assert ask(victim, path, [], anonymous=anonymous, method=method) in (
                    0,
                    301,
                    400,
                    403,
                    404,
                    405,
                    414,
                    431,
                )


def token(header: Any, claims: Any = None) -> str:
    parts = [header if isinstance(header, bytes) else orjson.dumps(header), orjson.dumps(claims or {}), b"x" * 64]
    return ".".join(base64.urlsafe_b64encode(part).decode().rstrip("=") for part in parts)


@pytest.mark.parametrize(
    ("what", "given"),
    [
        ("a key id of 600 KB", token({"alg": "RS256", "kid": "k" * 600_000})),
        ("a header of deep lists", token(b'{"alg":' + b"[" * 500_000)),
        ("100,000 claims", token({"alg": "RS256", "kid": "a"}, {f"c{n}": n for n in range(40_000)})),
        ("an audience of 50,000", token({"alg": "RS256", "kid": "a"}, {"aud": [f"a{n}" for n in range(50_000)]})),
    ],
    ids=lambda value: value[:16] if isinstance(value, str) else "",
)
def test_odd_tokens(victim: Any, what: str, given: str) -> None:
    with victim.attacked(f"a token with {what}"):
        for _ in range(5):
            assert ask(victim, MAPS, [("Authorization", f"Bearer {given}")], anonymous=True) in (0, 401, 431)
        review = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "spec": {"token": given}}
        answer = victim.call("POST", "/apis/authentication.k8s.io/v1/tokenreviews", review)
        assert not answer.json["status"].get("authenticated")


def test_many_tokens(victim: Any) -> None:
    """Each token is another one, and none is known: what is remembered of them is bounded."""
    with victim.attacked("2,000 invented tokens", allowance=24 << 20):
        connection = HTTPSConnection("127.0.0.1", victim.port, timeout=60, context=victim.contexts[True])
        for number in range(2_000):
            given = token({"alg": "RS256", "kid": f"k{number}"}, {"sub": "x" * 2_000})
            connection.request("GET", MAPS, headers={"Authorization": f"Bearer {given}"})
            answer = connection.getresponse()
            answer.read()
            assert answer.status == 401
        connection.close()


@pytest.mark.parametrize(
    "path", ["/metrics", "/debug/pprof/profile?seconds=1", "/debug/pprof/heap", "/openapi/v2", "/logs/", "/configz"]
)
def test_pages_for_strangers(victim: Any, path: str) -> None:
    with victim.attacked(f"{path} by strangers"):
        assert {ask(victim, path, [], anonymous=True) for _ in range(50)} <= {403, 404}


@pytest.mark.parametrize("said", [b"1\r\na\r\n", b"1;" + b"x" * 400 + b"\r\na\r\n"], ids=["bytes", "extensions"])
def test_bodies_in_many_chunks(victim: Any, said: bytes) -> None:
    head = f"POST {MAPS} HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"
    with victim.attacked(f"a body in chunks of {len(said)} bytes for one"):
        plain = socket.create_connection(("127.0.0.1", victim.port), timeout=60)
        with victim.contexts[False].wrap_socket(plain, server_hostname="127.0.0.1") as connection, suppress(OSError):
            connection.sendall(head.encode())
            for _ in range(100):
                connection.sendall(said * 1_000)
            connection.sendall(b"0\r\n\r\n")
            assert connection.recv(12) in (b"HTTP/1.1 400", b"HTTP/1.1 500")


def test_bodies_that_never_end(victim: Any) -> None:
    """Two hundred clients that send a byte of a body now and then: each costs a connection and nothing else."""
    head = f"POST {MAPS} HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: 3000000\r\n\r\n"
    with victim.attacked("200 bodies that never end", allowance=32 << 20):
        open_ones = []
        for _ in range(200):
            plain = socket.create_connection(("127.0.0.1", victim.port), timeout=60)
            connection = victim.contexts[False].wrap_socket(plain, server_hostname="127.0.0.1")
            connection.sendall(head.encode() + b"{")
            open_ones.append(connection)
        for connection in open_ones:
            connection.sendall(b" ")
        assert victim.call("GET", MAPS).status == 200
        for connection in open_ones:
            connection.close()


def test_compressed_bodies(victim: Any) -> None:
    """Nobody unpacks what clients send: kube-apiserver takes no compressed bodies either."""
    import gzip

    bomb = gzip.compress(b"{") + gzip.compress(b" " * 1_000_000) * 200 + gzip.compress(b"}")
    with victim.attacked("a body that unpacks to 200 MB"):
        connection = HTTPSConnection("127.0.0.1", victim.port, timeout=60, context=victim.contexts[False])
        headers = {"Content-Type": "application/json", "Content-Encoding": "gzip"}
        connection.request("POST", MAPS, bomb, headers)
        assert connection.getresponse().status == 400
        connection.close()
