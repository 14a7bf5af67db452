"""A search for a way around the rights: thousands of odd requests, each judged by an oracle that knows only the rights.

The outsider is a service account that may do everything with the config maps of one namespace. Whatever answer in the
200s it gets must be for a path that is allowed to it, as read by a few lines here that share nothing with the server;
and nothing that it may not write has changed at the end.
"""

from __future__ import annotations

import asyncio
import base64
import json
import random
import re
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote

import pytest

from pilothouse.testing.in_process import InProcessServer

RBAC = "/apis/rbac.authorization.k8s.io/v1"
HIDDEN = base64.b64encode(b"hold me").decode()
SEGMENTS = (
    "api", "apis", "v1", "v2", "namespaces", "open", "closed", "secrets", "configmaps", "kept", "watch",
    "proxy", "nodes", "status", "finalize", "exec", "log", "token", "serviceaccounts", "default", "pods",
    "rbac.authorization.k8s.io", "clusterroles", "apps", "deployments", "scale", "events", "..", ".", "",
    "%2e%2e", "%2E", "%2f", "%2F..%2F", "%252f", "a%00b", ";", "*", "~", "metrics", "openapi", "v3", "logs",
    "debug", "pprof", "healthz", "version", "flagz", "statusz", "configz", "apiextensions.k8s.io",
    "customresourcedefinitions", "%C0%AE%C0%AE", "\\", "ＡＰＩ", "kept%20", "kept%0a",
)  # fmt: skip
BASES = (
    "/api/v1/namespaces/closed/secrets/kept",
    "/api/v1/namespaces/open/configmaps/kept",
    "/api/v1/namespaces/open/configmaps",
    "/api/v1/watch/namespaces/open/configmaps",
    "/apis/authorization.k8s.io/v1/selfsubjectrulesreviews",
    "/apis/apps/v1",
    "/version",
    "/api/v1/namespaces/open/secrets/kept",
    "/api/v1/namespaces/closed/configmaps/kept",
    "/api/v1/secrets",
    "/api/v1/watch/namespaces/closed/secrets",
    "/api/v1/namespaces/closed",
    "/api/v1/nodes/n/proxy/x",
    "/api/v1/namespaces/open/services/x/proxy/",
    "/api/v1/namespaces/open/serviceaccounts/default/token",
    "/api/v1/namespaces/open/pods/p/exec",
    f"{RBAC}/clusterrolebindings",
    f"{RBAC}/namespaces/open/roles",
    "/apis/authorization.k8s.io/v1/subjectaccessreviews",
    "/apis/authentication.k8s.io/v1/tokenreviews",
    "/apis/certificates.k8s.io/v1/certificatesigningrequests/x/approval",
    "/metrics",
    "/logs/",
    "/debug/pprof/",
)
GRAFTS = (
    "",
    "/",
    "/./",
    "//",
    "%2f",
    "/../",
    "%2e%2e/",
    "%2e",
    "%00",
    ";x",
    "?",
    "%3f",
    "#",
    "%23",
    "\\",
    "*",
    "\t",
    "%",
)
QUERIES = (
    "", "", "?watch=1", "?limit=1", "?fieldSelector=metadata.name%3Dkept", "?labelSelector=a", "?namespace=open",
    "?as=system:admin", "?as-group=system:masters", "?dryRun=All", "?pretty=1&watch=true", "?path=/secrets",
    r"?fieldSelector=metadata.namespace!%3Dx%5C%2Cmetadata.name%3Dopen", "?resourceVersion=0&sendInitialEvents=true",
    "?access_token=x", "?command=ls&stdout=1", "?%00", "?force=true&fieldManager=x",
)  # fmt: skip
HEADERS = (
    "Impersonate-User: kubernetes-admin",
    "impersonate-user: system:serviceaccount:kube-system:default",
    "IMPERSONATE-USER: kubernetes-admin\r\nIMPERSONATE-GROUP: system:masters",
    "Impersonate-Group: system:masters",
    "Impersonate-Uid: 1",
    "Impersonate-Extra-Scopes: a",
    "Impersonate_User: kubernetes-admin",
    "Impersonate-User:\tkubernetes-admin",
    "X-Remote-User: kubernetes-admin\r\nX-Remote-Group: system:masters",
    "x-remote-group: system:masters",
    "X-Remote-Uid: 1",
    "X-Remote-Extra-Authentication.Kubernetes.Io%2fNode-Name: x",
    "X_Remote_User: kubernetes-admin",
    "Authorization: Basic YWRtaW46YWRtaW4=",
    "X-Original-URL: /api/v1/secrets",
    "X-Rewrite-URL: /api/v1/secrets",
    "X-HTTP-Method-Override: DELETE",
    "X-Forwarded-For: 127.0.0.1",
    "X-Forwarded-Uri: /api/v1/secrets",
    "Forwarded: for=127.0.0.1",
    "Host: kubernetes.default",
    "Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
    "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==",
    "Upgrade: SPDY/3.1\r\nConnection: Upgrade",
    "Accept: application/json;as=Table;v=v1;g=meta.k8s.io",
    "Accept: application/vnd.kubernetes.protobuf",
    "Expect: 100-continue",
    "Proxy-Authorization: Bearer x",
)
FRAMING = (
    "Content-Length: 4\r\nContent-Length: 5",
    "Transfer-Encoding: chunked\r\nContent-Length: 3",
    "Transfer-Encoding: chunked, identity",
    "Content-Length: +0",
    "Content-Length: 0x0",
)
METHODS = (
    *["GET"] * 8,
    "GET",
    "GET",
    "GET",
    "HEAD",
    "POST",
    "PUT",
    "PATCH",
    "DELETE",
    "get",
    "OPTIONS",
    "TRACE",
    "CONNECT",
    "PROPFIND",
)
BODIES: tuple[dict[str, Any], ...] = (
    {},
    {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "evil", "namespace": "closed"}},
    {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "kept", "namespace": "closed"}, "data": {}},
    {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {"name": "evil"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"},
        "subjects": [{"kind": "ServiceAccount", "namespace": "open", "name": "default"}],
    },
    {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}},
    {"kind": "DeleteOptions", "apiVersion": "v1"},
)
PUBLIC = re.compile(r"/(healthz|livez|readyz|version/?)")
FOR_EVERYBODY_KNOWN = re.compile(
    r"/(api(/[^/]*)?/?|apis(/[^/]*){0,2}/?|healthz|livez|readyz|version/?|openapi(/.*)?|"
    r"\.well-known/openid-configuration/?|openid/v1/jwks/?)"
)
OWN_REVIEWS = re.compile(
    r"/apis/(authorization\.k8s\.io/v1/selfsubject(access|rules)reviews|"
    r"authentication\.k8s\.io/v1/selfsubjectreviews)/?"
)
OWN_MAPS = re.compile(r"/api/v1/(watch/)?namespaces/open/configmaps(/[^/]+)*/?")


