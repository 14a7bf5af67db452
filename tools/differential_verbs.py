"""Each verb on each kind and what is below it, with options, media types and headers that mostly fit."""

from __future__ import annotations

import json
import random
from typing import Any
from urllib.parse import quote

from differential_admission import APPLY, MERGE, STRATEGIC, dump
from differential_answers import JSON, Request
from differential_samples import SAMPLES, place, sound

JSON_PATCH = "application/json-patch+json"
YAML, PROTOBUF = "application/yaml", "application/vnd.kubernetes.protobuf"
TABLE = "application/json;as=Table;g=meta.k8s.io;v=v1"
METADATA = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
_BELOW = ("", "", "", "status", "scale", "approval", "finalize", "binding", "eviction", "ephemeralcontainers", "resize",
          "token", "log", "exec", "attach", "portforward", "proxy", "proxy/x", "nothing")  # fmt: skip
_SETTLED = tuple(
    each for each in SAMPLES if each.resource not in ("flowschemas", "prioritylevelconfigurations", "events")
)
_OPTIONS: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("dryRun", ("All", "All", "all", "", "None", "All,All")),
    ("fieldValidation", ("Strict", "Warn", "Ignore", "strict", "")),
    ("fieldManager", ("m", "m", "", "m" * 129, "a b", "é", "m/x")),
    ("force", ("true", "false", "1", "", "x")),
    ("pretty", ("true", "false", "0", "", "x")),
    ("gracePeriodSeconds", ("0", "1", "-1", "x", "")),
    ("propagationPolicy", ("Background", "Orphan", "Foreground", "background", "")),
    ("orphanDependents", ("true", "x", "")),
    ("ignoreStoreReadErrorWithClusterBreakingPotential", ("true", "false", "x")),
    ("resourceVersion", ("", "0", "1", "x")),
    ("limit", ("1", "0", "x")),
    ("timeout", ("10s", "x", "-1s", "", "40s", "9999h")),
    ("timeoutSeconds", ("10", "x")),
    ("watch", ("false", "0")),
    ("container", ("c", "x", "")),
    ("name", ("x",)),
    ("namespace", ("default",)),
    ("kind", ("x",)),
    ("apiVersion", ("v2",)),
    ("export", ("true",)),
    ("exact", ("true",)),
    ("includeUninitialized", ("true",)),
    ("unknown", ("1",)),
)


def verbs(choice: random.Random, names: Any) -> list[Request]:
    """Any verb on an object, its collection and what may be below it, with options of all verbs."""
    sample = choice.choice(_SETTLED)
    where, good = place(sample, names.namespace), sound(sample, names.name)
    path = f"{where}/{names.name}"
    said = [_anything(choice, where, path, good) for _ in range(choice.randrange(2, 6))]
    return [Request("POST", where, dump(good)), *said, Request("GET", path),
            Request("DELETE", f"{path}?gracePeriodSeconds=0")]  # fmt: skip


def _anything(choice: random.Random, where: str, path: str, good: dict[str, Any]) -> Request:
    below = choice.choice(_BELOW)
    target = f"{path}/{below}" if below else choice.choice((where, path, path))
    method = choice.choice(("GET", "GET", "POST", "PUT", "PUT", "PATCH", "PATCH", "PATCH", "DELETE", "HEAD", "OPTIONS"))
    accept = choice.choice((JSON, JSON, JSON, YAML, PROTOBUF, TABLE, METADATA, "*/*", "text/plain"))
    target += _query(choice)
    if method in ("GET", "HEAD", "OPTIONS"):
        return Request(method, target, accept=accept, unordered=True)
    if method == "DELETE":
        body = choice.choice((None, None, {}, good, {"kind": "DeleteOptions", "apiVersion": "v1", "dryRun": ["All"]}))
        return Request(method, target, None if body is None else dump(body), accept=accept, unordered=True)
    if method == "PATCH":
        kind = choice.choice((MERGE, STRATEGIC, APPLY, JSON_PATCH, JSON, "application/apply-patch+cbor"))
        patch = [{"op": "add", "path": "/metadata/labels", "value": {"a": "b"}}] if kind == JSON_PATCH else None
        return Request(method, target, dump(patch or _said(choice, good)), kind, accept, unordered=True)
    return Request(method, target, dump(_said(choice, good)), accept=accept, unordered=True)


def _said(choice: random.Random, good: dict[str, Any]) -> Any:
    """An object that is changed a little, another one, or what is no object."""
    body: dict[str, Any] = json.loads(json.dumps(good))
    match choice.randrange(12):
        case 0:
            return {}
        case 1:
            return {"kind": "Scale", "apiVersion": "autoscaling/v1", "metadata": body["metadata"], "spec": {}}
        case 2:
            body["metadata"] = {"name": "other"}
        case 3:
            body["metadata"]["namespace"] = "other"
        case 4:
            body["unknown"] = 1
        case 5:
            body["kind"] = "Other"
        case 6:
            return [body]
        case 7:
            return {"metadata": {"labels": {"a": choice.choice(("b", "-", 1))}}}
        case 8:
            body["status"] = {"unknown": 1}
        case _:
            body["metadata"]["labels"] = {"a": "b"}
    return body


def _query(choice: random.Random) -> str:
    """A few options, some of them twice or in other letters."""
    said = []
    for name, values in choice.sample(_OPTIONS, choice.choice((0, 0, 1, 1, 2, 3))):
        said.append(f"{name}={quote(choice.choice(values), safe='')}")
        if choice.random() < 0.1:
            said.append(f"{name}={quote(choice.choice(values), safe='')}")
        if choice.random() < 0.05:
            said[-1] = said[-1].upper()
    return f"?{'&'.join(said)}" if said else ""


def collections(choice: random.Random, names: Any) -> list[Request]:
    """Deletions of collections with all options, of some objects that selectors match."""
    samples = [each for each in _SETTLED if each.namespaced and each.resource not in ("replicasets",)]
    sample = choice.choice(samples)
    where = place(sample, names.namespace)
    made = []
    for number in range(3):
        good = sound(sample, f"{names.name}-{'abc'[number]}")
        good["metadata"]["labels"] = {"in": names.name, "at": "abc"[number]}
        if choice.random() < 0.2:
            good["metadata"]["finalizers"] = ["a.example/f"]
        made.append(good)
    selector = f"labelSelector=in%3D{names.name}"
    if choice.random() < 0.5:
        selector += choice.choice(("%2Cat%3Da", "%2Cat+in+(a%2Cb)", f"&fieldSelector=metadata.name%3D{names.name}-a"))
    options: dict[str, Any] = {}
    for name, values in choice.sample(_OF_DELETION, choice.choice((0, 1, 1, 2))):
        options[name] = choice.choice(values)
    query = "&".join(each for each in (selector, _query(choice)[1:]) if each)
    accept = choice.choice((JSON, JSON, YAML, PROTOBUF, TABLE, METADATA + "List", METADATA))
    body = choice.choice((dump(options), dump({"kind": "DeleteOptions", "apiVersion": "v1", **options}), None))
    listed = f"{where}?labelSelector=in%3D{names.name}"
    return [
        *(Request("POST", where, dump(good)) for good in made),
        Request("DELETE", f"{where}?{query}", body, accept=accept, unordered=True),
        Request("GET", listed),
        *(Request("PATCH", f"{where}/{good['metadata']['name']}", b'{"metadata":{"finalizers":null}}', MERGE)
          for good in made),
        Request("DELETE", f"{listed}&gracePeriodSeconds=0"),
        Request("GET", listed),
    ]  # fmt: skip