@dataclass
class Prey:
    """A running server with something to hide, and a plain door to it."""

    server: InProcessServer
    host: str
    port: int
    token: str


@pytest.fixture
async def prey() -> AsyncIterator[Prey]:
    async with InProcessServer() as server:
        token = await set_up(server)
        http = server.process.serving.http
        door = await asyncio.get_running_loop().create_server(http.protocol, "127.0.0.1", 0)
        host, port = door.sockets[0].getsockname()
        yield Prey(server, host, port, token)
        door.close()


async def set_up(server: InProcessServer) -> str:
    """The namespaces, the secrets and the one right; the outsider's token."""
    rules = [{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["*"]}]
    binding = {
        "metadata": {"name": "open"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "open"},
        "subjects": [{"kind": "ServiceAccount", "namespace": "open", "name": "default"}],
    }
    wanted: list[tuple[str, dict[str, Any]]] = []
    for name in ("open", "closed"):
        wanted += [
            ("/api/v1/namespaces", {"metadata": {"name": name}}),
            (f"/api/v1/namespaces/{name}/serviceaccounts", {"metadata": {"name": "default"}}),
            (f"/api/v1/namespaces/{name}/secrets", {"metadata": {"name": "kept"}, "data": {"hold": HIDDEN}}),
            (f"/api/v1/namespaces/{name}/configmaps", {"metadata": {"name": "kept"}, "data": {"in": name}}),
        ]
    wanted += [
        (f"{RBAC}/namespaces/open/roles", {"metadata": {"name": "open"}, "rules": rules}),
        (f"{RBAC}/namespaces/open/rolebindings", binding),
    ]
    for path, body in wanted:
        assert (await as_administrator(server, "POST", path, body))[0] == 201, path
    made = await as_administrator(server, "POST", "/api/v1/namespaces/open/serviceaccounts/default/token", {"spec": {}})
    token: str = json.loads(made[1])["status"]["token"]
    return token


async def as_administrator(server: InProcessServer, method: str, path: str, body: Any = None) -> tuple[int, bytes]:
    data = b"" if body is None else json.dumps(body).encode()
    head = f"{method} {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Type: application/json\r\n"
    reader, writer = await asyncio.open_connection("127.0.0.1", server.port, ssl=server.ssl_context())
    writer.write(f"{head}Content-Length: {len(data)}\r\n\r\n".encode() + data)
    answer = await reader.read()
    writer.close()
    return int(answer[9:12]), answer.partition(b"\r\n\r\n")[2]