_OF_DELETION: tuple[tuple[str, tuple[Any, ...]], ...] = (
    ("preconditions", ({}, {"uid": "x"}, {"resourceVersion": "1"})),
    ("propagationPolicy", ("Orphan", "Background", "Foreground", "x")),
    ("gracePeriodSeconds", (0, 1, -1, None)),
    ("orphanDependents", (True, False)),
    ("dryRun", (["All"], ["x"], [], ["All", "All"])),
    ("ignoreStoreReadErrorWithClusterBreakingPotential", (True, False)),
)


_DOCUMENTS = ("/api", "/apis", "/apis/apps/v1", "/healthz", "/openapi/v3/version", "/nothing", "/livez?verbose",
              "/openapi/v3/apis/discovery.k8s.io/v1", "/readyz?exclude=etcd&verbose")  # fmt: skip


def headers(choice: random.Random, names: Any) -> list[Request]:
    """Requests with headers that servers make something of, or do not."""
    where = f"/api/v1/namespaces/{names.namespace}/configmaps"
    body = dump({"metadata": {"name": names.name}, "data": {"a": "b" * choice.choice((1, 200))}})
    paths = (where, f"{where}/{names.name}", *_DOCUMENTS)
    said = [Request("POST", where, body, headers=_some_headers(choice))]
    for _ in range(3):
        method = choice.choice(("GET", "GET", "GET", "HEAD"))
        said.append(Request(method, choice.choice(paths), headers=_some_headers(choice)))
    said.append(Request("PATCH", f"{where}/{names.name}", b'{"data":{"c":"d"}}', MERGE, headers=_some_headers(choice)))
    return [*said, Request("DELETE", f"{where}/{names.name}", headers=_some_headers(choice))]


def _some_headers(choice: random.Random) -> tuple[tuple[str, str], ...]:
    return tuple(
        (name, choice.choice(values)) for name, values in choice.sample(_HEADERS, choice.choice((0, 1, 1, 2, 3)))
    )


_HEADERS: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("If-None-Match", ("*", '"x"', "x", 'W/"x"')),
    ("If-Match", ("*", '"x"')),
    ("If-Modified-Since", ("Thu, 01 Jan 2026 00:00:00 GMT", "x")),
    ("Range", ("bytes=0-1", "bytes=5-", "x")),
    ("Accept-Encoding", ("identity", "br", "identity;q=0")),
    ("Accept-Language", ("de",)),
    ("Accept-Charset", ("utf-16",)),
    ("Origin", ("https://example.com", "null")),
    ("Access-Control-Request-Method", ("PUT",)),
    ("Cookie", ("a=b",)),
    ("Referer", ("http://x/",)),
    ("User-Agent", ("", "kubectl/v1.0", "é")),
    ("X-Forwarded-For", ("1.2.3.4", "x")),
    ("X-Real-Ip", ("1.2.3.4",)),
    ("X-HTTP-Method-Override", ("DELETE",)),
    ("Audit-ID", ("a", "b" * 65)),
    ("Impersonate-Uid", ("u",)),
    ("Impersonate-Group", ("system:masters", "devs", "")),
    ("Impersonate-User", ("", "alice", "system:serviceaccount:default:default", "system:node:a", "system:anonymous")),
    ("Impersonate-Extra-a", ("b",)),
    ("Impersonate-Extra-%2f", ("b",)),
    ("Impersonate-Extra-", ("b",)),
    ("X-Remote-User", ("bob",)),
    ("TE", ("trailers",)),
    ("Content-Encoding", ("gzip", "identity")),
    ("Content-Language", ("de",)),
    ("Trailer", ("x",)),
    ("Upgrade", ("h2c", "websocket", "SPDY/3.1")),
    ("Connection", ("close", "keep-alive")),
    ("Sec-WebSocket-Protocol", ("x",)),
)


def tokens(choice: random.Random, names: Any) -> list[Request]:
    """Tokens that are asked for with all options, and reviews of subjects."""
    where = f"/api/v1/namespaces/{names.namespace}"
    spec: dict[str, Any] = {}
    for name, values in choice.sample(_OF_TOKENS, choice.randrange(4)):
        spec[name] = choice.choice(values)
    if choice.random() < 0.5:
        kind, version = choice.choice((("Pod", "v1"), ("Secret", "v1"), ("Node", "v1"), ("ConfigMap", "v1"),
                                       ("Pod", "v2"), ("pod", "v1"), ("", "")))  # fmt: skip
        spec["boundObjectRef"] = {"kind": kind, "apiVersion": version, "name": names.name,
                                  **choice.choice(({}, {}, {"uid": "x"}, {"uid": "$(bound.uid)"}))}  # fmt: skip
    ask = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": spec}
    ask["metadata"] = choice.choice(({}, {"name": names.name}, {"name": "other"}, {"namespace": "other"}))
    review: dict[str, Any] = {"spec": {"token": choice.choice(("", "x", "a.b.c", "Bearer x"))}}
    if choice.random() < 0.4:
        review["spec"]["audiences"] = choice.choice(([], ["x"], ["https://x"], [""]))
    pod = {"metadata": {"name": names.name},
           "spec": {"containers": [{"name": "c", "image": "i"}],
                    "serviceAccountName": choice.choice((names.name, "default"))}}  # fmt: skip
    access = {"spec": {"user": choice.choice(("", "alice")), "groups": choice.choice(([], ["system:masters"], [""])),
                       **choice.choice(_ACCESS)}}  # fmt: skip
    own = {"spec": choice.choice(_ACCESS)}
    group = "/apis/authorization.k8s.io/v1"
    query = choice.choice(("", "", "?dryRun=All", "?fieldValidation=Strict", "?pretty=true"))
    user = choice.choice(("", "alice"))
    return [
        Request("POST", f"{where}/serviceaccounts", dump({"metadata": {"name": names.name}})),
        Request("POST", f"{where}/pods", dump(pod), keeps="bound"),
        Request("POST", f"{where}/serviceaccounts/{names.name}/token{query}", dump(ask), unordered=True),
        Request("POST", f"/apis/authentication.k8s.io/v1/tokenreviews{query}", dump(review), unordered=True),
        Request("POST", f"/apis/authentication.k8s.io/v1/selfsubjectreviews{query}", dump({}), user=user),
        Request("POST", f"{group}/subjectaccessreviews{query}", dump(access), unordered=True),
        Request("POST", f"{group}/selfsubjectaccessreviews{query}", dump(own), user=user, unordered=True),
        Request("POST", f"{group}/namespaces/{names.namespace}/localsubjectaccessreviews{query}", dump(access),
                unordered=True),
        Request("POST", f"{group}/selfsubjectrulesreviews{query}",
                dump({"spec": choice.choice(({}, {"namespace": names.namespace}, {"namespace": "none"}))}), user=user,
                unordered=True),
        Request("DELETE", f"{where}/pods/{names.name}?gracePeriodSeconds=0"),
        Request("DELETE", f"{where}/serviceaccounts/{names.name}"),
    ]  # fmt: skip