def make_request(chance: random.Random, token: str) -> tuple[bytes, str, str, bool]:
    """A request; its method, its target, and whether it shows the outsider's token properly."""
    method = chance.choice(METHODS)
    if chance.random() < 0.4:
        target = "/" + "/".join(chance.choice(SEGMENTS) for _ in range(chance.randint(1, 8)))
    else:
        target = chance.choice(BASES)
        for _ in range(chance.choice((0, 1, 1, 2))):
            at = chance.randint(1, len(target))
            target = target[:at] + chance.choice(GRAFTS) + target[at:]
    if chance.random() < 0.1:
        target = chance.choice(("https://x", "http://x:1", "//x", "")) + target
    target += chance.choice(QUERIES)
    lines = [f"{method} {target} HTTP/1.1", "Host: x", "Connection: close"]
    shown = chance.choice(
        [*[token] * 9, "", token[:-3], token + "=", token.swapcase(), f"{token.rpartition('.')[0]}.", "x", None]
    )
    scheme = chance.choice(["Bearer", "Bearer", "Bearer", "bearer", "BEARER", "Bearer "])
    if shown is not None:
        lines.append(f"Authorization: {scheme} {shown}")
    lines += chance.sample(HEADERS, chance.choice((0, 0, 1, 2, 3)))
    body = b""
    if chance.random() < 0.05:
        lines.append(chance.choice(FRAMING))
    elif method not in ("GET", "HEAD") or chance.random() < 0.1:
        body = json.dumps(chance.choice(BODIES)).encode()
        kind = "application/merge-patch+json" if method == "PATCH" else "application/json"
        lines += [f"Content-Type: {kind}", f"Content-Length: {len(body)}"]
    known = shown == token and scheme.strip() == scheme
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body, method, target, known


def is_allowed(method: str, target: str, known: bool) -> bool:
    """What the rights say about a path, read in the plainest way."""
    path = re.sub(r"^https?://[^/]*", "", target.partition("#")[0].partition("?")[0])
    path = re.sub("/+", "/", unquote(path, errors="replace"))
    if "/../" in path + "/" or "/./" in path + "/":
        return False
    if PUBLIC.fullmatch(path):
        return True
    if not known:
        return False
    if OWN_MAPS.fullmatch(path):
        return True
    if OWN_REVIEWS.fullmatch(path):
        return method == "POST"
    return bool(FOR_EVERYBODY_KNOWN.fullmatch(path))


async def ask(prey: Prey, request: bytes) -> tuple[int, bytes]:
    """The status (0 for none) and what came first of the answer."""
    reader, writer = await asyncio.open_connection(prey.host, prey.port)
    try:
        writer.write(request)
        answer = await reader.readuntil(b"\r\n\r\n")
        if b"chunked" not in answer:
            answer += await reader.read()
        while answer.startswith(b"HTTP/1.1 100 "):
            answer = answer.partition(b"\r\n\r\n")[2]
    except asyncio.IncompleteReadError as error:
        answer = error.partial
    except ConnectionError:
        answer = b""
    finally:
        writer.close()
    return (int(answer[9:12]) if answer.startswith(b"HTTP/1.1 ") else 0), answer


def kept(prey: Prey) -> dict[str, int]:
    """Everything that the outsider may not change, with its revision."""
    storage = prey.server.process.cluster.storage
    found: dict[str, int] = {}
    for group, resource in (
        ("", "secrets"), ("", "configmaps"), ("", "namespaces"), ("", "serviceaccounts"), ("", "pods"), ("", "nodes"),
        ("rbac.authorization.k8s.io", "roles"), ("rbac.authorization.k8s.io", "rolebindings"),
        ("rbac.authorization.k8s.io", "clusterroles"), ("rbac.authorization.k8s.io", "clusterrolebindings"),
        ("apps", "deployments"), ("certificates.k8s.io", "certificatesigningrequests"),
    ):  # fmt: skip
        for entry in storage.store(group, "v1", resource).cache.entries():
            if resource != "configmaps" or entry.namespace != "open":
                found[entry.key] = entry.revision
    return found


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.soak) for seed in range(1, 10))])
async def test_nothing_is_given_or_changed_without_a_right(prey: Prey, seed: int) -> None:
    chance = random.Random(seed)
    before = kept(prey)
    reached = 0
    for _ in range(4000):
        request, method, target, known = make_request(chance, prey.token)
        status, answer = await ask(prey, request)
        assert HIDDEN.encode() not in answer, request
        assert status < 600
        assert b"Traceback" not in answer
        if 200 <= status < 300 or status == 101:
            assert is_allowed(method, target, known), (request, answer[:300])
        reached += status not in (0, 400, 401, 403)
    assert kept(prey) == before
    assert reached > 40, "the search hardly got past the door"


@pytest.mark.parametrize(
    ("method", "target", "known", "allowed"),
    [
        ("GET", "/api/v1/namespaces/open/configmaps/kept", True, True),
        ("GET", "/api/v1/namespaces/open/configmaps/kept", False, False),
        ("GET", "/api/v1/namespaces/open/../closed/configmaps", True, False),
        ("GET", "/api/v1/namespaces/closed/configmaps", True, False),
        ("GET", "/api/v1", True, True),
        ("GET", "/api/v1/secrets", True, False),
        ("GET", "/version", False, True),
        ("GET", "/metrics", True, False),
    ],
)
def test_the_oracle_knows_the_rights(method: str, target: str, known: bool, allowed: bool) -> None:
    assert is_allowed(method, target, known) is allowed


MAPS = "/api/v1/namespaces/open/configmaps"
ODD_FORMS: list[tuple[str, list[str], int]] = [
    (f"GET {MAPS}", ["Authorization: Bearer {token}"], 200),
    (f"GET {MAPS}", ["Authorization: Bearer {token}", "Authorization: Bearer x"], 200),
    (f"GET {MAPS}", ["Authorization: Bearer x", "Authorization: Bearer {token}"], 401),
    (f"GET {MAPS}", ["Authorization: Bearer {token} more"], 200),
    (f"GET {MAPS}", ["Authorization: Bearer  {token}"], 403),
    (f"GET {MAPS}", ["Authorization: Bearer\t{token}"], 403),
    (f"GET {MAPS}", ["Authorization: Bearer {token}\x00"], 400),
    (f"GET {MAPS}", ["Authorization : Bearer {token}"], 400),
    (f"GET {MAPS}", ["X: y", " Authorization: Bearer {token}"], 400),
    (f"GET {MAPS}?access_token={{token}}", [], 403),
    (f"GET {MAPS}", ["Authorization: Bearer {token}", "Impersonate-User: "], 200),
    (f"GET {MAPS}", ["Authorization: Bearer {token}", "Impersonate-User: ", "Impersonate-Group: a"], 400),
    (f"GET {MAPS}", ["Authorization: Bearer {token}", "Impersonate-Extra-: a"], 400),
    (f"GET {MAPS}", ["Authorization: Bearer {token}", "Impersonate-User: a", "Impersonate-User: b"], 403),
    (f"GET {MAPS}", ["Authorization: Bearer {token}", "X-Remote-User: kubernetes-admin"], 200),
    ("GET /api/v1/secrets", ["Authorization: Bearer {token}", "X-Remote-Group: system:masters"], 403),
    (f"GET https://elsewhere{MAPS}", ["Authorization: Bearer {token}"], 200),
    ("GET https://elsewhere/api/v1/secrets", ["Authorization: Bearer {token}"], 403),
    (f"POST {MAPS}", ["Authorization: Bearer {token}", "Content-Length: -1"], 400),
    (f"POST {MAPS}", ["Authorization: Bearer {token}", "Content-Length: 2, 2"], 400),
    (f"POST {MAPS}", ["Authorization: Bearer {token}", "Transfer-Encoding: gzip, chunked"], 501),
    (f"GET {MAPS}", ["Authorization: Bearer {token}", *(f"X-{number}: 1" for number in range(100_000))], 431),
    (f"GET {MAPS}", ["Authorization: Bearer {token}", "X: " + "x" * 1_100_000], 431),
    (f"GET {MAPS}/.." + "/closed/configmaps", ["Authorization: Bearer {token}"], 403),
    (f"GET {MAPS}/%2e%2e", ["Authorization: Bearer {token}"], 400),
    (f"GET {MAPS}/%zz", ["Authorization: Bearer {token}"], 400),
    (f"GET {MAPS}/a b", ["Authorization: Bearer {token}"], 400),
]


async def test_odd_forms_of_credentials_and_requests(prey: Prey) -> None:
    wrong = []
    for line, headers, expected in ODD_FORMS:
        lines = [f"{line.replace('{token}', prey.token)} HTTP/1.1", "Host: x", "Connection: close"]
        lines += [header.replace("{token}", prey.token) for header in headers]
        status, answer = await ask(prey, "\r\n".join(lines).encode() + b"\r\n\r\n")
        if status != expected or (status == 200 and b'"in":"open"' not in answer):
            wrong.append((line, headers[-1:], expected, status, answer[-200:]))
    assert wrong == []


async def test_trailers_are_no_headers(prey: Prey) -> None:
    head = f"POST {MAPS} HTTP/1.1\r\nHost: x\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n"
    trailer = f"0\r\nAuthorization: Bearer {prey.token}\r\n\r\n"
    status, _ = await ask(prey, f"{head}Trailer: Authorization\r\n\r\n{trailer}".encode())
    assert status == 403