_OF_TOKENS: tuple[tuple[str, tuple[Any, ...]], ...] = (
    ("audiences", ([], ["x"], ["x", "x"], [""], ["https://x", "y"], None, "x")),
    ("expirationSeconds", (600, 599, 0, -1, 1 << 32, (1 << 32) + 1, "600", 3607, None)),
    ("unknown", (1,)),
)
_ACCESS: tuple[dict[str, Any], ...] = (
    {},
    {"resourceAttributes": {"verb": "get", "resource": "pods", "namespace": "default"}},
    {"resourceAttributes": {}},
    {"nonResourceAttributes": {"path": "/healthz", "verb": "get"}},
    {"nonResourceAttributes": {}},
    {"resourceAttributes": {"verb": "*"}, "nonResourceAttributes": {"path": "/"}},
    {"resourceAttributes": {"verb": "list", "resource": "pods", "fieldSelector": {"rawSelector": "spec.nodeName=a"}}},
    {"resourceAttributes": {"verb": "list", "resource": "pods", "labelSelector": {"rawSelector": "a in"}}},
    {"resourceAttributes": {"verb": "list", "labelSelector": {"requirements": [{"key": "a", "operator": "In"}]}}},
    {"resourceAttributes": {"verb": "list", "fieldSelector": {"requirements": [{"key": "a", "operator": "Gt"}]}}},
    {"resourceAttributes": {"verb": "list", "fieldSelector": {"rawSelector": "a=b", "requirements": []}}},
    {"resourceAttributes": {"verb": "list", "fieldSelector": {
        "rawSelector": "a=b", "requirements": [{"key": "a", "operator": "In", "values": ["b"]}]}}},
    {"extra": {"A": ["b"], "a/b": []}},
)  # fmt: skip
_FRAMES = (JSON, PROTOBUF, TABLE, METADATA, METADATA.replace("json", "vnd.kubernetes.protobuf", 1), YAML,
           f"{PROTOBUF};stream=watch", TABLE.replace("v=v1", "v=v1beta1"), "*/*", "application/cbor")  # fmt: skip


_MORE_OPTIONS = ("includeObject=Object", "includeObject=None", "includeObject=x", "pretty=true", "limit=1",
                 "continue=x", "resourceVersionMatch=Exact", "shardSelector=x")  # fmt: skip
_STREAMED = ["sendInitialEvents=true", "resourceVersionMatch=NotOlderThan"]
_BEGINNINGS: tuple[list[str], ...] = (
    [],
    ["resourceVersion=$(begin.rv)"],
    ["resourceVersion=$(begin.rv)"],
    ["resourceVersion=0"],
    _STREAMED,
    [*_STREAMED, "allowWatchBookmarks=true"],
    [*_STREAMED, "allowWatchBookmarks=true", "resourceVersion=$(begin.rv)"],
    [*_STREAMED, "allowWatchBookmarks=true", "resourceVersion=0"],
    [*_STREAMED, "allowWatchBookmarks=false"],
    ["sendInitialEvents=false", "resourceVersionMatch=NotOlderThan", "resourceVersion=$(begin.rv)"],
)


def frames(choice: random.Random, names: Any) -> list[Request]:
    """Watches in all forms, with the present state first or from a known version on, while objects come and go."""
    sample = choice.choice([each for each in _SETTLED if each.resource not in ("nodes", "namespaces")])
    where, good = place(sample, names.namespace), sound(sample, names.name)
    good["metadata"]["labels"] = {"conversation": names.name}
    labelled = f"labelSelector=conversation%3D{names.name}"
    selector = choice.choice((f"fieldSelector=metadata.name%3D{names.name}", labelled, f"{labelled}%2Cstate%3Don"))
    said = [selector, "watch=true", "timeoutSeconds=1"]
    said += choice.choice(_BEGINNINGS)
    if choice.random() < 0.3:
        said.append(choice.choice(_MORE_OPTIONS))
    choice.shuffle(said)
    path = f"{where}/{names.name}"
    on, off = (dump({"metadata": {"labels": {"state": state}}}) for state in ("on", "off"))
    changes = [Request("PATCH", path, choice.choice((on, off)), MERGE) for _ in range(choice.randrange(4))]
    return [
        Request("POST", where, dump(good), keeps="begin"),
        *changes,
        *([Request("DELETE", f"{path}?gracePeriodSeconds=0")] if choice.random() < 0.5 else []),
        Request("GET", f"{where}?{'&'.join(said)}", accept=choice.choice(_FRAMES)),
        Request("GET", f"{where.replace('/v1/', '/v1/watch/', 1)}?{'&'.join(said[1:])}&{selector}",
                accept=choice.choice(_FRAMES)),
        Request("DELETE", f"{path}?gracePeriodSeconds=0"),
    ]  # fmt: skip


VERB_AREAS = {"verbs": verbs, "collections": collections, "headers": headers, "tokens": tokens, "frames": frames}
